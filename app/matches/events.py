"""The event log's types, frozen and versioned, and their JSON form. A match is the fold of its events.

A move is a `games.base.Event`, whose kinds are the game's; the types here are what can happen around the moves.
Version 1 of each is what `from_json` reads; a later version adds a branch there and old logs keep replaying.
"""

from dataclasses import dataclass, field, fields
from typing import Any

from app.core.errors import Invalid, Verbatim
from app.games.base import JSON, Event, Outcome
from app.matches.invisible import invisible

VERSION = 1


@dataclass(frozen=True, slots=True)
class Started:
    """The match exists: the resolved config, in which nothing is left to chance, and how each model is prompted.

    `prompts` has one entry per seat: {"style", "template", "renderer"} for a language model, the last missing in logs
    from before it had versions, and "answer" if its moves are asked for as JSON; None for anyone else. `clocks` has the
    seconds of those that run: {"turn", "match"}, or is None.
    """

    game: str
    game_version: int
    config: JSON
    prompts: tuple[JSON | None, JSON | None] = (None, None)
    clocks: JSON | None = None


@dataclass(frozen=True, slots=True)
class Violated:
    """A move was refused. It consumes no ply; `text` is the refused move."""

    seat: int
    text: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Resigned:
    """The person in `seat` left the match."""

    seat: int


@dataclass(frozen=True, slots=True)
class TimedOut:
    """A clock ran out: the turn's, which was `seat`'s, or the match's or that of open matches, which belong to
    nobody.
    """

    seat: int | None
    clock: str


@dataclass(frozen=True, slots=True)
class ServerAway:
    """No web process served people for `seconds`: the turn's clock restarts, and the match's is extended by as much."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Aborted:
    """The match cannot continue. `detail` is for the log.

    `fault` says who caused it: the model in `seat`, its settings, the vendor that serves it, or we (us). Logs from
    before there were others have only model and us.
    """

    seat: int | None
    fault: str
    detail: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The last event of every match: its outcome."""

    reason: str
    winner: int | None
    utilities: tuple[float, float]
    facts: JSON = field(default_factory=dict)

    @classmethod
    def of(cls, outcome: Outcome) -> "Ended":
        return cls(outcome.reason, outcome.winner, outcome.utilities, outcome.facts)


LogEvent = Started | Event | Violated | Resigned | TimedOut | ServerAway | Aborted | Ended

_KINDS: dict[str, type[Any]] = {
    "started": Started,
    "violation": Violated,
    "resigned": Resigned,
    "timeout": TimedOut,
    "away": ServerAway,
    "aborted": Aborted,
    "ended": Ended,
}
_NAMES = {cls: name for name, cls in _KINDS.items()}
_FIELDS = {cls: tuple(each.name for each in fields(cls)) for cls in _NAMES}
RESERVED = frozenset(_KINDS)  # no game may use these names for moves


def kind_of(event: LogEvent) -> str:
    """The event's kind as named in the table and the exports."""
    return event.kind if isinstance(event, Event) else _NAMES[type(event)]


def to_json(event: LogEvent) -> JSON:
    """The event as JSON, with its version. What is nested in it is the event's own, so do not change it."""
    if isinstance(event, Event):
        raw = {"v": VERSION, "kind": event.kind, "seat": event.seat, "text": event.text, "data": dict(event.data)}
        if event.original is not None:
            raw["original"] = event.original
    else:
        cls = type(event)
        raw = {"v": VERSION, "kind": _NAMES[cls], **{name: getattr(event, name) for name in _FIELDS[cls]}}
    if isinstance(event, Started) and event.clocks is None:
        del raw["clocks"]  # as in logs from before clocks existed
    if isinstance(event, Event | Violated) and (hidden := invisible(event.text)):
        raw["invisible"] = hidden  # for readers of the log: it follows from the text
    return raw


def from_json(raw: JSON) -> LogEvent:
    """The event that `to_json` wrote. Raises Invalid for a version or kind this code does not know."""
    if raw.get("v") != VERSION:
        raise Invalid("event", expected=f"version {VERSION}", got=raw.get("v"), remedy="a newer Parlor wrote this log")
    fields = {name: value for name, value in raw.items() if name not in ("v", "kind", "invisible")}
    try:
        if raw["kind"] not in _KINDS:
            return Event(raw["kind"], fields["seat"], fields["text"], fields["data"], fields.get("original"))
        for name in ("prompts", "utilities"):
            if name in fields:
                fields[name] = tuple(fields[name])
        event: LogEvent = _KINDS[raw["kind"]](**fields)
        return event
    except (KeyError, TypeError) as error:
        raise Invalid(
            "event",
            expected=f"the fields of version {VERSION}",
            got=Verbatim(error),
            subject=f"event {raw.get('kind')!r}",
        ) from None
