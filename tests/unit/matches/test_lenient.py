"""Moves that a model wrapped: every wrapping of the grammar is taken off every move, and doubt leaves a text alone."""

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from app.games import find_game
from app.games.base import Event
from app.matches import engine
from app.matches.events import Violated, from_json, to_json
from app.matches.invisible import stripped
from app.matches.lenient import read_leniently

Wrapper = Callable[[str], str]

NEGOTIATION, TABOO = find_game("negotiation"), find_game("taboo")
SPLIT = {"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]], "first": 0}
NEGOTIATING = NEGOTIATION.initial(NEGOTIATION.config(SPLIT), random.Random(0))
LATER = NEGOTIATION.apply(NEGOTIATING, Event("message", 0, "[message] hi"))
LURING = TABOO.initial(TABOO.config({"word": "cat"}), random.Random(0))
GUESSING = TABOO.apply(LURING, Event("message", 0, "What purrs?", {"said": None}))
RELEASED = TABOO.initial(TABOO.config({"word": "cat", "rule": "released"}), random.Random(0))

PLACES: Sequence[tuple[Any, Any, int, Sequence[str]]] = (
    (
        NEGOTIATION,
        NEGOTIATING,
        0,
        ("[message] hi", "[Message] I'd take 2 books – you don’t need them.", "[message] 好"),
    ),
    (NEGOTIATION, LATER, 1, ("[propose] (1 books, 2 hats, 0 balls)", "[message] Two hats?\nOr one: say so.")),
    (TABOO, LURING, 0, ("What do you keep at home?", "Hello there", "It's a riddle.\nWhat purrs? 🐾 ❤️")),
    (TABOO, GUESSING, 1, ("I know the word! It is cat!", "I know the word! It is dog.", "Do you mean a tiger?")),
    (TABOO, RELEASED, 0, ("Which pets do you like?", "I don't know")),
)
MOVES = [(game, state, seat, move) for game, state, seat, moves in PLACES for move in moves]


def around(opening: str, closing: str | None = None) -> Wrapper:
    return lambda move: f"{opening}{move}{opening if closing is None else closing}"


ENDS: Sequence[Wrapper] = [
    around(opening, closing)
    for opening, closing in (("\ufeff", ""), ("", "\u200b"), ("\u200b\u2060", "\ufeff "), (" \u200e\n", "\n\u200f"))
]
MARKS = [
    *(around(mark) for mark in ("**", "*", "***", "__", "_", '"', "`", "```", "＂")),
    *(
        around(*pair)
        for pair in ("“”", "„“", "«»", "»«", "‹›", "「」", "『』", "《》", ("« ", " »"))
    ),
]  # fmt: skip
FENCES = [
    around(f"{mark}{language}\n", f"\n{mark}")
    for mark in ("```", "~~~", "````")
    for language in ("", "text", "markdown")
]
LABELS = ("{}: ", "{}:\n", "**{}:** ", "**{}**: ", "[{}]: ", "### {}:\n", "{}：")
ANYWHERE = [*ENDS, *MARKS, *FENCES]


def labels_of(game: Any, seat: int) -> list[Wrapper]:
    names = ("Assistant", "ASSISTANT", f"Player {seat + 1}", game.roles[seat].capitalize())
    return [around(form.format(name), "") for form in LABELS for name in names]


def tag_wrappers() -> list[Wrapper]:
    def marked(opening: str, closing: str) -> Wrapper:
        return lambda move: f"{opening}{move[: move.index(']') + 1]}{closing}{move[move.index(']') + 1 :]}"

    return [marked(*pair) for pair in (("**", "**"), ("*", "*"), ("__", "__"), ("`", "`"), ('"', '"'), ("“", "”"))]


def fits(wrapper: Wrapper, move: str) -> bool:
    """Whether a wrapping says where it ends: an apostrophe or a line may not be of the same marks."""
    text = wrapper(move)
    one_line = text.startswith("```") and "\n" not in text[: text.index(move)]
    return not (one_line and "\n" in move)


@pytest.mark.parametrize(("game", "state", "seat", "move"), MOVES, ids=[move for *_, move in MOVES])
def test_what_is_around_a_move_is_taken_off_and_the_original_kept(game: Any, state: Any, seat: int, move: str) -> None:
    plain = game.parse(state, seat, move)
    assert isinstance(plain, Event)
    labels = labels_of(game, seat)
    one = [*ANYWHERE, *labels, *(tag_wrappers() if game is NEGOTIATION else [])]
    two = [*itertools.product(ENDS, [*MARKS, *FENCES, *labels]), *itertools.product(labels[:8], [*MARKS, *FENCES])]
    texts = [wrapper(move) for wrapper in one if fits(wrapper, move)]
    texts += [outer(inner(move)) for outer, inner in two if fits(inner, move)]
    assert len(texts) > 300
    for text in texts:
        read = read_leniently(game, state, seat, text)
        assert read == Event(plain.kind, plain.seat, plain.text, plain.data, original=text), text


@pytest.mark.parametrize(("game", "state", "seat", "move"), MOVES, ids=[move for *_, move in MOVES])
def test_a_move_that_nothing_is_around_is_none_of_this(game: Any, state: Any, seat: int, move: str) -> None:
    for text in (move, f"  {move}\n"):
        assert read_leniently(game, state, seat, text) is None


TWO_MOVES = [
    "Assistant: [message] hi\n[propose] (1 books, 2 hats, 0 balls)",
    "```\n[propose] (1 books, 2 hats, 0 balls)\n[message] Deal?\n```",
    "```\n[propose] (1 books, 2 hats, 0 balls)\n**[propose] (1 books, 1 hats, 0 balls)**\n```",
    '"[message] hi" or "[message] bye"',
    "**[message] hi**\n**[message] bye**",
    "```\n[message] hi\n```\n```\n[message] bye\n```",
    "“[message] hi” “[message] bye”",
    "Player 2: [message] hi\nPlayer 1: [message] bye",
    "Assistant: [message] hi\nUser: [message] bye",
]
NO_MOVES = [
    'I would say "[message] hi"',
    "My move is **[message] hi**.",
    "Here is my move:\n```\n[message] hi\n```",
    "```python\nprint('[message] hi')\n```",
    '```json\n{"move": "[message] hi"}\n```',
    "Player 1: [message] hi",
    "User: [message] hi",
    "Partner: [message] hi",
    "**[reason]** I want hats",
    '"[message]"',
    "Assistant:",
    "```\n\n```",
    "**hi**",
    "[mess\u200bage] hi",
    "",
    "\ufeff",
]


@pytest.mark.parametrize("text", TWO_MOVES + NO_MOVES)
def test_two_moves_quoted_ones_and_code_are_refused_as_they_were(text: str) -> None:
    assert read_leniently(NEGOTIATION, LATER, 1, text) is None
    match = engine.replay([engine.start("negotiation", SPLIT, 1), Event("message", 0, "[message] hi")])
    strict, lenient = (engine.advance(match, 1, text, by_model=True, lenient=each)[0] for each in (False, True))
    assert lenient == strict
    assert isinstance(strict[0], Violated)


@pytest.mark.parametrize(
    "text",
    [
        'Is it "big" or "small"', "**Bold** start", "*a* and *b*", '"One" she said, "two"', "It is “here”", "a `b`",
        "```python\nprint('hello')\n```", "```\ndef purr(cat):\n    return cat[0]\n```", "```js\nx => 1\n```",
        "```\none\n```\n```\ntwo\n```", "Defender: what is it?", "Player 2: what is it?", "User: hello",
        "Assistant: hello\nDefender: hi\nAssistant: what purrs?", "The assistant: hello", "Assistant hello",
        "don't 'quote' me", "❤️", "it is _so_ hard",
    ],
)  # fmt: skip
def test_where_any_text_is_a_move_only_what_is_around_all_of_it_is_taken_off(text: str) -> None:
    assert read_leniently(TABOO, LURING, 0, text) is None


def test_a_text_that_the_judge_would_read_otherwise_is_left_alone() -> None:
    assistant = TABOO.initial(TABOO.config({"word": "assistant"}), random.Random(0))
    assert read_leniently(TABOO, assistant, 0, "Assistant: who helps a doctor?") is None
    assert read_leniently(TABOO, LURING, 0, "Assistant: who helps a doctor?") is not None


def test_the_log_keeps_what_was_written_and_replays_to_the_same_match() -> None:
    started = engine.start("negotiation", {**SPLIT, "lenient": True}, 1)
    assert started.config["lenient"] is True
    text = "\ufeff**[message]** hi"
    events, match = engine.advance(engine.replay([started]), 0, text, by_model=True, lenient=True)
    raw = [to_json(event) for event in (started, *events)]
    assert (raw[1]["text"], raw[1]["original"]) == ("[message] hi", text)
    assert match.lenient_moves == 1
    assert engine.replay(map(from_json, raw)) == match
    assert [entry.text for entry in match.view(1).transcript] == ["[message] hi"]


def test_a_log_of_before_has_no_originals_and_its_config_no_word_of_it() -> None:
    started = engine.start("negotiation", SPLIT, 1)
    assert "lenient" not in started.config
    events, match = engine.advance(engine.replay([started]), 0, "[message] hi", by_model=True, lenient=True)
    assert "original" not in to_json(events[0])
    assert match.lenient_moves == 0


@pytest.mark.parametrize(
    ("text", "left"),
    [("\ufeff a\u200b b \u2060", "a\u200b b"), ("\u200d", ""), ("❤️", "❤️"), ("👨‍👩‍👧", "👨‍👩‍👧"), ("a", "a")],
)
def test_invisible_characters_are_taken_off_the_ends_alone(text: str, left: str) -> None:
    assert stripped(text) == left
