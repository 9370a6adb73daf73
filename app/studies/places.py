"""The places of a wave, and the money that its people have cost and may cost yet. Nothing here commits."""

from decimal import Decimal

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import Session

from app.models import Enrolment, MatchRow, Payment, PaymentBatch, SeatRow, Wave
from app.studies.cost import most_a_place
from app.studies.design import StudyDesign
from app.studies.endings import DECLINED, EARNED, INELIGIBLE, PROLIFIC, EndingName
from app.studies.progress import StudyProgress, lock_wave, log_event
from app.studies.store import design_of_wave
from app.studies.waves import settings_of

FREED = "place freed"


def places_taken(session: Session, wave: Wave) -> int:
    """The number of places taken in a wave: by people under way, and by those whose ending keeps the place.

    If nobody is replaced, everybody who was given an arm keeps the place.
    """
    taken = takes_place(design_of_wave(session, wave))
    found = session.scalar(select(func.count()).select_from(Enrolment).where(Enrolment.wave_id == wave.id, taken))
    return int(found or 0)


def takes_place(design: StudyDesign) -> ColumnElement[bool]:
    """Whether an enrolment takes a place of its wave, as a condition of a query."""
    if design.plan.assign.replace == "nobody":
        return or_(Enrolment.holds_place, Enrolment.arm_id.is_not(None))
    return Enrolment.holds_place.is_(True)


def committed(session: Session, wave: Wave) -> Decimal:
    """The past and possible future cost of a wave, with the fee: what those who ended are owed, the maximum for the
    others.
    """
    return committed_before_fee(session, wave) * (1 + settings_of(wave).fee)


def committed_before_fee(session: Session, wave: Wave) -> Decimal:
    """Like `committed`, without the fee."""
    design = design_of_wave(session, wave)
    most, paid = most_a_place(design), _amounts_by_enrolment(session, wave)
    played = _enrolments_that_played(session, wave)
    total = Decimal(0)
    columns = select(Enrolment.id, Enrolment.ending, Enrolment.holds_place, Enrolment.agreed_at)
    for number, ending, holds_place, agreed_at in session.execute(columns.where(Enrolment.wave_id == wave.id)):
        if ending is None:
            total += most if holds_place else 0
        elif number in paid:
            total += paid[number]
        elif agreed_at is not None or ending in (DECLINED, INELIGIBLE):
            total += _most_of_ending(design, ending, played=number in played)  # type: ignore[arg-type]  # the column's
    return total


def free_place(session: Session, progress: StudyProgress) -> None:
    """Give the place of a person who has ended to another person, regardless of the ending."""
    if progress.enrolment.wave_id is not None and progress.enrolment.holds_place:
        lock_wave(session, progress.enrolment.wave_id)
        progress.enrolment.holds_place = False
        log_event(session, progress, FREED, {})


def _amounts_by_enrolment(session: Session, wave: Wave) -> dict[int, Decimal]:
    """The amounts owed, by enrolment, plus what was sent beyond them: money that a recruiter paid does not come
    back.
    """
    owed: dict[int, Decimal] = {}
    to_send: dict[int, Decimal] = {}  # without bases, which may be paid by approval
    rows = (
        select(Payment.enrolment_id, Payment.key, Payment.amount, PaymentBatch.status)
        .join(Enrolment, Enrolment.id == Payment.enrolment_id)
        .outerjoin(PaymentBatch, PaymentBatch.id == Payment.batch_id)
        .where(Enrolment.wave_id == wave.id)
    )
    for number, key, amount, status in session.execute(rows):
        owed[number] = owed.get(number, Decimal(0)) + amount
        if status in (None, "drafted") and key != "base":
            to_send[number] = to_send.get(number, Decimal(0)) + amount
    return {number: amount - min(Decimal(0), to_send.get(number, Decimal(0))) for number, amount in owed.items()}


def _enrolments_that_played(session: Session, wave: Wave) -> set[int | None]:
    """The enrolments in which a match that counts has begun."""
    rows = (
        select(SeatRow.enrolment_id)
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .join(Enrolment, and_(Enrolment.id == SeatRow.enrolment_id, Enrolment.wave_id == wave.id))
        .where(MatchRow.position.is_not(None))
    )
    return set(session.scalars(rows))


def _most_of_ending(design: StudyDesign, name: EndingName, *, played: bool) -> Decimal:
    """The maximum owed to a person with this ending, before it is settled."""
    ending = design.ending(name, PROLIFIC)
    base = ending.base if isinstance(ending.base, Decimal) else Decimal(0) if ending.base == "none" else design.pay.base
    bonus = design.pay.most_a_person if played and ending.bonus == EARNED else Decimal(0)
    return max(base, ending.least or Decimal(0)) + bonus
