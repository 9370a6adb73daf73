"""The tables that the database gives as they are: people, visits, matches, moves, payments and material.

Rows come a few at a time, so that memory does not grow with their number. Without ids no column names a person as the
recruiter does; what is public has no words that people chose themselves.
"""

from collections.abc import Iterator

from sqlalchemy.orm import Session

from app.studies.export import assignments, matches, people
from app.studies.export.columns import streamed
from app.studies.export.scope import DataTable, ExportScope


def stored_tables(session: Session, scope: ExportScope) -> Iterator[DataTable]:
    """All of them, in the order of the archive."""
    stored = [*people.tables(scope), *matches.tables(scope), *assignments.tables(scope)]
    for table in [*stored, people.ids(scope)] if scope.with_ids else stored:
        yield DataTable(table.name, table.columns, streamed(session, table.statement))
    yield assignments.material(scope)


def tables_since_freeze(session: Session, scope: ExportScope) -> Iterator[DataTable]:
    """Those that may change after a wave was frozen, as they are now."""
    for table in (people.consents(scope), assignments.payments(scope)):
        yield DataTable(table.name, table.columns, streamed(session, table.statement))
