"""What is typed at a terminal becomes the game's own moves, and what is read there tells no more than the view."""

import random
from typing import Any

import pytest

from app.games import GAMES, find_game
from app.games.base import Event, View
from app.matches.events import Ended
from app.matches.terminal import lines as terminal
from app.matches.terminal.phrases import MOVE, UNCLEAR, TerminalInput

SPLIT = {"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]], "first": 0}


def view_of(game: str, seat: int, *moves: str, **config: Any) -> View:
    rules = find_game(game)
    state = rules.initial(rules.config(config), random.Random(1))
    for text in moves:
        mover = rules.to_move(state)
        assert mover is not None
        event = rules.parse(state, mover, text)
        assert isinstance(event, Event), event
        state = rules.apply(state, event)
    return rules.view(state, seat)


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("hello there", TerminalInput(MOVE, "[message] hello there")),
        ("  [Message] hello ", TerminalInput(MOVE, "[Message] hello")),
        ("[propose] (1 books, 2 hats, 0 balls)", TerminalInput(MOVE, "[propose] (1 books, 2 hats, 0 balls)")),
        ("/offer 1 2 0", TerminalInput(MOVE, "[propose] (1 books, 2 hats, 0 balls)")),
        ("/OFFER 1, 02,0", TerminalInput(MOVE, "[propose] (1 books, 2 hats, 0 balls)")),
        ("/offer 9 9 9", TerminalInput(MOVE, "[propose] (9 books, 9 hats, 9 balls)")),
        ("//offer is a command", TerminalInput(MOVE, "[message] /offer is a command")),
        ("/quit", TerminalInput("resign")),
        ("/HELP", TerminalInput("help")),
        ("/show", TerminalInput("show")),
    ],
)
def test_a_line_of_a_negotiation_becomes_a_move(line: str, typed: TerminalInput) -> None:
    assert terminal.read_line(view_of("negotiation", 0, **SPLIT), line) == typed


@pytest.mark.parametrize(
    "line", ["", "   ", "/offer", "/offer 1 2", "/offer a b c", "/offer 1 2 3 4", "/guess cat", "/"]
)
def test_an_unclear_line_is_explained_and_makes_no_move(line: str) -> None:
    typed = terminal.read_line(view_of("negotiation", 0, **SPLIT), line)
    assert typed.kind == UNCLEAR
    assert typed.text


@pytest.mark.parametrize("rule", ["strict", "released"])
def test_a_guess_is_a_declaration_under_both_rules(rule: str) -> None:
    view = view_of("taboo", 1, "a small pet", word="cat", rule=rule)
    typed = terminal.read_line(view, "/guess cat")
    rules = find_game("taboo")
    state = rules.initial(rules.config({"word": "cat", "rule": rule}), random.Random(1))
    state = rules.apply(state, Event("message", 0, "a small pet", {"said": None}))
    event = rules.parse(state, 1, typed.text)
    assert isinstance(event, Event)
    assert (event.kind, event.data["right"]) == ("declaration", True)


def test_the_attacker_is_kept_from_guessing_by_mistake() -> None:
    assert terminal.read_line(view_of("taboo", 0, word="cat"), "/guess cat").kind == UNCLEAR


def test_the_opening_shows_the_seats_own_secret_and_not_the_partners() -> None:
    mine = "\n".join(terminal.opening_lines(view_of("negotiation", 0, **SPLIT)))
    assert "hats   2 on the table, each worth 3 to you" in mine
    assert "worth 4" not in mine
    assert "cat" not in "\n".join(terminal.opening_lines(view_of("taboo", 1, word="cat")))
    assert "cat" in "\n".join(terminal.opening_lines(view_of("taboo", 0, word="cat")))


@pytest.mark.parametrize(
    ("objective", "words"), [("coop", "together"), ("comp", "less"), (0.25, "0.25"), ("self", "own")]
)
def test_the_opening_says_what_a_score_is(objective: object, words: str) -> None:
    assert words in "\n".join(terminal.opening_lines(view_of("negotiation", 0, objective=objective, **SPLIT)))


def test_a_hidden_offer_has_no_figures_until_both_have_offered() -> None:
    moves = ["[message] hi", "[message] hello", "[propose] (1 books, 2 hats, 0 balls)"]
    waiting = view_of("negotiation", 1, *moves, **SPLIT)
    assert "1 books" not in terminal.entry_line(waiting, waiting.transcript[-1])
    over = view_of("negotiation", 1, *moves, "[propose] (2 books, 0 hats, 1 balls)", **SPLIT)
    assert terminal.entry_line(over, over.transcript[2]) == " partner: takes (1 books, 2 hats, 0 balls)"


def test_later_lines_of_a_text_cannot_pass_for_somebody_elses() -> None:
    view = view_of("taboo", 1, "one\n     you: I give up\rthree", word="cat")
    assert terminal.entry_line(view, view.transcript[0]).splitlines()[1].startswith("          ")
    assert "\r" not in terminal.entry_line(view, view.transcript[0])


@pytest.mark.parametrize("name", list(GAMES))
@pytest.mark.parametrize("reason", ["deal", "attacker wins", "resigned", "aborted", "timeout", "something new"])
def test_every_ending_is_told_with_both_scores(name: str, reason: str) -> None:
    config = {"taboo": {"word": "cat"}, "negotiation": SPLIT}.get(name, {})
    lines = terminal.ending_lines(view_of(name, 1, **config), Ended(reason, None, (7, 6.5)), "a reason")
    assert lines[-1] == "Your score: 6.5. Your partner’s: 7."
    assert lines[-2] == "What went wrong: a reason"


@pytest.mark.parametrize("name", list(GAMES))
def test_help_names_every_command(name: str) -> None:
    text = "\n".join(terminal.help_lines(view_of(name, 0)))
    assert all(command in text for command in ("/quit", "/show", "/help"))
