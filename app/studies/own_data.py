"""All data stored about one person, for that person. Only reads.

For a match, it contains what the person's seat was shown, so that nobody learns what the partner knew. The person's
arm, and the stratum in which it was drawn, are left out while they are under way, because they would reveal what the
study compares. `tests/integration/test_own_data.py` lists the columns that are in no file, with the reasons.

Source: Regulation (EU) 2016/679 (GDPR), articles 15 and 20.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.games.base import JSON
from app.matches.events import Violated
from app.matches.stored import StoredMatch, load, move_times
from app.matches.views import seat_view
from app.models import (
    Arm,
    Consent,
    Enrolment,
    EventRow,
    Participant,
    Payment,
    PaymentBatch,
    RecruitmentIdentity,
    SeatRow,
    Study,
    StudyEvent,
    StudyVersion,
    Submission,
    Wave,
)
from app.studies.assignment import ASSIGNMENT
from app.studies.consents import seats_of
from app.studies.retention import linked_until

_BY = "by"  # in an event's body: the experimenter who did it


def own_data(session: Session, person: Participant) -> JSON:
    """Everything about a person, as JSON; for a guest, only what exists outside studies."""
    study = None if person.study_id is None else session.get_one(Study, person.study_id).name
    return {
        "written_at": _iso(datetime.now(UTC)),
        "person": {
            "code": person.code,
            "study": study,
            "came": _iso(person.created_at),
            "deleted": _iso(person.erased_at),
            "linked_to_other_studies": person.person_hash is not None,
            # A person who is not linked has no link to delete; None also while a wave is open or an enrolment is under
            # way.
            "link_deleted_after": None if person.person_hash is None else _iso(linked_until(session, person.id)),
            "recruiter_ids": [
                {"recruiter": row.recruiter, "id": row.external_id, "deleted_on": _iso(row.remove_on)}
                for row in session.scalars(_rows_of(RecruitmentIdentity, person))
            ],
        },
        "consents": [
            {"kind": row.kind, "given": row.given, "at": _iso(row.at), "withdrawn_at": _iso(row.withdrawn_at),
             "sha256_of_text": row.text_version}
            for row in session.scalars(_rows_of(Consent, person))
        ],
        "enrolments": [_enrolment_json(session, row) for row in session.scalars(_rows_of(Enrolment, person))],
        "matches": [_match_json(session, record, seat) for record, seat in _own_matches(session, person)],
    }  # fmt: skip


def _rows_of(table: type[Any], person: Participant) -> Any:
    return select(table).where(table.participant_id == person.id).order_by(table.id)


def _enrolment_json(session: Session, row: Enrolment) -> JSON:
    wave = None if row.wave_id is None else session.get_one(Wave, row.wave_id)
    arm = None if row.arm_id is None or row.ending is None else session.get_one(Arm, row.arm_id)
    return {
        "wave": None if wave is None else wave.name,
        "version": session.get_one(StudyVersion, row.study_version_id).number,
        "device": row.device,
        "came": _iso(row.enrolled_at),
        "agreed": _iso(row.agreed_at),
        "holds_place": row.holds_place,
        "at_step": row.step,
        "on_page": row.stage,
        "last_seen": _iso(row.seen_at),
        "ended": _iso(row.ended_at),
        "ending": row.ending,
        "arm": None if arm is None else {"name": arm.name, "conditions": arm.conditions, "plan": row.plan},
        "arm_drawn": None if arm is None else _iso(row.assigned_at),
        "stratum": None if row.ending is None else row.stratum,
        "answers": row.answers,
        "visits": [
            {"recruiter": each.recruiter, "id": each.external_id, "status": each.status,
             "began": _iso(each.created_at), "changed": _iso(each.changed_at),
             "handed_in": each.handed_in, "listed": _iso(each.listed_at),
             "is_another_persons": each.other_person}
            for each in session.scalars(
                select(Submission).where(Submission.enrolment_id == row.id).order_by(Submission.id)
            )
        ],
        "payments": _payments(session, row),
        "log": list(_log_of_enrolment(session, row)),
    }  # fmt: skip


def _payments(session: Session, row: Enrolment) -> list[JSON]:
    owed = (
        select(Payment, PaymentBatch.status)
        .outerjoin(PaymentBatch, PaymentBatch.id == Payment.batch_id)
        .where(Payment.enrolment_id == row.id)
        .order_by(Payment.id)
    )
    return [
        {"what": each.key, "amount": str(each.amount), "currency": each.currency, "reason": each.reason,
         "at": _iso(each.created_at), "batch": status}
        for each, status in session.execute(owed)
    ]  # fmt: skip


def _log_of_enrolment(session: Session, row: Enrolment) -> Iterator[JSON]:
    events = select(StudyEvent).where(StudyEvent.enrolment_id == row.id).order_by(StudyEvent.id)
    for event in session.scalars(events):
        if event.kind != ASSIGNMENT or row.ending is not None:
            body = {name: value for name, value in event.body.items() if name != _BY}
            yield {"kind": event.kind, "at": _iso(event.at), **body}


def _own_matches(session: Session, person: Participant) -> Iterator[tuple[StoredMatch, int]]:
    seats = session.execute(select(SeatRow.match_id, SeatRow.seat).where(seats_of(person.id))).all()
    found = [(load(session, match_id), seat) for match_id, seat in seats]
    yield from sorted(found, key=lambda each: each[0].log[0].at)


def _match_json(session: Session, record: StoredMatch, seat: int) -> JSON:
    """A match as its seat sees it, with the person's rejected moves and the browser's measurements."""
    view = seat_view(record.id, record.match, move_times(record.log), seat, feedback=record.feedback)
    shown = {name: value for name, value in view.items() if name not in ("may", "clock")}
    own = select(EventRow.ply, EventRow.timing).where(
        EventRow.match_id == record.id, EventRow.seat == seat, EventRow.timing.is_not(None)
    )
    timing = [{"ply": row.ply, **row.timing} for row in session.execute(own.order_by(EventRow.seq))]
    refused = [
        {"ply": logged.ply, "text": logged.event.text, "reason": logged.event.reason, "at": _iso(logged.at)}
        for logged in record.log
        if isinstance(logged.event, Violated) and logged.seat == seat
    ]
    return {**shown, "began": _iso(record.log[0].at), "refused": refused, "timing": timing}


def _iso(moment: date | None) -> str | None:
    """A date, or a datetime, in ISO 8601."""
    return None if moment is None else moment.isoformat()
