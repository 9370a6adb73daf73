"""The order in which matches were inserted: a program that reads page by page in it misses none.

A time or a number that is drawn when a match is written would not do: two processes write at once, and what is drawn
first may be committed last, behind a reader who has gone by. `match.inserted_in` is the number of the transaction that
has inserted a match. On PostgreSQL it is the database's own, and a page ends before the first transaction that is still
under way: whatever comes later has a higher number. On SQLite one transaction writes at a time, and its number
is higher than those of all before. Matches of one transaction are in the order of their ids.

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
    # The time, in microseconds, so that no number comes again when the last matches are deleted.
    "sqlite": 'max((SELECT coalesce(max(inserted_in), 0) + 1 FROM "match"),'
    " CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER))",
}
_FIRST_UNDER_WAY = "CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)"
_NEWEST = "CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)"


class Place(NamedTuple):
    """Behind which match to read on: the number of its transaction, and its id."""

    transaction: int
    match_id: str


class Arrivals(NamedTuple):
    """Ids of matches in their order, the place behind them, and whether there are further ones now."""

    ids: list[str]
    place: Place | None
    more: bool


def number_of_transaction(dialect: str) -> str:
    """What an INSERT gives `inserted_in`, as SQL."""
    return _NEXT[dialect]


def arrivals(session: Session, where: Sequence[ColumnElement[bool]], after: Place | None, limit: int) -> Arrivals:
    """So many matches that came in behind a place, all of which a later call of the same kind goes on behind.

    Raises Invalid for a place of another database.
    """
    found = select(MatchRow.inserted_in, MatchRow.id).where(*where, *_settled(session))
    order = tuple_(MatchRow.inserted_in, MatchRow.id)
    if after is not None:
        _check(session, after)
        found = found.where(order > tuple_(after.transaction, after.match_id))
    rows = session.execute(found.order_by(MatchRow.inserted_in, MatchRow.id).limit(limit + 1)).all()
    kept = [Place(*row) for row in rows[:limit]]
    return Arrivals([each.match_id for each in kept], kept[-1] if kept else after, len(rows) > limit)


def forget_numbers_of_another_server(session: Session) -> None:
    """Begin anew where the tables came from another PostgreSQL server, whose transactions had higher numbers."""
    if session.get_bind().dialect.name == POSTGRESQL:
        session.execute(
            text(f'UPDATE "match" SET inserted_in = 0 WHERE (SELECT max(inserted_in) FROM "match") >= {_NEWEST}')  # noqa: S608
        )


def _settled(session: Session) -> Sequence[ColumnElement[bool]]:
    """The conditions that a match's place in the order is settled: no other can still come in before it."""
    if session.get_bind().dialect.name != POSTGRESQL:
        return ()
    return (MatchRow.inserted_in < literal_column(_FIRST_UNDER_WAY),)


def _check(session: Session, after: Place) -> None:
    if session.get_bind().dialect.name == POSTGRESQL and after.transaction >= session.scalar(text(f"SELECT {_NEWEST}")):
        raise Invalid("cursor", expected="one of this database", got=after.transaction)
