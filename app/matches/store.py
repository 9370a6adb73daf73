"""Write matches: a new one whole, and additions to many matches in one statement per table.

Nothing here commits. `append` relies on two unique keys, (match, seq) and (match, seat, move_id): if two processes
append at once, one gets an IntegrityError and reads again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

from sqlalchemy import Connection, Dialect, LargeBinary, Table, text
from sqlalchemy.orm import Session

from app.games.base import Event
from app.matches.arrival import number_of_transaction
from app.matches.counts import count_ended
from app.matches.engine import readable
from app.matches.events import Ended, ServerAway, kind_of, to_json
from app.matches.stored import LoggedEvent, StoredMatch
from app.matches.text_index import text_row
from app.models import EventRow, GenerationRow, MatchRow, MatchText, SeatRow
from app.models.types import float32_bytes
from app.players.base import Generation

_MATCH, _SEAT, _EVENT, _GENERATION, _TEXT = (
    cast(Table, row.__table__) for row in (MatchRow, SeatRow, EventRow, GenerationRow, MatchText)
)
_WHILE_PLAYED = ("violations", "lenient_moves", "ply", "to_move", "model_to_move", "moved_at", "deadline")
_AT_THE_END = (
    "status", "reason", "winner", "utility_0", "utility_1", "agreed", "pareto_optimal", "words",
    "moves", "refused", "first_proposal", "unspoken", "measures", "ended_at",
)  # fmt: skip
# A move completes the turn, so its lease is freed.
_FREED = {"lease_owner": "NULL", "lease_until": "NULL", "lease_count": "0", "enqueued_at": "NULL"}


@dataclass(frozen=True, slots=True)
class SeatPerson:
    """The person in a seat, and whether models may be trained on what that person writes; None: was not asked."""

    training_consent: bool | None = None
    participant_id: int | None = None
    enrolment_id: int | None = None


@dataclass(frozen=True, slots=True)
class NewMatch:
    """A match that is not in the database yet. `tokens` are those of its accepted moves, for a match of a round.

    `arm_id` and `position` are its place in a study, and `people` identifies the persons in it by seat.
    """

    record: StoredMatch
    source: str
    round_id: int | None = None
    index: int | None = None
    tokens: int | None = None
    start_key: str | None = None
    arm_id: int | None = None
    position: int | None = None
    people: Mapping[int, SeatPerson] = field(default_factory=dict)


def insert_matches(session: Session, begun: Sequence[NewMatch]) -> None:
    """Write new matches whole, with all their events so far, in one statement per table."""
    connection = session.connection()
    numbered = (("inserted_in", number_of_transaction(connection.dialect.name)),)
    _insert_rows(connection, _MATCH, [_match_row(each) for each in begun], numbered)
    _insert_rows(connection, _SEAT, [row for each in begun for row in _seat_rows(each)])
    _insert_rows(
        connection, _EVENT, [_event_row(each.record.id, logged) for each in begun for logged in each.record.log]
    )
    _follow_ended(session, [each.record for each in begun], of_round=any(each.round_id is not None for each in begun))


def insert_generations(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write calls of language models, as `generation_row` makes them."""
    if rows:
        _insert_rows(session.connection(), _GENERATION, rows)


def set_tokens(session: Session, counted: Sequence[tuple[str, int]]) -> None:
    """Write the number of tokens in the accepted moves of matches, by match id."""
    rows = [{"id": match_id, "tokens": tokens} for match_id, tokens in counted]
    _update_matches(session.connection(), ("tokens",), {}, rows)


def generation_row(record: StoredMatch, seat: int, generation: Generation) -> dict[str, Any]:
    """A call as a row of the table; `record` is the match before the call."""
    return {
        "match_id": record.id,
        "seat": seat,
        "ply": record.match.ply,
        "attempt": len(record.match.refused),
        "language_model_id": record.seats[seat].language_model_id,
        **generation_columns(generation),
        "at": moment(datetime.now(UTC)),
    }


def generation_columns(generation: Generation) -> dict[str, Any]:
    """The columns of a call in the table, whatever it belongs to."""
    return {
        "model": generation.model,
        "prompt": generation.prompt,
        "text": None if generation.text is None else readable(generation.text),
        "reasoning": None if generation.reasoning is None else readable(generation.reasoning),
        "token_ids": generation.token_ids,
        "log_probs": None if generation.log_probs is None else float32_bytes(generation.log_probs),
        "sampling": generation.sampling,
        "prompt_tokens": generation.prompt_tokens,
        "completion_tokens": generation.completion_tokens,
        "cached_tokens": generation.cached_tokens,
        "cache_write_tokens": generation.cache_write_tokens,
        "reasoning_tokens": generation.reasoning_tokens,
        "estimated_tokens": generation.estimated_tokens,
        "cost": generation.cost,
        "cost_source": generation.cost_source,
        "outcome": generation.outcome,
        "latency": generation.latency,
        "retries": generation.retries,
        "error": generation.error,
    }


def append(session: Session, records: Sequence[tuple[StoredMatch, int]], *, of_round: bool = False) -> None:
    """Write the events of each record from number `known` on, and update its match's row.

    `of_round`: whether these are matches of a round.
    """
    events, played, ended, refused, delayed = [], [], [], [], []
    for record, known in records:
        new = record.log[known:]
        events += [_event_row(record.id, logged) for logged in new]
        if record.match.ended is not None:
            ended.append(_row_while_played(record) | _row_at_the_end(record, record.match.ended))
        elif any(isinstance(logged.event, Event) for logged in new):
            played.append(_row_while_played(record))
        elif any(isinstance(logged.event, ServerAway) for logged in new):
            delayed.append({"id": record.id, "deadline": _row_while_played(record)["deadline"]})
        else:
            refused.append({"id": record.id, "violations": record.match.violations})
    connection = session.connection()
    # The match's row first, as others lock it before they append: two transactions that hold one lock each and wait for
    # the other's would deadlock.
    _update_matches(connection, _WHILE_PLAYED, _FREED, played)
    _update_matches(connection, _WHILE_PLAYED + _AT_THE_END, _FREED, ended)
    _update_matches(connection, ("violations",), {}, refused)
    _update_matches(connection, ("deadline",), {}, delayed)
    _insert_rows(connection, _EVENT, events)
    _follow_ended(session, [record for record, _ in records], of_round=of_round)


def _follow_ended(session: Session, records: Sequence[StoredMatch], *, of_round: bool) -> None:
    """Add the finished matches to the search index, and count them."""
    over = [record for record in records if record.match.ended is not None]
    if over:
        texts = [text_row(each.id, (logged.event for logged in each.log)) for each in over]
        _insert_rows(session.connection(), _TEXT, texts)
        count_ended(session, [record.id for record in over], of_round=of_round)


def _match_row(begun: NewMatch) -> dict[str, Any]:
    """The whole row of a new match."""
    record = begun.record
    row = {
        "id": record.id,
        "game": record.match.game.name,
        "source": begun.source,
        "round_id": begun.round_id,
        "index": begun.index,
        "status": "playing",
        "seed": record.seed,
        "config": record.match.state.config.to_json(),
        "start_key": begun.start_key,
        "arm_id": begun.arm_id,
        "position": begun.position,
        "options": None if record.options is None else record.options.to_json(),
        "started_at": moment(record.log[0].at),
        "lease_count": 0,
        "tokens": begun.tokens,
        **_row_while_played(record),
    }
    return row if record.match.ended is None else row | _row_at_the_end(record, record.match.ended)


def _seat_rows(begun: NewMatch) -> list[dict[str, Any]]:
    record, nobody = begun.record, SeatPerson()
    roles = record.match.game.roles
    return [
        {
            "match_id": record.id,
            "seat": number,
            "role": roles[number],
            "kind": seat.kind,
            "language_model_id": seat.language_model_id,
            "prompt": None if seat.spec is None or not seat.is_prompted else (seat.spec.system or {}).get("prompt"),
            "player": seat.player,
            "training_consent": person.training_consent,
            "participant_id": person.participant_id,
            "enrolment_id": person.enrolment_id,
        }
        for number, seat in enumerate(record.seats)
        for person in (begun.people.get(number, nobody),)
    ]


def _event_row(match_id: str, logged: LoggedEvent) -> dict[str, Any]:
    row = {
        "match_id": match_id,
        "seq": logged.seq,
        "kind": kind_of(logged.event),
        "seat": logged.seat,
        "ply": logged.ply,
        "move_id": logged.move_id,
        "body": to_json(logged.event),
        "at": moment(logged.at),
    }
    return row if logged.timing is None else {**row, "timing": dict(logged.timing)}


def _row_while_played(record: StoredMatch) -> dict[str, Any]:
    deadline = record.deadline
    return {
        "id": record.id,
        "violations": record.match.violations,
        "lenient_moves": record.match.lenient_moves,
        "ply": record.match.ply,
        "to_move": record.match.to_move,
        "model_to_move": record.model_to_move,
        "moved_at": moment(record.log[-1].at),
        "deadline": None if deadline is None else moment(deadline.at),
    }


def _row_at_the_end(record: StoredMatch, ended: Ended) -> dict[str, Any]:
    moves = [logged.event for logged in record.log if isinstance(logged.event, Event)]
    measures = record.match.game.measures(record.match.state.config.to_json(), moves)
    return {
        "status": "over",
        "reason": ended.reason,
        "winner": ended.winner,
        "utility_0": ended.utilities[0],
        "utility_1": ended.utilities[1],
        "agreed": ended.facts.get("agreed"),
        "pareto_optimal": ended.facts.get("pareto_optimal"),
        "words": sum(len(event.text.split()) for event in moves),
        "moves": record.match.ply,
        "refused": record.match.violations,
        "first_proposal": next((ply for ply, event in enumerate(moves) if event.kind == "proposal"), None),
        "unspoken": measures.get("unspoken"),
        "measures": measures or None,
        "ended_at": moment(record.log[-1].at),
    }


# ---- Many rows in one statement ------------------------------------------------
# Every move takes this path. Rows travel as one JSON text that the database takes apart: a driver that gets them one by
# one releases the interpreter's lock for each, and has to wait for it again. The statements are built from column names
# alone.


def _insert_rows(
    connection: Connection,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    constants: tuple[tuple[str, str], ...] = (),
) -> None:
    """Insert rows; a column that a row lacks is NULL, and a key that the database numbers is in none. `constants` are
    SQL.
    """
    left_out = {name for name, _ in constants} | ({"id"} - rows[0].keys())
    names = tuple(column.name for column in table.columns if column.name not in left_out)
    statement = _insertion(connection.dialect, table, names, constants)
    connection.execute(statement, {"rows": _json_of(connection.dialect, names, rows)})


def _update_matches(
    connection: Connection, names: tuple[str, ...], constants: Mapping[str, str], rows: Sequence[Mapping[str, Any]]
) -> None:
    if rows:
        statement = _updating(connection.dialect, names, tuple(constants.items()))
        connection.execute(statement, {"rows": _json_of(connection.dialect, ("id", *names), rows)})


@lru_cache(maxsize=8)
def _insertion(dialect: Dialect, table: Table, names: tuple[str, ...], constants: tuple[tuple[str, str], ...]) -> Any:
    columns = ", ".join([*map(_quoted_column_name, names), *(name for name, _ in constants)])
    values = ", ".join([*map(_quoted_column_name, names), *(value for _, value in constants)])
    return text(f'INSERT INTO "{table.name}" ({columns}) SELECT {values} FROM {_json_rows(dialect, table, names)}')  # noqa: S608


@lru_cache(maxsize=16)
def _updating(dialect: Dialect, names: tuple[str, ...], constants: tuple[tuple[str, str], ...]) -> Any:
    changes = [f"{name} = new.{name}" for name in names] + [f"{name} = {value}" for name, value in constants]
    rows = _json_rows(dialect, _MATCH, ("id", *names))
    return text(f'UPDATE "match" SET {", ".join(changes)} FROM {rows} WHERE "match".id = new.id')  # noqa: S608


def _json_of(dialect: Dialect, names: tuple[str, ...], rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as JSON for `_json_rows`: arrays on SQLite, which looks a key up by comparing it with all before it."""
    values = [[row.get(name) for name in names] for row in rows] if dialect.name == "sqlite" else rows
    return json.dumps(values, default=_hexadecimal)


def _json_rows(dialect: Dialect, table: Table, names: tuple[str, ...]) -> str:
    """A table expression `new` of the JSON that is bound to `rows`."""
    if dialect.name == "sqlite":
        fields = ", ".join(
            f"{_sqlite_value(table, name, place)} AS {_quoted_column_name(name)}" for place, name in enumerate(names)
        )
        return f"(SELECT {fields} FROM json_each(:rows)) AS new"  # noqa: S608
    fields = ", ".join(f"{_quoted_column_name(name)} {table.columns[name].type.compile(dialect)}" for name in names)
    return f"json_to_recordset(CAST(:rows AS json)) AS new({fields})"


def _sqlite_value(table: Table, name: str, place: int) -> str:
    value = f"value ->> {place}"
    return f"bytes_of_hex({value})" if isinstance(table.columns[name].type, LargeBinary) else value


def _hexadecimal(value: bytes) -> str:
    """Bytes in PostgreSQL's text form; on SQLite `bytes_of_hex` reads it."""
    return f"\\x{value.hex()}"


def _quoted_column_name(name: str) -> str:
    return f'"{name}"'  # one column is called index


def moment(at: datetime) -> str:
    """As the column stores it: UTC without a zone, with microseconds, and as SQLAlchemy writes it on SQLite."""
    return at.isoformat(" ", "microseconds").removesuffix("+00:00")
