"""The index of what was said in matches: a row per finished match, with the words of its moves, refused ones too.

The row is written in the transaction in which a match ends, so that no other move pays for it. On SQLite a full-text
table (FTS5) follows these rows by triggers; on PostgreSQL there is a GIN index over their words. What people delete is
removed from the row in the same transaction as from the log. Nothing here commits, except `rebuild_index`.

Source: SQLite, https://www.sqlite.org/fts5.html; PostgreSQL, https://www.postgresql.org/docs/current/textsearch.html
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, delete, insert, select, text, true
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Boolean

from app.core.extensions import Transact, in_turn
from app.games.base import Event
from app.matches.events import RESERVED, LogEvent, Violated, from_json
from app.matches.words import Term, TextQuery, indexed
from app.models import EventRow, MatchRow, MatchText

_AT_ONCE = 200  # matches per transaction
_OVER = "over"


class _Says(FunctionElement[bool]):
    """Whether a row of the index contains a term; takes the row's id and words, and the term in each database's
    syntax.
    """

    type = Boolean()
    inherit_cache = True
    name = "says"


@compiles(_Says, "sqlite")
def _says_on_sqlite(element: Any, compiler: Any, **more: Any) -> str:
    key, _, term, _, _ = (compiler.process(each, **more) for each in element.clauses)
    return f"{key} IN (SELECT rowid FROM match_text_index WHERE match_text_index MATCH {term})"  # noqa: S608


@compiles(_Says, "postgresql")
def _says_on_postgresql(element: Any, compiler: Any, **more: Any) -> str:
    _, words, _, term, pattern = (compiler.process(each, **more) for each in element.clauses)
    # The index knows which words a match has, and the pattern their order.
    has_words = f"array_to_tsvector(string_to_array({words}, ' ')) @@ CAST({term} AS tsquery)"
    return f"({has_words} AND ' ' || {words} || ' ' LIKE {pattern})"


def said_conditions(query: TextQuery) -> list[ColumnElement[bool]]:
    """The query as WHERE conditions over MatchRow, true only of finished matches. A query without words finds none."""
    if not query.wanted and not query.unwanted:
        return [MatchRow.id.in_(select(MatchText.match_id).where(MatchText.id.is_(None)))]
    wanted = select(MatchText.match_id).where(true(), *map(_says, query.wanted))
    unwanted = [select(MatchText.match_id).where(_says(term)) for term in query.unwanted]
    return [MatchRow.id.in_(wanted), *(MatchRow.id.not_in(each) for each in unwanted)]


def _says(term: Term) -> ColumnElement[bool]:
    """The term as a WHERE condition over MatchText. Words are letters and digits only, so nothing has to be escaped."""
    phrase = " ".join(term.words)
    words = [f"'{word}'" for word in term.words]
    if term.beginning:
        return _Says(MatchText.id, MatchText.words, f'"{phrase}" *', f"{' & '.join(words)}:*", f"% {phrase}%")
    pattern = "%" if len(words) == 1 else f"% {phrase} %"
    return _Says(MatchText.id, MatchText.words, f'"{phrase}"', " & ".join(words), pattern)


def text_row(match_id: str, log: Iterable[LogEvent]) -> dict[str, Any]:
    """The row of a match, by its whole log."""
    return {"match_id": match_id, "words": indexed(e.text for e in log if isinstance(e, Event | Violated))}


def index_again(session: Session, match_ids: Sequence[str]) -> None:
    """Rebuild the index rows of finished matches from their current logs."""
    session.flush()
    session.execute(delete(MatchText).where(MatchText.match_id.in_(match_ids)))
    said = (
        select(EventRow.match_id, EventRow.body)
        .where(EventRow.match_id.in_(match_ids), EventRow.seat.is_not(None))
        .order_by(EventRow.match_id, EventRow.seq)
    )
    logs: dict[str, list[LogEvent]] = {match_id: [] for match_id in match_ids}
    for match_id, body in session.execute(said):
        logs[match_id].append(from_json(body))
    session.execute(insert(MatchText), [text_row(match_id, log) for match_id, log in logs.items()])


def rebuild_index(transact: Transact) -> int:
    """Rebuild the whole index, a batch of matches per transaction, while Parlor runs; return the number of matches in
    it.
    """
    after, done = "", 0
    while found := in_turn(transact, partial(_index_next, after=after)):
        after, done = found[-1], done + len(found)
    in_turn(transact, _tidy)
    return done


def _index_next(session: Session, after: str) -> list[str]:
    """Index the next matches in order of their ids; return those ids."""
    over = select(MatchRow.id).where(MatchRow.status == _OVER, MatchRow.id > after).order_by(MatchRow.id)
    found = list(session.scalars(over.limit(_AT_ONCE)))
    if found:
        index_again(session, found)
    return found


def _tidy(session: Session) -> None:
    """Remove words that no row has any more from SQLite's index; on PostgreSQL, VACUUM does."""
    if session.get_bind().dialect.name == "sqlite":
        session.execute(text("INSERT INTO match_text_index(match_text_index) VALUES ('rebuild')"))


def line_numbers(session: Session, match_ids: Sequence[str]) -> dict[str, list[int]]:
    """By match, the places of its lines in its log: its moves, refused ones too."""
    found: dict[str, list[int]] = {match_id: [] for match_id in match_ids}
    silent = RESERVED - {"violation"}
    lines = select(EventRow.match_id, EventRow.seq).where(
        EventRow.match_id.in_(match_ids), EventRow.kind.not_in(silent)
    )
    for match_id, seq in session.execute(lines.order_by(EventRow.match_id, EventRow.seq)):
        found[match_id].append(seq)
    return found
