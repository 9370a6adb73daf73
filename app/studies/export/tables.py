"""The tables read directly from the database: people, visits, matches, moves, payments and material.

Rows are fetched in batches, so memory does not grow with their number. Without ids, no column identifies a person as
the recruiter does; public tables have no words that people chose themselves.
"""

from collections.abc import Iterator

from sqlalchemy.orm import Session

from app.studies.export import assignments, matches, people
from app.studies.export.columns import streamed
from app.studies.export.scope import DataTable, ExportScope


def stored_tables(session: Session, scope: ExportScope) -> Iterator[DataTable]:
    """All of these tables, in the order of the archive."""
    stored = [*people.tables(scope), *matches.tables(scope), *assignments.tables(scope)]
    for table in [*stored, people.ids(scope)] if scope.with_ids else stored:
        yield DataTable(table.name, table.columns, streamed(session, table.statement))
    yield assignments.material(scope)


def tables_since_freeze(session: Session, scope: ExportScope) -> Iterator[DataTable]:
    """The tables that may change after a wave was frozen, in their current state."""
    for table in (people.consents(scope), assignments.payments(scope)):
        yield DataTable(table.name, table.columns, streamed(session, table.statement))
