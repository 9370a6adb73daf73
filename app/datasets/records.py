"""A match for import and export: its event log, its players, and the facts that the log cannot hold. Pure.

A source's own texts may contain what cannot be displayed or stored in every database. The events have the readable
form; `facts` keep the original, packed if it cannot be stored unchanged.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from app.core.errors import Invalid, Verbatim
from app.core.files import file_problem
from app.games.base import JSON
from app.matches import engine
from app.matches.events import Ended, LogEvent
from training.json_rows import RepeatedField, parse_json

PERSON, MODEL = "person", "model"
BEYOND_STORING = re.compile(r"\\u0000|[\ud800-\udfff]")
_PACKED = "packed"


@dataclass(frozen=True, slots=True)
class ImportedSeat:
    """The player of a seat: a person or a model, and the name given by the source, if any."""

    kind: str  # person | model
    player: str | None = None


@dataclass(frozen=True, slots=True)
class ImportedMatch:
    """One game of a source: its number there, its whole event log, and as JSON the `facts` that the log cannot hold.

    `engine.replay(events)` gives the outcome by our rules; the outcome recorded by the source is among the facts.
    `tokens` is the number in all moves, if the source counted them.
    """

    index: int
    game: str
    config: JSON
    events: tuple[LogEvent, ...]
    seats: tuple[ImportedSeat, ImportedSeat]
    facts: JSON = field(default_factory=dict)
    tokens: int | None = None

    @property
    def outcome(self) -> Ended:
        """The end of the match by our rules."""
        ended = self.events[-1]
        assert isinstance(ended, Ended)  # noqa: S101  # every importer closes the log
        return ended


class ExportableMatch(Protocol):
    """The attributes of a match that exporters need. A match played here has no facts."""

    @property
    def index(self) -> int: ...
    @property
    def events(self) -> tuple[LogEvent, ...]: ...
    @property
    def facts(self) -> JSON: ...
    @property
    def tokens(self) -> int | None: ...


def check(matches: Iterable[ImportedMatch]) -> int:
    """Read a source to its end and count its games, so that a bad file is found before anything is stored.

    Raises Invalid, as reading does. Matches are discarded one by one.
    """
    return sum(1 for _ in matches)


def closed(log: list[LogEvent], reason: str | None = None) -> tuple[LogEvent, ...]:
    """The log, ended by the game's own rules.

    `reason` is for a game that the source ended before the rules do: nobody scores in it.
    """
    match = engine.replay(log)
    outcome = match.game.outcome(match.state)
    if outcome is not None:
        return (*log, Ended.of(outcome))
    if reason is None:
        raise Invalid("log", expected="a game that is over", got=Verbatim(f"one that goes on after {match.ply} moves"))
    return (*log, Ended(reason, None, (0, 0), dict(match.game.unfinished)))


def packed(facts: JSON) -> JSON:
    """The facts in a form that every database can store: those with a NUL, half a surrogate pair or NaN become ASCII
    text.
    """
    try:
        storable = not BEYOND_STORING.search(json.dumps(facts, ensure_ascii=False, allow_nan=False))
    except ValueError:  # NaN, Infinity
        storable = False
    return facts if storable else {_PACKED: json.dumps(facts)}


def unpacked(facts: JSON) -> JSON:
    """The original facts from the result of `packed`."""
    if set(facts) == {_PACKED}:
        original: JSON = json.loads(facts[_PACKED])
        return original
    return facts


# ---- Reading files -----------------------------------------------------------


def read_text(path: Path, what: str) -> str:
    """The text of a file. Raises Invalid, which names the file, the expectation and what was found."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise Invalid(None, expected=what, got=Verbatim(file_problem(error)), subject=path) from None
    except UnicodeDecodeError as error:
        raise Invalid(
            None, expected=what, got=Verbatim(f"bytes at {error.start} that are not UTF-8"), subject=path
        ) from None


def read_json(path: Path, what: str) -> Any:
    """The value of a JSON file. Raises Invalid, which names the file, the expectation and what was found."""
    text = read_text(path, what).removeprefix("\ufeff")  # some programs begin files with it
    try:
        return parse_json(text)
    except RepeatedField as error:
        raise Invalid(None, expected="each field of an object once", got=Verbatim(str(error)), subject=path) from None
    except json.JSONDecodeError as error:
        got = f"no JSON at line {error.lineno}, column {error.colno}" if text.strip() else "an empty file"
        raise Invalid(None, expected=what, got=Verbatim(got), subject=path) from None
    except (RecursionError, ValueError):  # or a number of thousands of digits
        raise Invalid(None, expected=what, got=Verbatim("lists within lists without end"), subject=path) from None


def whole(raw: Any, where: str) -> int:
    """A whole number from JSON. Raises Invalid."""
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise Invalid(None, expected="a whole number", got=raw, subject=where)
    return raw
