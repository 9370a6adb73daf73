"""Writes matches: a new one whole, and whatever was added to many of them in one statement a table.

Nothing here commits. `append` relies on two unique keys, (match, seq) and (match, seat, move_id): of two processes
that append at once, one gets an IntegrityError and reads again.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

from sqlalchemy import Connection, Dialect, Table, insert, text
from sqlalchemy.orm import Session

from app.games.base import Event
from app.matches.events import Ended, kind_of, to_json
from app.matches.record import Logged, Record
from app.models import EventRow, MatchRow, SeatRow

_MATCH, _EVENT = cast(Table, MatchRow.__table__), cast(Table, EventRow.__table__)
_WHILE_PLAYED = ("violations", "ply", "to_move", "model_to_move", "moved_at", "deadline")
_AT_THE_END = ("status", "reason", "winner", "utility_0", "utility_1", "agreed", "pareto_optimal", "ended_at")
# Whoever held the lease of a turn has done what it was for, once there is a move.
_FREED = {"lease_owner": "NULL", "lease_until": "NULL", "lease_count": "0", "rung_at": "NULL"}


def insert_match(session: Session, record: Record, source: str, start_key: str | None) -> None:
    """Write a new match with all of its log."""
    now = record.log[0].at
    session.execute(
        insert(MatchRow).values(
            id=record.id,
            game=record.match.game.name,
            source=source,
            status="playing",
            seed=record.seed,
            config=record.match.state.config.to_json(),
            start_key=start_key,
            started_at=now,
            moved_at=now,
            lease_count=0,
        )
    )
    for number, seat in enumerate(record.seats):
        role = record.match.game.roles[number]
        session.execute(
            insert(SeatRow).values(
                match_id=record.id,
                seat=number,
                role=role,
                kind=seat.kind,
                language_model_id=seat.language_model_id,
            )
        )
    append(session, [(record, 0)])


def append(session: Session, records: Sequence[tuple[Record, int]]) -> None:
    """Write the events of each record from number `known` on, and bring its match's row up to date."""
    events, played, ended, refused = [], [], [], []
    for record, known in records:
        new = record.log[known:]
        events += [_event_row(record.id, logged) for logged in new]
        if record.match.ended is not None:
            ended.append(_row_while_played(record) | _row_at_the_end(record, record.match.ended))
        elif known == 0 or any(isinstance(logged.event, Event) for logged in new):
            played.append(_row_while_played(record))
        else:
            refused.append({"id": record.id, "violations": record.match.violations})
    connection = session.connection()
    # The match's row first, which others lock before they append: two that hold one lock each and wait for the other's
    # would be a deadlock.
    _update_matches(connection, _WHILE_PLAYED, _FREED, played)
    _update_matches(connection, _WHILE_PLAYED + _AT_THE_END, _FREED, ended)
    _update_matches(connection, ("violations",), {}, refused)
    _insert_events(connection, events)


def _event_row(match_id: str, logged: Logged) -> dict[str, Any]:
    return {
        "match_id": match_id,
        "seq": logged.seq,
        "kind": kind_of(logged.event),
        "seat": logged.seat,
        "ply": logged.ply,
        "move_id": logged.move_id,
        "body": to_json(logged.event),
        "at": _moment(logged.at),
    }


def _row_while_played(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "violations": record.match.violations,
        "ply": record.match.ply,
        "to_move": record.match.to_move,
        "model_to_move": record.model_to_move,
        "moved_at": _moment(record.log[-1].at),
        "deadline": None if record.deadline is None else _moment(record.deadline.at),
    }


def _row_at_the_end(record: Record, ended: Ended) -> dict[str, Any]:
    return {
        "status": "over",
        "reason": ended.reason,
        "winner": ended.winner,
        "utility_0": ended.utilities[0],
        "utility_1": ended.utilities[1],
        "agreed": ended.facts.get("agreed"),
        "pareto_optimal": ended.facts.get("pareto_optimal"),
        "ended_at": _moment(record.log[-1].at),
    }


# ---- Many rows in one statement ------------------------------------------------
# This is the path of every move. Rows travel as one JSON text that the database takes apart: a driver that is given
# them one by one lets go of the interpreter's lock for each, and has to wait for it again. The statements are made of
# the names of columns alone.


def _insert_events(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    names = tuple(_EVENT.columns.keys())
    statement = _insertion(connection.dialect, names)
    connection.execute(statement, {"rows": json.dumps(rows)})


def _update_matches(
    connection: Connection, names: tuple[str, ...], constants: Mapping[str, str], rows: Sequence[Mapping[str, Any]]
) -> None:
    if rows:
        statement = _updating(connection.dialect, names, tuple(constants.items()))
        connection.execute(statement, {"rows": json.dumps(rows)})


@lru_cache(maxsize=8)
def _insertion(dialect: Dialect, names: tuple[str, ...]) -> Any:
    columns = ", ".join(names)
    return text(f"INSERT INTO event ({columns}) SELECT {columns} FROM {_rows(dialect, _EVENT, names)}")  # noqa: S608


@lru_cache(maxsize=16)
def _updating(dialect: Dialect, names: tuple[str, ...], constants: tuple[tuple[str, str], ...]) -> Any:
    changes = [f"{name} = new.{name}" for name in names] + [f"{name} = {value}" for name, value in constants]
    rows = _rows(dialect, _MATCH, ("id", *names))
    return text(f'UPDATE "match" SET {", ".join(changes)} FROM {rows} WHERE "match".id = new.id')  # noqa: S608


def _rows(dialect: Dialect, table: Table, names: tuple[str, ...]) -> str:
    """A table expression `new` of the JSON array of objects that is bound to `rows`."""
    if dialect.name == "sqlite":
        fields = ", ".join(f"value ->> '{name}' AS {name}" for name in names)
        return f"(SELECT {fields} FROM json_each(:rows)) AS new"  # noqa: S608
    fields = ", ".join(f"{name} {table.columns[name].type.compile(dialect)}" for name in names)
    return f"json_to_recordset(CAST(:rows AS json)) AS new({fields})"


def _moment(at: datetime) -> str:
    """As the column stores it: UTC without a zone, with microseconds, and as SQLAlchemy writes it on SQLite."""
    return at.isoformat(" ", "microseconds").removesuffix("+00:00")
