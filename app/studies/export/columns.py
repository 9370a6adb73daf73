"""Common parts of an archive's tables: the columns that all have, and how their rows are read."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Select
from sqlalchemy.orm import Session

from app.core.csv_tables import ROWS_AT_ONCE, Column
from app.models import Enrolment, Participant, Wave
from app.studies.endings import PROLIFIC
from app.studies.export.scope import ExportScope

TIME = "ISO 8601 in UTC, 2026-01-31T12:00:00.000Z"
WITHDRAWN = "withdrawn"
DATA_VALUES = f"counts | does not count | under way | {WITHDRAWN}"
PARTICIPANT = Column("participant", "text", "The person, by a pseudonymous id.", "letters and digits")
DATA = Column("data", "text", "Whether the data of the person counts as taken part.", DATA_VALUES)
WAVE = Column("wave", "text", "The wave.", "a name")


class StoredTable(NamedTuple):
    """A table read directly from the database: its name, its columns, and the query of its rows."""

    name: str
    columns: Sequence[Column]
    statement: Select[Any]


def time_column(name: str, meaning: str, values: str = TIME) -> Column:
    """A column of timestamps."""
    return Column(name, "time", meaning, values)


def streamed(session: Session, statement: Select[Any]) -> Any:
    """The rows of a query, fetched in batches."""
    return session.execute(statement, execution_options={"yield_per": ROWS_AT_ONCE})


def of_people(statement: Select[Any], scope: ExportScope) -> Select[Any]:
    """A query of enrolments with their participants and waves, in the order of entry."""
    return (
        statement.join(Participant, Participant.id == Enrolment.participant_id)
        .join(Wave, Wave.id == Enrolment.wave_id)
        .where(Enrolment.wave_id.in_(scope.waves))
        .order_by(Wave.id, Enrolment.id)
    )


# The columns `participant` and `wave`, and those from which the column `data` is derived.
CODE: Any = Participant.code.label("participant")
OF_WHOM: tuple[Any, ...] = (CODE, Wave.name.label("wave"))
DATA_OF: tuple[Any, ...] = (
    Participant.erased_at, Enrolment.ending, Enrolment.agreed_at, Enrolment.study_version_id,
)  # fmt: skip


def data_column(scope: ExportScope) -> Column:
    """Whether a row counts, for every table of what people did; its rows need ending, version and deletion."""
    return replace(DATA, read=lambda row: data_of(scope, row))


def unless_withdrawn(column: Column, erased_at: str = "erased_at") -> Column:
    """A column that is empty if a person had all data deleted, which the rows hold as `erased_at`."""
    return replace(
        column,
        values=f"{column.values}; empty for who withdrew all data",
        read=lambda row: None if getattr(row, erased_at) is not None else column.read(row),
    )


def data_of(scope: ExportScope, row: Any) -> str:
    """Whether the data of an enrolment counts."""
    if row.erased_at is not None:
        return WITHDRAWN
    if row.ending is None:
        return "under way"
    if row.agreed_at is None:  # never consented to take part
        return "does not count"
    design = scope.designs[row.study_version_id]
    return "counts" if design.ending(row.ending, PROLIFIC).keeps_data else "does not count"
