"""The order in which matches were inserted, in which a program can read page by page without missing any.

A time or a number assigned when a match is written would not do: two processes write at once, and the lower number may
be committed last, after a reader has passed it. `match.inserted_in` is the number of the transaction that inserted a
match. On PostgreSQL it is the database's own, and a page ends before the first transaction still in progress: later
matches have higher numbers. On SQLite one transaction writes at a time, and its number is higher than all before.
Matches of one transaction are in the order of their ids.

Source: PostgreSQL, https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-PG-SNAPSHOT
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, select, text, tuple_
from sqlalchemy.orm import Session
from sqlalchemy.sql import literal_column

from app.core.errors import Invalid
from app.models import MatchRow

POSTGRESQL = "postgresql"
_NEXT = {
    POSTGRESQL: "CAST(CAST(pg_current_xact_id() AS text) AS bigint)",
    # The time in microseconds, so that no number is reused after the last matches are deleted.
    "sqlite": 'max((SELECT coalesce(max(inserted_in), 0) + 1 FROM "match"),'
    " CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))",
}
_FIRST_UNDER_WAY = "CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)"
_NEWEST = "CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)"


class Place(NamedTuple):
    """The match after which to continue reading: the number of its transaction, and its id."""

    transaction: int
    match_id: str


class Arrivals(NamedTuple):
    """Ids of matches in order, the place after the last one, and whether there are more at present."""

    ids: list[str]
    place: Place | None
    more: bool


def number_of_transaction(dialect: str) -> str:
    """The SQL expression for `inserted_in` in an INSERT."""
    return _NEXT[dialect]


def arrivals(session: Session, where: Sequence[ColumnElement[bool]], after: Place | None, limit: int) -> Arrivals:
    """Up to `limit` matches inserted after a place; a later call with the same conditions continues after all of them.

    Raises Invalid for a place from another database.
    """
    found = select(MatchRow.inserted_in, MatchRow.id).where(*where, *_final_place_conditions(session))
    order = tuple_(MatchRow.inserted_in, MatchRow.id)
    if after is not None:
        _check_cursor_transaction(session, after)
        found = found.where(order > tuple_(after.transaction, after.match_id))
    rows = session.execute(found.order_by(MatchRow.inserted_in, MatchRow.id).limit(limit + 1)).all()
    kept = [Place(*row) for row in rows[:limit]]
    return Arrivals([each.match_id for each in kept], kept[-1] if kept else after, len(rows) > limit)


def forget_numbers_of_another_server(session: Session) -> None:
    """Reset the numbers if the tables came from another PostgreSQL server, whose transactions had higher numbers."""
    if session.get_bind().dialect.name == POSTGRESQL:
        session.execute(
            text(f'UPDATE "match" SET inserted_in = 0 WHERE (SELECT max(inserted_in) FROM "match") >= {_NEWEST}')  # noqa: S608
        )


def _final_place_conditions(session: Session) -> Sequence[ColumnElement[bool]]:
    """The conditions that a match's place in the order is final: no other can still be inserted before it."""
    if session.get_bind().dialect.name != POSTGRESQL:
        return ()
    return (MatchRow.inserted_in < literal_column(_FIRST_UNDER_WAY),)


def _check_cursor_transaction(session: Session, after: Place) -> None:
    if session.get_bind().dialect.name == POSTGRESQL and after.transaction >= session.scalar(text(f"SELECT {_NEWEST}")):
        raise Invalid("cursor", expected="one of this database", got=after.transaction)
