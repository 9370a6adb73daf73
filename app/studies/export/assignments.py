"""Tables of arm assignments, of the material played on, and of payments."""

from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import or_, select

from app.core.csv_tables import Column
from app.models import Enrolment, Participant, Payment, PaymentBatch, StudyEvent, Wave
from app.studies.assignment import ASSIGNMENT
from app.studies.batches import CONFIRMED, UPLOADED
from app.studies.export.columns import (
    DATA_OF,
    OF_WHOM,
    PARTICIPANT,
    WAVE,
    StoredTable,
    data_column,
    of_people,
    time_column,
)
from app.studies.export.scope import DataTable, ExportScope


def tables(scope: ExportScope) -> list[StoredTable]:
    """The tables of arm assignments and of payments."""
    return [_assignments(scope), payments(scope)]


def _assignments(scope: ExportScope) -> StoredTable:
    columns = (
        PARTICIPANT,
        WAVE,
        data_column(scope),
        Column(
            "stratum",
            "text",
            "The stratum within which the arm was drawn.",
            "empty where all are one",
            _of_body("stratum"),
        ),
        Column("slot", "integer", "The place in the order of that stratum.", "from 0", _of_body("slot")),
        Column("arm", "integer", "The arm, by its place among those of the design.", "from 0", _of_body("arm")),
        time_column("at", "When it was drawn."),
    )
    rows = (
        select(*OF_WHOM, StudyEvent.body, StudyEvent.at, *DATA_OF)
        .join(Enrolment, Enrolment.id == StudyEvent.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .join(Wave, Wave.id == Enrolment.wave_id)
        .where(Enrolment.wave_id.in_(scope.waves), StudyEvent.kind == ASSIGNMENT)
        .order_by(StudyEvent.id)
    )
    return StoredTable("assignments", columns, rows)


def _of_body(name: str) -> Callable[[Any], Any]:
    return lambda row: row.body.get(name)


def payments(scope: ExportScope) -> StoredTable:
    """Amounts owed and paid, until the waves were frozen or, with `since_freeze`, until now."""
    columns = (
        PARTICIPANT,
        WAVE,
        data_column(scope),
        Column("key", "text", "What is paid.", "base | bonus | adjustment 1 | …"),
        Column("amount", "number", "How much; an adjustment may be below 0.", "0.70"),
        Column("currency", "text", "In which currency.", "USD"),
        Column("reason", "text", "Why it was adjusted.", "empty in a public export" if scope.public else "a text",
               lambda row: None if scope.public else row.reason),
        Column("batch", "integer", "The batch that pays it.",
               "from 1; empty for a base that the recruiter pays on approval, before there is one, and for one that was"
               " not uploaded when the wave was frozen",
               _unless_later(scope, "batch")),
        Column("status", "text", "How far that batch is.", "drafted | uploaded | confirmed; empty without one",
               _unless_later(scope, "status")),
        time_column("created_at", "When it was owed."),
    )  # fmt: skip
    joined = (
        select(
            *OF_WHOM, Payment.key, Payment.amount, Payment.currency, Payment.reason,
            PaymentBatch.number.label("batch"), PaymentBatch.status, Payment.created_at, PaymentBatch.uploaded_at,
            PaymentBatch.confirmed_at, Wave.frozen_at, *DATA_OF,
        )
        .join(Enrolment, Enrolment.id == Payment.enrolment_id)
        .outerjoin(PaymentBatch, PaymentBatch.id == Payment.batch_id)
    )  # fmt: skip
    rows = of_people(joined, scope).order_by(Payment.id)
    if not scope.since_freeze:
        rows = rows.where(or_(Wave.frozen_at.is_(None), Payment.created_at <= Wave.frozen_at))
    return StoredTable("payments", columns, rows)


def _unless_later(scope: ExportScope, name: str) -> Callable[[Any], Any]:
    """A reader of a batch's value for a payment; for a frozen wave, as it was at the freeze.

    A draft might have been discarded since.
    """

    def read(row: Any) -> Any:
        if row.frozen_at is None or scope.since_freeze:
            return getattr(row, name)
        if row.uploaded_at is None or row.uploaded_at > row.frozen_at:
            return None
        confirmed = row.confirmed_at is not None and row.confirmed_at <= row.frozen_at
        return row.batch if name == "batch" else CONFIRMED if confirmed else UPLOADED

    return read


def material(scope: ExportScope) -> DataTable:
    """The material played on, by version."""
    columns = (
        Column("version", "integer", "The version of the study.", "from 1", lambda row: row[0]),
        Column("piece", "integer", "The number of the piece, as in matches.csv.", "from 0", lambda row: row[1]),
        Column("content", "json", "The piece.", "an object or a word", lambda row: row[2]),
    )
    return DataTable("material", columns, _pieces_of_versions(scope))


def _pieces_of_versions(scope: ExportScope) -> Iterator[tuple[int, int, Any]]:
    for version in scope.versions.values():
        for number, piece in enumerate(version.design["material"]):
            yield version.number, number, piece
