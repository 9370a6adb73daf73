"""The people of a wave as a list that is filtered and leafed through."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from app.models import Arm, Enrolment, MatchRow, Participant, Payment, SeatRow, StudyEvent, Wave
from app.studies.design import StudyDesign
from app.studies.endings import COMPLETED
from app.studies.participant_steps import Step, steps

PAGE = 25  # people on a page
HERE, COMPLETE, EARLY = "here", "completed", "ended early"
WHERE = (HERE, COMPLETE, EARLY)  # how the list of people is filtered


class PeopleFilter(NamedTuple):
    """Which people of a wave are listed. `where` is one of WHERE."""

    where: str | None = None
    arm_id: int | None = None
    code: str | None = None


class PersonListItem(NamedTuple):
    """A person in a list. `since` is when they came to their page; `matches` are those that count and are over."""

    enrolment: Enrolment
    code: str
    arm: str | None
    step: Step
    since: datetime
    matches: int
    pay: Decimal | None


class PeoplePage(NamedTuple):
    """A page of people, the latest first; `older` is where the next one begins. `total` counts all pages."""

    listed: Sequence[PersonListItem]
    total: int
    older: int | None


def people(
    session: Session, wave: Wave, design: StudyDesign, chosen: PeopleFilter, before: int | None = None
) -> PeoplePage:
    """A page of a wave's people."""
    query = _chosen_people(wave, chosen)
    total = session.scalar(query.with_only_columns(func.count())) or 0
    if before is not None:
        query = query.where(Enrolment.id < before)
    rows = session.execute(query.order_by(Enrolment.id.desc()).limit(PAGE + 1)).all()
    shown = rows[:PAGE]
    numbers = [enrolment.id for enrolment, _code, _arm in shown]
    since, played, pay = _since(session, numbers), _match_counts(session, numbers), _pay(session, numbers)
    all_steps = steps(design)
    listed = [
        PersonListItem(
            enrolment, code, arm, all_steps[enrolment.step], enrolment.ended_at or since.get(enrolment.id) or
            enrolment.enrolled_at, played.get(enrolment.id, 0), pay.get(enrolment.id),
        )
        for enrolment, code, arm in shown
    ]  # fmt: skip
    return PeoplePage(listed, total, shown[-1][0].id if len(rows) > PAGE else None)


def _chosen_people(wave: Wave, chosen: PeopleFilter) -> Select[Any]:
    columns: tuple[Any, ...] = (Enrolment, Participant.code, Arm.name)
    query = (
        select(*columns)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .outerjoin(Arm, Arm.id == Enrolment.arm_id)
        .where(Enrolment.wave_id == wave.id)
    )
    if chosen.where == HERE:
        query = query.where(Enrolment.ending.is_(None))
    elif chosen.where == COMPLETE:
        query = query.where(Enrolment.ending == COMPLETED)
    elif chosen.where == EARLY:
        query = query.where(Enrolment.ending.is_not(None), Enrolment.ending != COMPLETED)
    if chosen.arm_id is not None:
        query = query.where(Enrolment.arm_id == chosen.arm_id)
    if chosen.code:
        query = query.where(func.lower(Participant.code).contains(chosen.code.lower(), autoescape=True))
    return query


def _since(session: Session, numbers: Sequence[int]) -> Mapping[int, datetime]:
    rows = session.execute(
        select(StudyEvent.enrolment_id, func.max(StudyEvent.at))
        .where(StudyEvent.enrolment_id.in_(numbers), StudyEvent.kind == "step")
        .group_by(StudyEvent.enrolment_id)
    )
    return {number: at for number, at in rows if number is not None}


def _match_counts(session: Session, numbers: Sequence[int]) -> Mapping[int, int]:
    rows = session.execute(
        select(SeatRow.enrolment_id, func.count())
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .where(SeatRow.enrolment_id.in_(numbers), MatchRow.position.is_not(None), MatchRow.status == "over")
        .group_by(SeatRow.enrolment_id)
    )
    return {number: count for number, count in rows if number is not None}


def _pay(session: Session, numbers: Sequence[int]) -> Mapping[int, Decimal]:
    """The exact sums; the database keeps amounts as text, so they are added here."""
    rows = session.execute(select(Payment.enrolment_id, Payment.amount).where(Payment.enrolment_id.in_(numbers)))
    found: dict[int, Decimal] = {}
    for number, amount in rows:
        found[number] = found.get(number, Decimal(0)) + amount
    return found
