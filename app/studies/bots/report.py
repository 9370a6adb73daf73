"""Compares what bots saw in a study with what is stored about them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.games.base import JSON
from app.matches.filter import is_over
from app.models import Arm, Enrolment, MatchRow, Payment, SeatRow, Study, Wave
from app.registry import PERSON
from app.studies.bots.copies import CODES
from app.studies.bots.notes import BotNotes
from app.studies.endings import COMPLETED
from app.studies.participant_steps import MATCH, PRACTICE
from app.studies.store import design_of_wave


@dataclass(frozen=True, slots=True)
class _Stored:
    """Stored facts about the people of a wave: by token, and by enrolment the finished matches and the payments."""

    enrolments: Mapping[str | None, Enrolment]
    matches: Mapping[int, int]
    payments: Mapping[int, Mapping[str, Decimal]]


def report(session: Session, wave_id: int, notes: Sequence[BotNotes], *, complete: bool = True) -> JSON:
    """Endings by habit, arms, pay, and all surprises; of the finished bots so far unless it is `complete`."""
    wave = session.get_one(Wave, wave_id)
    design = design_of_wave(session, wave)
    stored = _stored_facts(session, wave_id)
    surprises = [f"bot {each.number}, which {each.habit}: {what}" for each in notes for what in each.surprises]
    if complete and stored.enrolments.keys() != {each.token for each in notes}:
        surprises.append(f"{len(notes)} bots came, {len(stored.enrolments)} people are stored")
    endings: dict[str, Counter[str]] = {}
    for each in notes:
        enrolment = stored.enrolments.get(each.token)
        ending = None if enrolment is None else enrolment.ending
        endings.setdefault(each.habit, Counter())[ending or "none"] += 1
        surprises += _disagreements(stored, each, enrolment, has_base=bool(design.pay.base))
    names = dict(session.execute(select(Arm.id, Arm.name).where(Arm.study_version_id == wave.study_version_id)).all())
    completed = (each for each in stored.enrolments.values() if each.ending == COMPLETED)
    arms = Counter(names[each.arm_id] for each in completed if each.arm_id is not None)
    return {
        "wave": f"{session.get_one(Study, wave.study_id).name}:{wave.name}",
        "bots": len(notes),
        "endings": {habit: dict(found) for habit, found in endings.items()},
        "completed_by_arm": {name: arms[name] for name in names.values()},
        "paid": str(sum((sum(paid.values()) for paid in stored.payments.values()), Decimal(0))),
        "currency": design.pay.currency,
        "surprises": surprises,
        "notes": [asdict(each) for each in notes],
    }


def _stored_facts(session: Session, wave_id: int) -> _Stored:
    enrolments = session.scalars(select(Enrolment).where(Enrolment.wave_id == wave_id)).all()
    over = (
        select(SeatRow.enrolment_id, func.count())
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .join(Enrolment, Enrolment.id == SeatRow.enrolment_id)
        .where(Enrolment.wave_id == wave_id, SeatRow.kind == PERSON, is_over())
        .group_by(SeatRow.enrolment_id)
    )
    payments: dict[int, dict[str, Decimal]] = {}
    for payment in session.scalars(select(Payment).join(Enrolment).where(Enrolment.wave_id == wave_id)):
        payments.setdefault(payment.enrolment_id, {})[payment.key] = payment.amount
    matches = {number: count for number, count in session.execute(over) if number is not None}
    return _Stored({each.token: each for each in enrolments}, matches, payments)


def _disagreements(stored: _Stored, notes: BotNotes, enrolment: Enrolment | None, *, has_base: bool) -> list[str]:
    """Differences between what a bot saw and what is stored about it."""
    who = f"bot {notes.number}, which {notes.habit}"
    if enrolment is None:
        return [f"{who}: nothing is stored of it"]
    found = []
    if not notes.arrived or enrolment.ending is None:
        found.append(f"{who}: came to no last page; its ending is {enrolment.ending}")
    if notes.code != CODES.get(enrolment.ending):
        found.append(f"{who}: ended {enrolment.ending} and saw the code {notes.code}")
    if enrolment.ending == COMPLETED:
        due = sum(step.startswith((MATCH, PRACTICE)) for step in notes.steps)
        if (over := stored.matches.get(enrolment.id, 0)) < due:
            found.append(f"{who}: came by {due} matches, {over} are stored")
        if has_base and "base" not in stored.payments.get(enrolment.id, {}):
            found.append(f"{who}: completed without its base pay")
    return found
