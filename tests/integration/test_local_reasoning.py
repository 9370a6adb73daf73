"""Local models that reason: what is parted from the move, what room it has, and what of it is computed twice."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from sqlalchemy import Engine, select
from sqlalchemy.orm import undefer
from tokenizers import AddedToken
from transformers import AutoTokenizer

from app.core.config import Settings
from app.core.extensions import reading
from app.core.failures import SETTINGS_FAULT, UNSUITED
from app.inference import scheduler as engines
from app.inference.prefix_cache import PrefixCache
from app.inference.requests import Checkpoint, Completion, GenerationRequest, Sampling
from app.models import EventRow, GenerationRow, MatchRow
from app.players.base import ChatSampling, Generation, PlayerFailed, PlayerSpec
from app.players.local.player import make
from tests.checkpoints import CHATML, OPENS, STRIPS, reciting_model, register, scripted_model
from tests.datasets import cut, rows_of
from tests.jobs import make_dataset, make_job, model_of
from tests.jobs import run as train
from tests.rounds import make_round, play, row_of
from training.checkpoints import write_provenance
from training.data import Conversation, render_rows
from training.methods.tiny import TinyConfig
from training.rendering import Renderer, ids_hash
from training.tiny import make_model, make_tokenizer

ASKED = [{"role": "user", "content": "want 2 books"}]
THINKS = ("<think>", "q", "z", "</think>", "n", "o")


def answer(folder: Path, sha256: str, most: int = 6, **options: Any) -> Generation:
    spec = PlayerSpec("local", "mine", {"path": str(folder), "sha256": sha256, "device": "cpu", **options})
    return asyncio.run(make(spec).complete(ASKED, ChatSampling(max_tokens=most)))


@pytest.mark.parametrize(
    ("template", "says", "reasoning_tokens"),
    [
        (STRIPS, THINKS, 4),
        (OPENS, THINKS[1:], 3),  # the prompt has the opening mark
        (STRIPS, THINKS[1:], 3),  # nobody has it
        (OPENS, ("</think>", "n", "o"), 1),
    ],
    ids=["opened by the model", "opened by the prompt", "a closing mark alone", "an empty block"],
)
def test_reasoning_is_parted_from_the_move_and_counted(
    tmp_path: Path, template: str, says: Sequence[str], reasoning_tokens: int
) -> None:
    found = answer(tmp_path, scripted_model(tmp_path, template, says))
    assert (found.text, found.reasoning, found.outcome) == ("no", "qz" if "q" in says else None, "move")
    assert (found.reasoning_tokens, found.completion_tokens) == (reasoning_tokens, len(says) + 1)
    assert len(found.token_ids or ()) == len(found.log_probs or ()) == found.completion_tokens


def test_a_move_has_its_own_room_beside_that_of_reasoning(tmp_path: Path) -> None:
    sha256 = scripted_model(tmp_path, STRIPS, THINKS)
    found = answer(tmp_path, sha256, most=1)  # of the move
    assert (found.text, found.reasoning, found.sampling["finish_reason"]) == ("n", "qz", "length")
    assert found.sampling["max_new_tokens"] > 100
    assert answer(tmp_path, sha256, most=1, reasoning="4").text == "n"


def test_a_model_that_does_not_reason_has_no_longer_moves_for_the_room(tmp_path: Path) -> None:
    sha256 = scripted_model(tmp_path, STRIPS, ("n", "o", "w", "x"))
    for options in ({}, {"reasoning": 100}):
        found = answer(tmp_path, sha256, most=2, **options)
        assert (found.text, found.reasoning, found.reasoning_tokens) == ("no", None, None), options
        assert len(found.token_ids or ()) == len(found.log_probs or ()) == found.completion_tokens == 2


@pytest.mark.parametrize(("template", "says"), [(STRIPS, THINKS), (OPENS, THINKS[1:])])
def test_reasoning_that_leaves_no_room_is_no_move_but_a_matter_of_settings(
    tmp_path: Path, template: str, says: Sequence[str]
) -> None:
    sha256 = scripted_model(tmp_path, template, says)
    with pytest.raises(PlayerFailed) as failed:
        answer(tmp_path, sha256, most=1, reasoning_room=1)
    assert (failed.value.kind, failed.value.fault) == (UNSUITED, SETTINGS_FAULT)
    assert "raise the limit by the model's option reasoning_room (1 now)" in failed.value.message
    kept = failed.value.generation
    assert (kept.text, kept.outcome, kept.completion_tokens, kept.error) == (None, "no_room", 2, failed.value.message)
    assert kept.reasoning in ("q", "qz")


@pytest.mark.parametrize("options", [{"reasoning": "off"}, {"template_arguments": {"enable_thinking": False}}])
def test_arguments_of_the_template_are_those_of_the_row(tmp_path: Path, options: Mapping[str, Any]) -> None:
    says = ("<think>", "q", "</think>", "n", "o")
    sha256 = scripted_model(tmp_path, STRIPS, says)
    assert answer(tmp_path, sha256).reasoning == "q"
    found = answer(tmp_path, sha256, **options)  # the prompt ends in a closed block, behind which it says the move
    assert (found.text, found.reasoning) == ("no", None)
    assert found.sampling["template_arguments"]["enable_thinking"] is False
    assert found.prompt_tokens == (answer(tmp_path, sha256).prompt_tokens or 0) + 2


def test_a_model_with_a_sliding_window_reasons_likewise(tmp_path: Path) -> None:
    """The library's own loop makes its answers, each to the longest that it may have."""
    sha256 = scripted_model(tmp_path, STRIPS, THINKS, sliding=True)
    for most, text in ((1, "n"), (6, "no")):
        found = answer(tmp_path, sha256, most=most, reasoning=8)
        assert (found.text, found.reasoning, found.reasoning_tokens) == (text, "qz", 4)
        assert len(found.token_ids or ()) == found.completion_tokens == min(7, 4 + most)


# ---- Channels -----------------------------------------------------------------------

ANALYSIS, FINAL, AGAIN = "<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "<|end|><|start|>assistant"
SAYS = f"{ANALYSIS}qz{AGAIN}{FINAL}no<|return|>"


@pytest.mark.parametrize(
    ("says", "reasoning"),
    [
        (SAYS, "qz"),
        (f"{FINAL}no<|return|>", None),
        (
            SAYS.replace("<|return|>", f"{AGAIN}{ANALYSIS}more"),
            "qz",
        ),  # a message that ends with the move is the last one
        (SAYS.replace("qz", f"q{AGAIN}<|channel|>commentary<|message|>z"), "q\nz"),
    ],
    ids=["analysis", "no analysis", "goes on", "commentary"],
)
def test_of_messages_in_channels_the_move_is_that_of_the_channel_final(
    tmp_path: Path, says: str, reasoning: str | None
) -> None:
    found = answer(tmp_path, reciting_model(tmp_path, says), reasoning=100)
    assert (found.text, found.reasoning, found.outcome) == ("no", reasoning, "move")
    assert found.sampling["finish_reason"] == "stop"
    ends = "<|return|>" if says.endswith("<|return|>") else "<|end|>"
    raw = AutoTokenizer.from_pretrained(tmp_path).decode(found.token_ids)
    assert raw == f"{says.partition('no')[0]}no{ends}"
    marks = AutoTokenizer.from_pretrained(tmp_path)(says.partition("no")[0])["input_ids"]
    assert found.reasoning_tokens == len(marks)


def test_a_move_in_a_channel_has_its_own_room_beside_that_of_reasoning(tmp_path: Path) -> None:
    found = answer(tmp_path, reciting_model(tmp_path, SAYS.replace("no", "nx")), most=1)
    assert (found.text, found.reasoning, found.sampling["finish_reason"]) == ("n", "qz", "length")


def test_an_answer_that_is_cut_off_before_its_move_is_none_wherever_that_is(tmp_path: Path) -> None:
    sha256 = reciting_model(tmp_path, SAYS)
    before_move = AutoTokenizer.from_pretrained(tmp_path)(SAYS.partition("no")[0])["input_ids"]
    for most in range(1, len(before_move) + 1):
        with pytest.raises(PlayerFailed) as failed:
            answer(tmp_path, sha256, most=most, reasoning_room=0)
        assert failed.value.kind == UNSUITED
        kept = failed.value.generation
        assert (kept.text, kept.outcome, kept.completion_tokens) == (None, "no_room", most)
        assert "qz".startswith(kept.reasoning or "")


def test_matches_in_channels_hold_the_moves_alone_and_are_trained_on_as_they_were_sent(
    engine: Engine, settings: Settings, home: Path, tmp_path: Path
) -> None:
    register(engine, "mine", tmp_path, reciting_model(tmp_path, SAYS))
    number = make_round(engine, "mine", game="taboo", matches=1, config={"max_turns": 2})
    play(engine, settings, number)
    with reading(engine) as session:
        wanted = select(GenerationRow).order_by(GenerationRow.seat, GenerationRow.ply)
        calls = session.scalars(wanted.options(undefer(GenerationRow.reasoning))).all()
        said = [each["text"] for each in session.scalars(select(EventRow.body)) if "text" in each]
    assert said == ["no"] * 4
    assert [(call.text, call.reasoning, call.outcome) for call in calls] == [("no", "qz", "move")] * 4
    assert not any(each["content"] != "no" for call in calls for each in call.prompt if each["role"] == "assistant")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    for kept, learnt in ((False, "no<|return|>"), (True, SAYS)):
        dataset = cut(engine, home, rounds=[number], filter="all", reasoning="keep" if kept else "drop")
        rows = rows_of(home, dataset)
        conversations = [Conversation("", "", tuple(row["messages"]), row.get("tokenizer")) for row in rows]
        bare = [Conversation("", "", tuple(_without_ids(row["messages"]))) for row in rows]
        for each in (conversations, bare):  # as it was sampled, and as the template has it
            sequences = render_rows(each, Renderer(tokenizer, 1024)).sequences
            spans = [(sequence.ids, span) for sequence in sequences for span in sequence.spans]
            for call, (ids, span) in zip(calls, spans, strict=True):
                assert ids_hash(ids[: call.prompt_tokens]) == call.sampling["prompt_sha256"]
                assert call.prompt_tokens is not None
                assert tokenizer.decode(ids[call.prompt_tokens : span.begin]) == ("" if kept else FINAL)
                assert tokenizer.decode(ids[span.begin : span.end]) == learnt


# ---- Matches ----------------------------------------------------------------------


def test_matches_hold_the_moves_alone_and_keep_the_reasoning(
    engine: Engine, settings: Settings, tmp_path: Path
) -> None:
    register(engine, "mine", tmp_path, scripted_model(tmp_path, STRIPS, THINKS))
    number = make_round(engine, "mine", game="taboo", matches=2, config={"max_turns": 2})
    play(engine, settings, number)
    with reading(engine) as session:
        calls = session.scalars(select(GenerationRow).options(undefer(GenerationRow.reasoning))).all()
        assert session.scalars(select(MatchRow.reason)).all()
    assert len(calls) == 8
    for call in calls:
        assert (call.text, call.reasoning, call.reasoning_tokens, call.outcome) == ("no", "qz", 4, "move")
        assert not any("q" in each["content"] for each in call.prompt if each["role"] == "assistant")


@pytest.mark.parametrize(
    ("template", "says", "arguments"),
    [
        (CHATML, ("no",), {}),
        (STRIPS, THINKS, {}),
        (STRIPS, ("<think>", "q", "</think>", "n", "o"), {"enable_thinking": False}),
        (OPENS, THINKS[1:], {}),
    ],
    ids=["does not reason", "strips history", "is told not to", "opens the block"],
)
def test_a_training_reads_just_what_was_sent_and_learns_reasoning_where_the_dataset_keeps_it(
    engine: Engine, settings: Settings, home: Path, tmp_path: Path, template: str, says: Sequence[str], arguments: Any
) -> None:
    register(engine, "mine", tmp_path, scripted_model(tmp_path, template, says), template_arguments=arguments)
    number = make_round(engine, "mine", game="taboo", matches=1, config={"max_turns": 2})
    play(engine, settings, number)
    with reading(engine) as session:
        calls = session.scalars(select(GenerationRow).order_by(GenerationRow.seat, GenerationRow.ply)).all()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    renderer = Renderer(tokenizer, 1024, template_arguments=arguments)
    reasons = "q" in says and not arguments
    for kept in (False, True):
        dataset = cut(engine, home, rounds=[number], filter="all", reasoning="keep" if kept else "drop")
        rows = rows_of(home, dataset)
        own = [each for row in rows for each in row["messages"] if each["role"] == "assistant"]
        assert [each.get("reasoning") for each in own] == ["qz" if kept and reasons else None] * 4
        assert all(("ids" in each) == (kept or not reasons) for each in own)
        conversations = [Conversation("", "", tuple(row["messages"]), row.get("tokenizer")) for row in rows]
        bare = [Conversation("", "", tuple(_without_ids(row["messages"]))) for row in rows]
        for each in (conversations, bare):  # as it was sampled, and as the template has it
            found = [(sequence, span) for sequence in render_rows(each, renderer).sequences for span in sequence.spans]
            assert len(found) == len(calls) == 4
            for call, (sequence, span) in zip(calls, found, strict=True):
                sent = sequence.ids[: call.prompt_tokens]
                assert ids_hash(sent) == call.sampling["prompt_sha256"]
                between = tokenizer.decode(sequence.ids[len(sent) : span.begin])
                assert between.strip() in ("", "</think>", "<think></think>")
                learnt = tokenizer.decode(sequence.ids[span.begin : span.end])
                assert learnt.replace("\n", "") == f"{''.join(says[:-2]) if kept and reasons else ''}no<|im_end|>"
                assert not (kept and reasons and between)


def _without_ids(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: each[name] for name in ("role", "content", "reasoning") if name in each} for each in messages]


def test_a_round_stops_at_once_where_reasoning_has_no_room(engine: Engine, settings: Settings, tmp_path: Path) -> None:
    register(engine, "mine", tmp_path, scripted_model(tmp_path, OPENS, THINKS[1:]), reasoning_room=0, max_tokens=1)
    number = make_round(engine, "mine", game="taboo", matches=2)
    play(engine, settings, number)
    assert "reasoning_room (0 now)" in (row_of(engine, number).error or "")


def test_a_training_renders_with_the_arguments_of_its_base_and_the_new_model_plays_with_them(
    engine: Engine, settings: Settings, home: Path, tmp_path: Path
) -> None:
    given = {"template_arguments": {"enable_thinking": False}, "reasoning_room": 50}
    register(engine, "mine", tmp_path, scripted_model(tmp_path, STRIPS, THINKS), **given)
    job = make_job(engine, make_dataset(engine, settings), "next", base="mine", max_steps=1, device="cpu")
    assert train(engine, settings, job)
    made = model_of(engine, "next")
    assert made is not None
    assert {name: made.options[name] for name in given} == given
    provenance = json.loads((home / "checkpoints" / "next" / "parlor.json").read_text())
    assert provenance["config"]["template_arguments"] == given["template_arguments"]


@pytest.fixture
def settings(app: Any) -> Settings:
    return app.config["SETTINGS"]  # type: ignore[no-any-return]


# ---- What is computed once ----------------------------------------------------------


class Turn(NamedTuple):
    completion: Completion
    held: int  # tokens of the prompt that were computed before


@pytest.fixture(scope="module")
def few_words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for checkpoints of random weights with so few words that each answer soon closes its reasoning."""
    return tmp_path_factory.mktemp("words")


def random_model(folder: Path, template: str) -> Checkpoint:
    torch.manual_seed(3)
    tokenizer = make_tokenizer(["a", "b", "c"], 512)
    tokenizer.add_tokens([AddedToken(mark, special=False) for mark in ("<think>", "</think>")])
    tokenizer.chat_template = template.replace("<|im_start|>", "").replace("<|im_end|>", "<|end|>")
    config = TinyConfig(data=folder, output=folder, width=16, layers=2, heads=2, length=512)
    model = make_model(config, tokenizer)
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(4 if weights.dim() > 1 else 1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return Checkpoint(folder, write_provenance(folder, {}), "cpu", "auto")


@pytest.mark.parametrize(
    ("template", "arguments"),
    [(STRIPS, {}), (STRIPS, {"enable_thinking": False}), (OPENS, {})],
    ids=["the model opens", "off", "the prompt opens"],
)
def test_answers_are_the_same_with_what_was_computed_before_and_without(
    few_words: Path, monkeypatch: pytest.MonkeyPatch, template: str, arguments: dict[str, Any]
) -> None:
    held: list[int] = []
    take = PrefixCache.take

    def taken(cache: PrefixCache, ids: Sequence[int]) -> Any:
        found = take(cache, ids)
        held.append(sum(piece.shape[3] for piece in found))
        return found

    monkeypatch.setattr(PrefixCache, "take", taken)
    checkpoint = random_model(few_words / str(len(list(few_words.iterdir()))), template)

    async def talk(number: int, forgets: bool) -> list[Turn]:
        messages, found = [{"role": "user", "content": "a b c " * (number + 1)}], []
        for turn in range(4):
            if forgets:
                engines.release_caches()
            loop = asyncio.get_running_loop()
            ask = GenerationRequest(
                messages, Sampling(1, None, None), 6, f"{number} {turn}", loop, loop.create_future(),
                template_arguments=arguments, room=12,
            )  # fmt: skip
            answer = await engines.complete(checkpoint, ask, 8)
            assert isinstance(answer, Completion)
            found.append(Turn(answer, held[-1]))
            said = {"role": "assistant", "content": answer.text or "a"}
            messages = [*messages, said, {"role": "user", "content": "b c"}]
        return found

    reasoned = 0
    for number in range(6):
        kept, computed = asyncio.run(talk(number, forgets=False)), asyncio.run(talk(number, forgets=True))
        assert [each.completion.ids for each in kept] == [each.completion.ids for each in computed]
        assert [each.held for each in computed] == [0, 0, 0, 0]
        for before, after in pairwise(kept):
            # All of the prompt but the blocks in which it ends, and the move where it followed nothing else.
            assert before.completion.prompt_tokens - 4 <= after.held < after.completion.prompt_tokens
        reasoned += sum(each.completion.reasoning is not None for each in kept)
    assert reasoned > 2
