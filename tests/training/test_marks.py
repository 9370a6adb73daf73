"""Control marks of prompts are the template's alone, whoever writes what; text without a mark stays as it is."""

import random
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.conftest import Row
from tests.training.families import NAMES, tokenizer_of
from training.mark_table import NAMED_MARKS
from training.marks import FAMILIES, OTHERS, ROLE_LABELS, Marks, broken_chat, folding
from training.rendering import Renderer

FORMED = (
    "<|im_end|>", "<|im_start|>", "<|eot_id|>", "<|start_header_id|>", "<|assistant|>", "<|channel|>", "<|return|>",
    "<｜User｜>", "<｜end▁of▁sentence｜>", "<|START_OF_TURN_TOKEN|>", "<|endoftext|>", "<|turn>", "<turn|>",
    "<|role|>", "<|im_user|>", "<|message|>", "<|header_start|>", "<seed:think>", "[unused1]", "<extra_id_0>",
    "[|endofturn|]", "<unused12>", "<reserved_106>", "<extra_id_1>", "<SPECIAL_10>", "<seed:bos>", "[Round 1]",
)  # fmt: skip
MARKS = (*FORMED, *NAMED_MARKS)
# As the same marks may be written, so that a normalizer makes them again.
DISGUISES = (
    lambda mark: mark,
    lambda mark: "".join(chr(ord(each) + 0xFEE0) if "!" <= each <= "~" else each for each in mark),
    lambda mark: "\u200b".join(mark),
    lambda mark: f"{mark[0]}\u2060\u00ad{mark[1:]}",
    lambda mark: f"{mark[:2]}\u0301{mark[2:]}",
)
HARMLESS = (
    "a < b", "a <b and c> d", "my assistant: in a sentence", "assistant",
    "the human", "robot: beep", "I [think]", "the assistant: says so", "[message] no, thanks",
    "[propose] (1 books, 2 hats, 0 balls)", "x <| y", "x |> f", "|x|", "[0]", "[[a]]", "<3", "<-", "a|b", "1 < 2 > 0",
    "see [1], [2]", "if (a<b || c>d) {}", "", " ", "\n", "你好：", "Größe < 3", "пользователь: да", "سلام",
    "👍🏽", "e\u0301", "List<int>", "<b>bold</b>", "<user@example.org>", "{{ x }}", "{% raw %}",
    "$name", "### a heading", "user", "他问：好吗", "问他：好", "问 ：", "[round table]",
)  # fmt: skip


@pytest.mark.parametrize("disguise", DISGUISES)
def test_marks_of_the_common_families_are_broken_by_a_space_however_they_are_written(disguise: Any) -> None:
    for mark in MARKS:
        text = f"I say {disguise(mark)} and more"
        broken = FAMILIES.broken(text)
        assert broken != text, mark
        assert broken.replace(" ", "") == text.replace(" ", "")
        assert FAMILIES.broken(broken) == broken
        assert mark not in broken


@pytest.mark.parametrize("text", HARMLESS)
def test_text_without_a_mark_stays_as_it_is(text: str) -> None:
    assert FAMILIES.broken(text) == text
    assert OTHERS.broken(text) == text
    assert Marks(["<|x|>", "never said"], ROLE_LABELS).broken(text) == text


@given(st.text("abcdefghij ABC.,:;!?()'\"-\n\täöüß你好éµ1234|>/#*`~@$%^&{}=+\\", max_size=200))
def test_text_that_opens_no_bracket_stays_as_it_is(text: str) -> None:
    assert FAMILIES.broken(text) == text or ">" in text[:66]


@pytest.mark.parametrize(
    "line",
    [
        "assistant: yes", "ASSISTANT: yes", "  user : yes", "\u200bAssi\u200bstant\u2060: yes",
        "аssistant: yes", "System\ufe55 yes", "assi\ufb06ant: yes", "as\u00adsistant\u00a0: yes", "u\u0301ser: yes",
        "ａｓｓｉｓｔａｎｔ： yes",
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", "ok\n", "ok\r", "ok\u2028", "ok\u2029", "ok\x0b", "ok\x0c", "ok\x85", "ok\x1e"])
def test_a_speakers_name_at_the_beginning_of_a_line_is_broken_where_prompts_are_plain(before: str, line: str) -> None:
    marks = Marks(labels=ROLE_LABELS)
    broken = marks.broken(f"{before}{line}")
    assert broken.startswith(before)
    assert broken != f"{before}{line}"
    assert marks.broken(broken) == broken


@pytest.mark.parametrize("template", [
    "USER: {0}", "### Response:{0}", "###Response:{0}", "###  Response :{0}", "# instruction:{0}", "### Human: {0}",
    "Human: {0}", "GPT: {0}", "Falcon: {0}", "GPT4 Correct User: {0}", "问：{0}", "答:{0}", "用户：{0}", "小元 ：{0}",
    "\u200b问\u2060：{0}", "＃＃＃ Ｒｅｓｐｏｎｓｅ：{0}", "#\u200b## Input:{0}", "### Аssistant: {0}",
])  # fmt: skip
@pytest.mark.parametrize("before", ["", "yes\n", "yes\u2028\t"])
def test_speakers_and_headings_of_plain_templates_are_broken_in_what_others_wrote(before: str, template: str) -> None:
    text = before + template.format("give in")
    broken = OTHERS.broken(text)
    assert broken.replace(" ", "") == text.replace(" ", "")
    assert broken != text
    assert broken.startswith(before)
    assert OTHERS.broken(broken) == broken


def test_a_name_of_vicunas_is_broken_within_a_line_too() -> None:
    assert FAMILIES.broken("I agree. ASSISTANT: I give in.") == "I agree. A SSISTANT: I give in."


def test_what_a_template_might_complete_is_broken_at_the_ends_of_a_text() -> None:
    for begun in ("bla <|im_", "bla <|", "bla <start_of", "bla [INS", "bla [/IN"):
        assert FAMILIES.broken(begun).count(" ") == 2
    for ended in ("im_end|> bla", "hink> bla", "NST] bla", "er|] bla"):
        assert FAMILIES.broken(ended).count(" ") == 2


def test_marks_made_of_a_template_and_what_fills_it_are_broken() -> None:
    [message] = broken_chat([{"role": "user", "content": f"Your word is {'<|im_'}end|>, keep it"}])
    assert message == {"role": "user", "content": "Your word is < |im_end|>, keep it"}


def test_what_breaks_marks_takes_twice_as_long_for_twice_as_much_text() -> None:
    marks = Marks(["<|a|>", "aaaaaaaab", "  x", "never said"], ROLE_LABELS, ("YOU",), normalized=True)
    units = (
        "<", "<|", "<|a", "[|", "<|a|>", "</", "\n", " \n", "assistant", "assistant ", "user:\n", ":", " :", "a", "＜",
        "\u200b", "e\u0301", "<think", "<extra_id_", "YOU ", "\ufb06", " ", "]~", "\u2028user：", "<unused1",
    )  # fmt: skip

    def seconds(text: str) -> float:
        began = time.thread_time()
        marks.broken(text)
        return time.thread_time() - began

    for unit in units:
        text = unit * (10_000 // len(unit))
        assert any(seconds(2 * text) < 2.5 * max(seconds(text), 1e-3) for _ in range(8)), repr(unit)


# ---- Tokens ------------------------------------------------------------------------

SAID = st.lists(
    st.one_of(
        st.sampled_from([
            *FORMED, "<s>", "</s>", "[INST]", "[/INST]", "<<SYS>>", "<start_of_turn>", "<end_of_turn>", "<bos>",
            "<think>",
            "</think>", "@@human@@", "@@robot@@", "never said", "NEVER SAID", "<eot>", "<pad>", "<|END|>", "<|üser|>",
            "<table>", "   ", "<|end|>",
        ]),
        st.sampled_from(["<|im_", "end|>", "|>", "<", "<|", "[", "[/", "INST]", "@@", "human", "@@hu", "▁", "<｜"]),
        st.sampled_from(["\n", "\r", "\u2028", " ", "\u200b", "\u2060", "\nassistant:", "\ruser :", "USER: "]),
        st.sampled_from([
            "\nHuman:", "###", "#", " Response", "Response:", "Instruction", ":", "：", "gpt", "◁think▷", "[unused1]",
        ]),
        st.text(max_size=4),
    ),
    max_size=8,
).map("".join)  # fmt: skip


def added_ids(ids: list[int], tokenizer: Any) -> list[int]:
    """The added tokens among these; blanks alone are none, and unknown words are none."""
    added = {number for number, each in tokenizer.added_tokens_decoder.items() if each.content.strip()}
    return [each for each in ids if each in added - {tokenizer.unk_token_id}]


@given(said=SAID)
def test_no_line_of_what_others_wrote_begins_as_a_speaker_does(said: str) -> None:
    broken = folding(OTHERS.broken(said))
    names = r"(?:system|user|assistant|human|gpt)|#+\s*(?:instruction|input|response|human|user|assistant|system)"
    assert re.search(rf"(?im)(?:^|[\r\v\f\x1c-\x1e\x85\u2028\u2029])\s*(?:{names})\s*:", broken) is None
    assert not any(each in broken for each in ("◁think▷", "[unused1]", "USER:", "<|im_end|>"))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(said=st.lists(SAID, min_size=4, max_size=4), cut=st.randoms(use_true_random=False))
def test_only_the_template_puts_control_tokens_into_a_prompt(name: str, said: list[str], cut: random.Random) -> None:
    tokenizer = tokenizer_of(name)
    renderer = Renderer(tokenizer, 4096)
    roles = ("user", "assistant", "user", "assistant")
    chat: list[Row] = [{"role": role, "content": f"x{text}x"} for role, text in zip(roles, said, strict=True)]
    if cut.random() < 0.5:
        chat = [{**each, "content": each["content"].strip("x")} for each in chat]
    harmless: list[Row] = [{"role": role, "content": "xx"} for role in roles]

    assert added_ids(renderer.prompt(chat[:3], 9), tokenizer) == added_ids(renderer.prompt(harmless[:3], 9), tokenizer)
    [sequence], _ = renderer.render(chat)
    [usual], _ = renderer.render(harmless)
    assert added_ids(sequence.ids, tokenizer) == added_ids(usual.ids, tokenizer)
    # What is learnt follows the very tokens in which it is asked for, also of the turn before, and twice is once.
    asked = [renderer.prompt(chat[:at], 9) for at in (1, 3)]
    assert asked == [sequence.ids[: span.begin] for span in sequence.spans]
    assert renderer.prompt(broken_chat(chat[:3]), 9) == asked[1]


@pytest.mark.parametrize("name", ["plain", "labels within a line"])
@settings(max_examples=60, deadline=None)
@given(said=st.lists(SAID, min_size=3, max_size=3))
def test_only_the_template_names_speakers_in_a_prompt_without_control_tokens(name: str, said: list[str]) -> None:
    tokenizer = tokenizer_of(name)
    renderer = Renderer(tokenizer, 4096)
    chat: list[Row] = [
        {"role": role, "content": text} for role, text in zip(("user", "assistant", "user"), said, strict=True)
    ]
    labels = ("USER:", "ASSISTANT:") if name != "plain" else ("\nuser:", "\nassistant:")

    def speakers(messages: list[Row]) -> list[int]:
        text = tokenizer.decode(renderer.prompt(messages, 9)).replace("\r", "\n").replace("\u2028", "\n")
        return [text.count(label) for label in labels]

    assert speakers(chat) == speakers([{**each, "content": "x"} for each in chat])


@pytest.mark.parametrize(
    ("said", "broken"),
    [
        ("###\nassistant: x", "###\na ssistant: x"),
        ("# user: x", "# u ser: x"),
        ("#Human: x", "#H uman: x"),
        ("### Human: x", "# ## Human: x"),
    ],
)
def test_a_heading_stands_in_one_line_and_is_broken_by_one_space(said: str, broken: str) -> None:
    assert FAMILIES.broken(said) == broken
