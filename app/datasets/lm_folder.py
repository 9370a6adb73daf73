"""The output folder of the published self-play on Deal or No Deal: its files, and their contents for one game. Pure.

Source: Liao, Tomlin & Klein 2024, arXiv 2406.18872, and the files that its published code writes. A game has a number
of three digits, more above 999, and these files:

- `json_logs/NNN_pS.json`: the chat as seat S saw it, `[{role, content}]`: system prompt, own moves as
  the assistant's, the partner's as the user's; a partner's proposal is a notice without numbers
- `results/NNN.json`: counts, values, allocations, scores, lengths, and whether there was a deal
- `text_logs/NNN_full.txt`: context, all moves as `Player S: …`, both scores
- `text_logs/NNN_pS.txt`: the whole output of the model in seat S, each failed attempt with its
  `Error: …`
- `p0_scores`, `p1_scores`: one score per line, in the order of the games
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from app.core.errors import Invalid
from app.datasets.records import ExportableMatch, unpacked
from app.games.base import JSON, Event
from app.games.negotiation.contexts import ITEMS
from app.games.negotiation.rules import NEGOTIATION
from app.matches import engine
from app.matches.events import Aborted, Ended, LogEvent, Resigned, Started, TimedOut, Violated
from app.players import prompts

LOGS, RESULTS, TEXTS = "json_logs", "results", "text_logs"
SCORES = ("p0_scores", "p1_scores")
ABORT = "[ABORT]"
PROPOSE = "[propose]"
ERROR = "Error: "
LIMIT = 50

# How GPT-2 splits a text before tokenizing; each piece becomes one or more tokens.
_PIECES = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+")

Message = dict[str, str]


@dataclass(frozen=True, slots=True)
class PublishedGame:
    """The contents of the files of one game. `player_S` is None if `NNN_pS.txt` does not exist."""

    log_0: list[Message]
    log_1: list[Message]
    result: JSON
    full: str
    player_0: str | None
    player_1: str | None
    score_0: int | float
    score_1: int | float


class _Move(NamedTuple):
    seat: int
    text: str
    is_proposal: bool = False


RECORD_FIELDS = tuple(PublishedGame.__dataclass_fields__)


def number(index: int) -> str:
    """A game's number as its file names have it."""
    return f"{index:03d}"


def record_of(match: ExportableMatch) -> PublishedGame:
    """The files of a match, made from its events, and from its facts where the source had other content."""
    facts = unpacked(match.facts)
    made = _published_game(match, facts)
    return replace(made, **{name: facts[name] for name in RECORD_FIELDS if name in facts})


def facts_of(match: ExportableMatch, source: PublishedGame) -> JSON:
    """The match's facts, and everything in the source's files that its events do not reproduce."""
    made = _published_game(match, match.facts)
    return match.facts | {
        name: getattr(source, name) for name in RECORD_FIELDS if getattr(source, name) != getattr(made, name)
    }


# ---- From events to files -----------------------------------------------------


def _published_game(match: ExportableMatch, facts: JSON) -> PublishedGame:
    started = match.events[0]
    ended = match.events[-1]
    if not isinstance(started, Started) or started.game != NEGOTIATION.name or not isinstance(ended, Ended):
        raise Invalid("match", expected="a negotiation that is over", got=started, subject=f"match {match.index}")
    moves = _accepted_moves(started.config, match.events)
    system, notice = facts.get("system"), facts.get("notice")
    if system is None:
        system, notice = _our_words(match.events)
    allocations = _allocations(match.events)
    scores = ended.utilities
    tokens = facts.get("token_count", match.tokens)
    return PublishedGame(
        log_0=_log_of_seat(0, moves, system[0], notice),
        log_1=_log_of_seat(1, moves, system[1], notice),
        result={
            "counts": _by_item(started.config["counts"]),
            "p0_values": _by_item(started.config["values"][0]),
            "p1_values": _by_item(started.config["values"][1]),
            "p0_allocation": allocations[0],
            "p1_allocation": allocations[1],
            "p0_score": scores[0],
            "p1_score": scores[1],
            "message_count": len(moves),
            "token_count": sum(len(_PIECES.findall(move.text)) for move in moves) if tokens is None else tokens,
            "is_valid_deal": bool(ended.facts["agreed"]),
        },
        full=_full(started.config, moves, scores),
        player_0=_player_text(0, started.config, match.events),
        player_1=_player_text(1, started.config, match.events),
        score_0=scores[0],
        score_1=scores[1],
    )


def _accepted_moves(config: JSON, events: Sequence[LogEvent]) -> list[_Move]:
    """The accepted moves; the last one of a match that ended before the rules end it is [ABORT]."""
    moves: list[_Move] = []
    seat = None  # who stopped it
    for event in events:
        if isinstance(event, Event):
            moves.append(_Move(event.seat, event.text, event.kind == "proposal"))
        elif isinstance(event, Aborted | TimedOut | Resigned):
            seat = event.seat
    if sum(move.is_proposal for move in moves) < 2 and len(moves) < config["limit"]:
        mover = 1 - moves[-1].seat if moves else config["first"]
        moves.append(_Move(mover if seat is None else seat, ABORT))
    return moves


def _log_of_seat(seat: int, moves: Sequence[_Move], system: str | None, notice: str | None) -> list[Message]:
    log = [] if system is None else [{"role": "system", "content": system}]
    for move in moves:
        if move.seat == seat:
            log.append({"role": "assistant", "content": move.text})
        else:
            log.append({"role": "user", "content": (notice or PROPOSE) if move.is_proposal else move.text})
    return log


def _our_words(events: tuple[LogEvent, ...]) -> tuple[list[str], str]:
    """Our prompt's rules for each seat, and its text in place of a partner's proposal."""
    match = engine.replay(events[:1])
    used = [prompts.asking_for_text(each or prompts.default_prompt(match.game.name)) for each in match.prompts]
    views = [match.view(seat) for seat in range(2)]
    system = [
        "\n\n".join([*([before["text"]] if (before := prompt.get("system")) else []), prompts.rules(view, prompt)])
        for view, prompt in zip(views, used, strict=True)
    ]
    return system, f"{PROPOSE} {prompts.instead_of(views[0], used[0], 'proposal')}"


def _allocations(events: Sequence[LogEvent]) -> list[JSON | None]:
    found: list[JSON | None] = [None, None]
    for event in events:
        if isinstance(event, Event) and event.kind == "proposal":
            found[event.seat] = _by_item(event.data["allocation"])
    return found


def _full(config: JSON, moves: Sequence[_Move], scores: Sequence[float]) -> str:
    books, hats, balls = config["counts"]
    lines = [f"Item counts: there are {books} books, {hats} hats, and {balls} balls."]
    lines += [f"Player {seat} values: {_item_values_in_words(config, seat, 'books')}" for seat in range(2)]
    lines += ["", ""]
    lines += [f"Player {move.seat}: {move.text}" for move in moves]
    lines += [f"Player {seat} FINAL SCORE: {score} " for seat, score in enumerate(scores)]
    return "\n".join(lines) + "\n"


def _player_text(seat: int, config: JSON, events: Sequence[LogEvent]) -> str:
    lines = [header(config, seat)]
    for event in events:
        if isinstance(event, Event) and event.seat == seat:
            lines.append(event.text)
        elif isinstance(event, Violated) and event.seat == seat:
            lines += [event.text, f"{ERROR}{event.reason}"]
    return "\n".join(lines) + "\n"


def header(config: JSON, seat: int) -> str:
    """The beginning of `NNN_pS.txt`, without its last line break."""
    return f"{_item_values_in_words(config, seat, 'Books')}\n\n"


def _item_values_in_words(config: JSON, seat: int, books: str) -> str:
    book, hat, ball = config["values"][seat]
    return f"{books} are worth {book} points, hats are worth {hat} points, and balls are worth {ball} points."


def _by_item(numbers: Sequence[int]) -> dict[str, Any]:
    return dict(zip(ITEMS, numbers, strict=True))
