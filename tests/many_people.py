"""Studies with many people: copies of people who are there, with all that hangs on them, written as bare rows."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from app.models import (
    Consent,
    Enrolment,
    EventRow,
    MatchRow,
    Participant,
    Payment,
    RecruitmentIdentity,
    SeatRow,
    StudyEvent,
    Submission,
)

Row = dict[str, Any]
FIRST_NUMBER = 10_000  # of copies, far from those that the database gives
_AT_ONCE = 100  # people


def copy_people(session: Session, originals: Sequence[int], people: int) -> None:
    """So many copies of the people of some enrolments, in turn. A copy is called Q and a number, as its matches are."""
    templates = [_template(session, number) for number in originals]
    first = max(FIRST_NUMBER, 1 + (session.scalar(select(func.max(Enrolment.id))) or 0))
    for begin in range(first, first + people, _AT_ONCE):
        rows: dict[Any, list[Row]] = {}
        for number in range(begin, min(begin + _AT_ONCE, first + people)):
            for table, row in _copy(templates[number % len(templates)], number):
                rows.setdefault(table, []).append(row)
        for table in _ORDER:
            if table in rows:
                session.execute(insert(table), rows[table])


# Rows come before those that point to them.
_ORDER = (
    Participant, RecruitmentIdentity, Enrolment, Submission, Consent, StudyEvent, Payment, MatchRow, SeatRow, EventRow,
)  # fmt: skip


def _template(session: Session, enrolment_id: int) -> list[tuple[Any, Row]]:
    """All rows of a person, without numbers that the database gives."""
    own = session.get_one(Enrolment, enrolment_id)
    matches = list(session.scalars(select(SeatRow.match_id).where(SeatRow.enrolment_id == enrolment_id)))
    of_enrolment = [(table, table.enrolment_id == enrolment_id) for table in (Submission, StudyEvent, Payment)]
    of_participant = [(table, table.participant_id == own.participant_id) for table in (RecruitmentIdentity, Consent)]
    chosen: list[tuple[Any, Any]] = [
        (Participant, Participant.id == own.participant_id), (Enrolment, Enrolment.id == enrolment_id), *of_enrolment,
        *of_participant, (MatchRow, MatchRow.id.in_(matches)), (SeatRow, SeatRow.match_id.in_(matches)),
        (EventRow, EventRow.match_id.in_(matches)),
    ]  # fmt: skip
    return [
        (table, {column.name: getattr(row, column.key) for column in table.__table__.columns})
        for table, where in chosen
        for row in session.scalars(select(table).where(where).order_by(*table.__table__.primary_key))
    ]


def _copy(template: Sequence[tuple[Any, Row]], number: int) -> Iterator[tuple[Any, Row]]:
    """The rows of one more person like that one."""
    names = {row["id"]: f"m{number}x{at}" for at, (table, row) in enumerate(template) if table is MatchRow}
    for table, row in template:
        new = dict(row)
        if table in (Participant, Enrolment):
            new["id"] = number
        elif table not in (MatchRow, SeatRow, EventRow):
            del new["id"]  # the database gives one
        for key in ("participant_id", "enrolment_id"):
            if row.get(key) is not None:
                new[key] = number
        if "match_id" in row and row["match_id"] in names:
            new["match_id"] = names[row["match_id"]]
        yield table, {**new, **_own_names(table, row, number, names)}


def _own_names(table: Any, row: Row, number: int, names: dict[str, str]) -> Row:
    """What only one row may be called."""
    if table is Participant:
        return {"code": f"Q{number}", "person_hash": None}
    if table is Enrolment:
        return {"token": f"token{number}"}
    if table in (RecruitmentIdentity, Submission):
        return {"external_id": f"{row['external_id']}{number}"}
    return {"id": names[row["id"]], "start_key": None} if table is MatchRow else {}
