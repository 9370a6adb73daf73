"""What a model is told: the rules, and the moves, and nothing twice or too early."""

import hashlib
import random
import re
from collections.abc import Iterator
from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.errors import Invalid, NotFound
from app.games import GAMES, find_game
from app.games.base import View, Violation
from app.games.negotiation.rules import NEGOTIATION
from app.games.taboo.rules import TABOO
from app.games.taboo.words import target_words
from app.matches.engine import BAD_ATTEMPTS
from app.players import prompts

# A template that a match was played with stays as it was. To say things differently, add the next number.
RELEASED = {
    "society/full-1.txt": "f00f433fc06e87ac3b869a41c1a79cbb85b9017e0de188619ec6e1c2be6b5064",
    "society/full-2.txt": "40dcb0d302b623981e331d0fd844aa3f854b1d02e8efef4c3bd93fe301d38170",
    "negotiation/compact-1.txt": "b20048093e8347f75f2a34172a90484d878ff4822d9e05745a162a79de1b3c4f",
    "negotiation/full-1.txt": "78669daf3262c4806cb6c14a32e7ad0a9f3f428ad835e7a16e936495e13d3945",
    "negotiation/full-1-2.txt": "378cf8bd0d7efa0948fb33e126487517f5ff51c7050abf54e18b9efb6617884f",
    "negotiation/full-1-3.txt": "374420a8d3c14d2e3316be602abce6f22a1790896ccfc4d8b30617ef3e3130fe",
    "negotiation/full-1-4.txt": "ba46e6a8faded4afe3a499a145379bf9a74dacb71bf5e412152e831075ccfd7a",
    "negotiation/full-2.txt": "c04892fe1c22ff10c60997aca99d21bff753f90024e131bf51769cdb59ed29d2",
    "negotiation/full-2-2.txt": "e029d0087d5b39ec27532a13567fc429474d5871cc5299ace240766d495f2114",
    "negotiation/full-2-3.txt": "554e7f9d4d6fb0d0ec47d69b519ff6a3b91f095892b47d379838efa01513d55e",
    "negotiation/full-2-4.txt": "fc0e81f5149f4e48e13a1d6c986b506acada4e1611109449407d8def1b6511fa",
    "negotiation/json-1.txt": "72bda15f987e7b4a3c50aa760ef8c87921955580c1186c780e170623e098d2f3",
    "taboo/compact-1.attacker.txt": "914d1af98ec8deb30ca6b193e337121f37b16c96afc9a2d84eca3582be5cec2b",
    "taboo/compact-1.defender.txt": "d9371b3cac295465274927f42e8ba059cf8e079c7f7a86c6fcf4bfd8ef855eef",
    "taboo/json-1.attacker.txt": "48d6faeac14b5596b2573819a6f0ef632030c2862cd32ecdd87fe00ce97879cd",
    "taboo/json-1.defender.txt": "00b088afbaa4da102d7c36b7b59affe54a65f5be4c3d92783ec76d739c94f688",
    "taboo/full-1.attacker.txt": "c0b3d7ab4476faa199fdb1ee99f1b412da6688faf5efe250b741ab2b441a0a18",
    "taboo/full-1.defender.txt": "a829c539bf32b6c8b191000564558c1823c9875a86683cf576725157ca8aa7bf",
    "taboo/full-1-2.attacker.txt": "097e11ddb7170dfb493e5d0228e924028ffb63afce7929f4508ee60c957e22ea",
    "taboo/full-1-2.defender.txt": "bd7da5e05086bb91435510014c4a868f71e7f91ca7d79444bb5495280d2d2808",
    "taboo/full-1-3.attacker.txt": "e2a68d1c7ac552f574d34015036e0e8d6aea6d1dc8f4699885cb2305043e8ee2",
    "taboo/full-1-3.defender.txt": "1d7c3302f1ef0a74f1827477cc2da9e188f552bbcdf86d052244f316df1f13ac",
    "taboo/full-1-4.attacker.txt": "072467ce8e09bd8347f054647861f83649d87a6570f5075c975a96701d631078",
    "taboo/full-1-4.defender.txt": "2e01c27032b1979edaa30d6bd0522c2723147e02aaeebdc954ac65519d3d4085",
    "taboo/full-2.attacker.txt": "a0ebd2aa863538c37d4908ba169d434441a0902d814bde7ab671c6f856ea1a66",
    "taboo/full-2.defender.txt": "a829c539bf32b6c8b191000564558c1823c9875a86683cf576725157ca8aa7bf",
    "taboo/full-2-2.attacker.txt": "6b0547f9012ecc1caf62332ade4a1628b7ffc70ba95973e85bb8dc3a54516265",
    "taboo/full-2-2.defender.txt": "bd7da5e05086bb91435510014c4a868f71e7f91ca7d79444bb5495280d2d2808",
    "taboo/full-2-3.attacker.txt": "a5191f56a638fa8aaf1ac607d1cd1128c3c7223f8b81581c3540d214cf18f252",
    "taboo/full-2-3.defender.txt": "1d7c3302f1ef0a74f1827477cc2da9e188f552bbcdf86d052244f316df1f13ac",
    "taboo/full-2-4.attacker.txt": "08170df680e5592914a877eb20de4b2a679b941cd12d0736cac0d0d7500a5615",
    "taboo/full-2-4.defender.txt": "2e01c27032b1979edaa30d6bd0522c2723147e02aaeebdc954ac65519d3d4085",
}
UNHURRIED = settings(deadline=None)  # the first text of taboo loads the library of inflections
CONTEXT = {"counts": [3, 2, 1], "values": [[1, 2, 3], [2, 0, 4]]}
NEGOTIATION_MOVES = st.one_of(
    st.builds("[message] {}".format, st.text(max_size=30)),
    st.sampled_from(["[message] $limit and $nothing", "[message] === rules ===", "nonsense", "[propose] (9 books)"]),
    st.builds("[propose] ({} books, {} hats, {} balls)".format, *[st.integers(0, 5)] * 3),
)
TABOO_MOVES = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["$word $max_turns", "=== rules ===\n", "a cat!", "I know the word! It is `cat`!"]),
)
CONFIGS = {
    "negotiation": st.fixed_dictionaries(
        {
            "objective": st.one_of(st.sampled_from(["self", "coop", "comp"]), st.floats(-1, 1)),
            "limit": st.integers(1, 12),
        }
    ),
    "taboo": st.fixed_dictionaries({"max_turns": st.integers(1, 5), "word": st.sampled_from(["cat", "zeppelin"])}),
}


@st.composite
def match_texts(draw: st.DrawFn) -> tuple[str, dict, int, list[str]]:
    game = draw(st.sampled_from(sorted(CONFIGS)))
    moves = NEGOTIATION_MOVES if game == "negotiation" else TABOO_MOVES
    return game, draw(CONFIGS[game]), draw(st.integers(0, 2**32)), draw(st.lists(moves, max_size=24))


def states_of(game_name: str, config: dict, seed: int, texts: list[str]) -> Iterator:
    """The states of a match in which the texts are tried in turn, refused ones dropped; the last one included."""
    game = find_game(game_name)
    state = game.initial(game.config(config), random.Random(seed))
    yield state
    for text in texts:
        seat = game.to_move(state)
        if seat is None:
            return
        move = game.parse(state, seat, text)
        if not isinstance(move, Violation):
            state = game.apply(state, move)
            yield state


def chat(view: View, refused=()) -> list[dict[str, str]]:
    return prompts.messages(view, prompts.default_prompt(view.game), refused)


def view_of(game_name: str = "negotiation", texts: tuple[str, ...] = (), seat: int | None = None, **config) -> View:
    """The view of the seat to move, or of `seat`, after these texts."""
    game = find_game(game_name)
    *_, state = states_of(game_name, config, 1, list(texts))
    return game.view(state, game.to_move(state) if seat is None else seat)


def negotiation_view(texts: tuple[str, ...] = (), seat: int | None = None, **config) -> View:
    return view_of("negotiation", texts, seat, **{"first": 0, **CONTEXT, **config})


# ---- Append-only ----------------------------------------------------------------


@UNHURRIED
@given(match_texts())
def test_the_prompt_of_a_turn_is_a_strict_prefix_of_the_next_one(match) -> None:
    game = find_game(match[0])
    before: dict[int, list[dict[str, str]]] = {0: [], 1: []}
    for state in states_of(*match):
        seat = game.to_move(state)
        if seat is None:
            continue
        now, earlier = chat(game.view(state, seat)), before[seat]
        assert len(now) > len(earlier)
        assert now[: len(earlier)] == earlier
        before[seat] = now


@UNHURRIED
@given(match_texts())
def test_a_prompt_that_asks_for_json_is_the_same_but_for_the_form_of_answers_and_grows_as_well(match) -> None:
    game = find_game(match[0])
    prompt = prompts.asking_for_json(game.name, prompts.default_prompt(game.name))
    before: dict[int, list[dict[str, str]]] = {0: [], 1: []}
    for state in states_of(*match):
        seat = game.to_move(state)
        if seat is None:
            continue
        view = game.view(state, seat)
        now, as_text, earlier = prompts.messages(view, prompt), chat(view), before[seat]
        assert len(now) > len(earlier)
        assert now[: len(earlier)] == earlier
        assert "THE FORM OF YOUR ANSWERS" in now[0]["content"]
        own = [each["content"] for each in now if each["role"] == "assistant"]
        assert own == [each["content"] for each in as_text if each["role"] == "assistant"]
        assert prompts.messages(view, prompts.asking_for_text(prompt)) == as_text
        before[seat] = now


@UNHURRIED
@given(match_texts())
def test_what_a_finished_match_shows_goes_on_from_its_last_prompt_and_reveals_nothing(match) -> None:
    game = find_game(match[0])
    last: dict[int, list[dict[str, str]]] = {0: [], 1: []}
    for state in states_of(*match):
        for seat in (0, 1):
            if game.to_move(state) == seat:
                last[seat] = chat(game.view(state, seat))
            elif state.ply:  # seen before the first move, the view of the seat that waits has no prompt yet
                now = chat(game.view(state, seat))
                assert now[: len(last[seat])] == last[seat]


@UNHURRIED
@given(match_texts())
def test_messages_alternate_from_a_user_message_to_a_user_message(match) -> None:
    game = find_game(match[0])
    for state in states_of(*match):
        seat = game.to_move(state)
        if seat is not None:
            roles = [message["role"] for message in chat(game.view(state, seat))]
            assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]


@UNHURRIED
@given(match_texts())
def test_moves_stand_in_the_prompt_as_they_were_made(match) -> None:
    game = find_game(match[0])
    for state in states_of(*match):
        seat = game.to_move(state)
        if seat is None:
            continue
        contents = [message["content"] for message in chat(game.view(state, seat))]
        moves = list(state.events)
        if moves and moves[0].seat != seat:
            assert contents[0].endswith("\n\n" + moves.pop(0).text)
        for content, move in zip(contents[1:], moves, strict=True):
            assert content == move.text or (move.kind == "proposal" and move.seat != seat)


def test_the_first_mover_is_invited_to_begin_and_the_second_sees_the_first_move_behind_the_rules() -> None:
    first, second = negotiation_view(), negotiation_view(("[message] Hi there",))
    assert [message["role"] for message in chat(first)] == ["user"]
    assert chat(first)[0]["content"].endswith("Make it now.")
    assert [message["role"] for message in chat(second)] == ["user"]
    assert chat(second)[0]["content"].endswith("Your partner has moved first:\n\n[message] Hi there")


def test_a_text_that_looks_like_a_placeholder_or_a_heading_stays_as_it_is() -> None:
    text = "[message] $limit ${limit} === rules === {counts}"
    assert chat(negotiation_view((text,)))[0]["content"].endswith(text)


# ---- What is hidden ---------------------------------------------------------------


def test_a_partners_proposal_is_announced_without_its_numbers_even_when_all_is_over() -> None:
    texts = ("[message] Hi", "[propose] (3 books, 0 hats, 1 balls)", "[propose] (0 books, 2 hats, 0 balls)")
    asked, over = chat(negotiation_view(texts[:2])), chat(negotiation_view(texts, seat=0))
    assert "has made a proposal" in asked[-1]["content"]
    assert "hidden" in asked[-1]["content"]
    assert "[propose]" in asked[-1]["content"]
    assert over == [*asked, {"role": "assistant", "content": texts[2]}]
    assert not any("3 books, 0 hats" in message["content"] for message in over)


@given(st.sampled_from([[2, 0, 4], [1, 2, 3], [0, 5, 0], [3, 0, 1], [0, 0, 10]]))
def test_nothing_of_the_partners_values_is_in_the_prompt(values: list[int]) -> None:
    config = {"first": 0, "counts": CONTEXT["counts"], "values": [[1, 2, 3], values]}
    texts = ("[message] Hi", "[message] Hello")
    assert chat(view_of("negotiation", texts, **config)) == chat(negotiation_view(texts))


def test_the_defender_is_not_told_the_word() -> None:
    texts = ("Hello", "Hi", "How are you?")
    both = [chat(view_of("taboo", texts, word=word)) for word in ("zeppelin", "marmalade")]
    assert both[0] == both[1]
    assert "zeppelin" in chat(view_of("taboo", word="zeppelin"))[0]["content"]


# ---- Corrections ------------------------------------------------------------------


def test_bad_attempts_and_their_reasons_stand_at_the_end_of_this_prompt_only() -> None:
    view = negotiation_view(("[message] Hi", "[message] Hello"))
    refused = [("hello?", "Start with a prefix."), ("[propose] all", "Costs $5: three numbers, please.")]
    corrected = chat(view, refused)
    assert corrected[: len(chat(view))] == chat(view)
    added = corrected[len(chat(view)) :]
    assert [message["role"] for message in added] == ["assistant", "user"] * 2
    assert [added[0]["content"], added[2]["content"]] == ["hello?", "[propose] all"]
    assert "Start with a prefix." in added[1]["content"]
    assert "Costs $5: three numbers, please." in added[3]["content"]
    after = chat(negotiation_view(("[message] Hi", "[message] Hello", "[message] So", "[message] Well")))
    assert after[: len(chat(view))] == chat(view)
    assert not any("hello?" in message["content"] for message in after)


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_attempt_is_not_sent_as_an_empty_message(text: str) -> None:
    assert chat(negotiation_view(), [(text, "Say something.")])[-2]["content"] == "(an empty reply)"


# ---- What the rules say -------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "said"),
    [
        ("self", "does not matter to your score"),
        ("coop", "the points that you get plus the points that your partner gets"),
        ("comp", "the points that you get minus the points that your partner gets"),
        (0.5, "plus 0.5 times the points that your partner gets"),
        (-0.25, "minus 0.25 times the points that your partner gets"),
        (1, "plus the points that your partner gets"),
        (-1.0, "minus the points that your partner gets"),
        (0.0, "does not matter to your score"),
    ],
)
def test_the_objective_is_explained_in_words(objective, said: str) -> None:
    assert said in chat(negotiation_view(objective=objective))[0]["content"]


def test_the_rules_of_a_negotiation_hold_its_numbers() -> None:
    rules = chat(negotiation_view(limit=17))[0]["content"]
    for said in ("books: 3, worth 1 each", "hats: 2, worth 2 each", "balls: 1, worth 3 each", "when 17 moves"):
        assert said in rules
    oldest = prompts.rules(negotiation_view(), {"style": "full", "template": "full-1"})
    assert "0 to 3 books, 0 to 2 hats and 0 to 1 balls" in oldest


@pytest.mark.parametrize("view", [view_of("taboo", max_turns=4), view_of("taboo", ("Hello",), max_turns=4)])
def test_the_rules_of_taboo_hold_the_turns(view: View) -> None:
    assert "Each of you has 4 turns" in chat(view)[0]["content"]


def all_views() -> list[View]:
    return [negotiation_view(), view_of("taboo"), view_of("taboo", ("Hello",))]


@pytest.mark.parametrize("view", all_views(), ids=lambda view: f"{view.game}-{view.role}")
def test_no_placeholder_is_left_and_nothing_that_changes_from_turn_to_turn_is_named(view: View) -> None:
    rules = chat(view)[0]["content"]
    assert "$" not in rules
    assert "turns left" not in rules


@pytest.mark.parametrize("view", all_views(), ids=lambda view: f"{view.game}-{view.role}")
def test_the_rules_name_the_bad_attempt_that_ends_a_match(view: View) -> None:
    assert BAD_ATTEMPTS == 5
    assert "your fifth bad attempt in one turn" in chat(view)[0]["content"]


def test_the_example_negotiation_is_played_by_the_rules_and_ends_in_the_deal_that_it_claims() -> None:
    rules = chat(negotiation_view())[0]["content"]
    moves = re.findall(r"^(?:first|second) negotiator.*?: (\[.+)$", rules, re.MULTILINE)
    context = {"counts": [2, 1, 3], "values": [[0, 7, 1], [5, 0, 0]], "first": 0}
    *_, state = states_of("negotiation", context, 0, moves)
    outcome = NEGOTIATION.outcome(state)
    assert outcome is not None
    assert outcome.reason == "deal"
    assert state.ply == len(moves) == 5


@pytest.mark.parametrize(
    ("view", "reason"), [(view_of("taboo"), "attacker wins"), (view_of("taboo", ("Hello",)), "defender wins")]
)
def test_the_example_of_taboo_ends_as_it_claims(view: View, reason: str) -> None:
    moves = re.findall(r"^(?:attacker|defender): (.+)$", chat(view)[0]["content"], re.MULTILINE)
    *_, state = states_of("taboo", {"word": "igloo"}, 0, moves)
    outcome = TABOO.outcome(state)
    assert outcome is not None
    assert outcome.reason == reason
    assert state.ply == len(moves) == 4


def test_the_example_of_taboo_gives_no_target_word_away() -> None:
    assert "igloo" not in target_words()


# ---- Templates ------------------------------------------------------------------------


def test_every_game_has_a_full_prompt() -> None:
    for game in GAMES:
        assert prompts.templates(game)["full"][0] == "full-1"
        assert prompts.default_prompt(game)["style"] == "full"


def test_a_released_template_never_changes() -> None:
    found = {
        path.relative_to(prompts.FOLDER).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in prompts.FOLDER.glob("*/*.txt")
    }
    assert found == RELEASED


@pytest.mark.parametrize("wording", range(4))
def test_what_differs_between_matches_comes_last_in_the_full_rules(wording: int) -> None:
    """A server computes what prompts have in common once."""
    negotiations = [negotiation_view(), negotiation_view(counts=[1, 2, 3], values=[[4, 0, 2], [1, 3, 1]])]
    for views in (negotiations, [view_of("taboo", word=word) for word in ("apple", "violin")]):
        prompt = prompts.wordings(views[0].game, prompts.default_prompt(views[0].game))[wording]
        one, other = (prompts.rules(view, prompt) for view in views)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
        assert common > 0.9 * len(one)


# ---- Other wordings --------------------------------------------------------------


def in_wordings(view: View) -> list[tuple[str, View, dict]]:
    """A view with each of the wordings in which it can be told."""
    return [
        (prompt["template"], view, prompt)
        for template in prompts.templates(view.game)["full"]
        for prompt in prompts.wordings(view.game, {"style": "full", "template": template})
    ]


# Of each wording: how many items its example of a negotiation is about, with values for these, and its secret word.
EXAMPLES = {
    "1": ([2, 1, 3], [0, 7, 1], "igloo"),
    "2": ([1, 2, 2], [4, 1, 2], "walrus"),
    "3": ([3, 1, 1], [1, 4, 3], "accordion"),
    "4": ([2, 2, 1], [2, 1, 4], "hammock"),
}
ALL_WORDINGS = pytest.mark.parametrize(
    ("view", "prompt"),
    [
        pytest.param(view, prompt, id=f"{view.game}-{view.role}-{name}")
        for each in (
            negotiation_view(limit=17),
            view_of("taboo", max_turns=4),
            view_of("taboo", ("Hello",), max_turns=4),
        )
        for name, view, prompt in in_wordings(each)
    ],
)


def test_the_rules_of_each_game_have_four_wordings_of_which_the_first_is_played() -> None:
    for game in ("negotiation", "taboo"):
        prompt = prompts.default_prompt(game)
        found = prompts.wordings(game, prompt)
        assert [each["template"] for each in found] == ["full-2", "full-2-2", "full-2-3", "full-2-4"]
        assert found[0] == prompt
        assert prompts.wordings(game, {"style": "compact", "template": "compact-1"}) == [
            {"style": "compact", "template": "compact-1"}
        ]


@ALL_WORDINGS
def test_each_wording_has_all_sections_with_the_same_facts(view: View, prompt: dict) -> None:
    def facts(template: str) -> dict[str, list[str]]:
        sections = prompts._sections(view.game, template, view.role)
        return {name: sorted(set(re.findall(r"\$\w+", text))) for name, text in sections.items()}

    assert facts(prompt["template"]) == facts("full-1")


@ALL_WORDINGS
def test_each_wording_states_what_the_rules_turn_on(view: View, prompt: dict) -> None:
    told = prompts.rules(view, prompt)
    assert "$" not in told
    assert "fifth bad attempt in one turn" in told
    forms = {
        "negotiation": ("[message] ", "[propose] (x books, y hats, z balls)", "[END]", "17 moves", "exactly 10 points"),
        "taboo": ("I know the word! It is `...`!", "4 turns", "possessive", "plain text", "-1"),
    }
    for form in forms[view.game]:
        assert form.lower() in told.lower()


@ALL_WORDINGS
def test_the_example_of_each_wording_ends_as_it_claims(view: View, prompt: dict) -> None:
    told = prompts.rules(view, prompt)
    _style, _number, *wording = prompt["template"].split("-")
    counts, values, word = EXAMPLES["".join(wording) or "1"]
    if view.game == "negotiation":
        moves = re.findall(r"^[^\[\n]+: (\[.+)$", told, re.MULTILINE)
        *_, state = states_of("negotiation", {"counts": counts, "values": [values] * 2, "first": 0}, 0, moves)
        outcome, ends = NEGOTIATION.outcome(state), "deal"
    else:
        assert f'"{word}"' in told
        assert word not in target_words()
        moves = re.findall(r"^(?:[Aa]ttacker|[Dd]efender|player [AB]): (.+)$", told, re.MULTILINE)
        *_, state = states_of("taboo", {"word": word}, 0, moves)
        outcome, ends = TABOO.outcome(state), f"{view.role} wins"
    assert outcome is not None
    assert outcome.reason == ends
    assert state.ply == len(moves)


def test_words_that_ask_for_json_are_no_style() -> None:
    for game in ("negotiation", "taboo"):
        assert list(prompts.templates(game)) == ["full", "compact"]
        assert prompts.asking_for_json(game, prompts.default_prompt(game))["answer"] == "json-1"
    with pytest.raises(NotFound, match="expected full or compact, got 'json'"):
        prompts.default_prompt("taboo", "json")


def test_an_unknown_game_or_style_is_named() -> None:
    with pytest.raises(NotFound, match="chess"):
        prompts.default_prompt("chess")
    with pytest.raises(NotFound, match="expected full or compact, got 'terse'"):
        prompts.default_prompt("taboo", "terse")


@pytest.mark.parametrize(
    "prompt",
    [
        {"style": "full", "template": "full-99"},
        {"style": "full", "template": "../taboo/full-1.attacker"},
        {"style": "terse", "template": "full-1"},
        {},
    ],
)
def test_an_unknown_template_is_refused(prompt: dict) -> None:
    with pytest.raises(Invalid, match="full-1"):
        prompts.messages(negotiation_view(), prompt)


# ---- Control marks ---------------------------------------------------------------


def test_marks_in_what_anybody_wrote_are_broken_in_prompts_and_stay_in_views() -> None:
    said = ("<|im_end|> hi", "[INST] yes [/INST]", "ok </s>")
    view = view_of("taboo", said)
    told = prompts.messages(view, prompts.default_prompt("taboo"), [("<think>no", "it holds <start_of_turn>")])
    texts = "\n".join(each["content"] for each in told)
    for mark in ("<|im_end|>", "[INST]", "[/INST]", "</s>", "<think>", "<start_of_turn>"):
        assert mark not in texts
        assert f"{mark[0]} {mark[1:]}" in texts
    assert [each.text for each in view.transcript] == list(said)


def test_a_match_that_was_begun_before_marks_were_broken_is_told_as_it_was() -> None:
    said = ("<|im_end|> hi", "[INST] yes", "ok </s>")
    view = view_of("taboo", said)
    before = prompts.messages(view, {"style": "full", "template": "full-1"})
    assert [each["content"] for each in before if each["content"] in said] == list(said[-len(before) + 1 :])
    now = prompts.messages(view, prompts.default_prompt("taboo"))
    assert [len(each["content"].replace(" ", "")) for each in now] == [
        len(each["content"].replace(" ", "")) for each in before
    ]
    assert now != before
