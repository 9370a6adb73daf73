"""What experimenters see of studies and waves: figures, people, and what happened. Each takes as many queries for ten
people as for ten thousand.

How far somebody came before an early ending is read from the log of the wave, since an ending leads to the last pages.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy import Select, case, func, select
from sqlalchemy.orm import Session

from app.errors import NotFound, Phrase
from app.models import (
    Arm,
    Consent,
    Enrolment,
    LanguageModel,
    MatchRow,
    Participant,
    Payment,
    SeatRow,
    Study,
    StudyEvent,
    StudyVersion,
    Submission,
    Wave,
)
from app.studies.batches import CONFIRMED, DRAFTED, UPLOADED, ListedBatch
from app.studies.design import StudyDesign
from app.studies.endings import COMPLETED
from app.studies.payments import ADJUSTMENT
from app.studies.steps import CONSENT, DEBRIEF, DONE, INSTRUCTIONS, MATCH, PARTNER, PRACTICE, QUIZ, SURVEY, Step, steps

PAGE = 25  # people on a page
REPORT = "report"  # the kind of an event with which a person reported a match
_REPORTS = 50  # reports that are shown
_FAILURES = 20  # failures that are shown
_EVENTS = 500  # events of a person that are shown
HERE, COMPLETE, EARLY = "here", "completed", "ended early"
WHERE = (HERE, COMPLETE, EARLY)  # how the list of people is filtered


class WaveListItem(NamedTuple):
    """A wave in a list: how many people entered, are in it now and have completed it."""

    wave: Wave
    places: int
    entered: int
    here: int
    completed: int


def waves_of(session: Session, study_ids: Collection[int]) -> Mapping[int, Sequence[WaveListItem]]:
    """The waves of studies by the study, the latest first."""
    people = (
        select(
            Enrolment.wave_id,
            func.count().label("entered"),
            func.count().filter(Enrolment.ending.is_(None)).label("here"),
            func.count().filter(Enrolment.ending == COMPLETED).label("completed"),
        )
        .group_by(Enrolment.wave_id)
        .subquery()
    )
    counts = (func.coalesce(column, 0) for column in (people.c.entered, people.c.here, people.c.completed))
    rows = session.execute(
        select(Wave, *counts)
        .outerjoin(people, people.c.wave_id == Wave.id)
        .where(Wave.study_id.in_(study_ids))
        .order_by(Wave.id.desc())
    )
    found: dict[int, list[WaveListItem]] = {number: [] for number in study_ids}
    for wave, *counted in rows:
        found[wave.study_id].append(WaveListItem(wave, wave.settings["places"], *counted))
    return found


class FoundWave(NamedTuple):
    """A wave with its study and its version."""

    wave: Wave
    study: Study
    version: StudyVersion


def wave_by_id(session: Session, wave_id: int) -> FoundWave:
    """A wave by its number. Raises NotFound."""
    wave = session.get(Wave, wave_id)
    if wave is None:
        raise NotFound("wave", expected=Phrase("one that exists"), got=wave_id)
    study, version = session.get_one(Study, wave.study_id), session.get_one(StudyVersion, wave.study_version_id)
    return FoundWave(wave, study, version)


def here_now(session: Session, wave_id: int) -> int:
    """How many people are under way in a wave."""
    wanted = select(func.count()).select_from(Enrolment)
    return session.scalar(wanted.where(Enrolment.wave_id == wave_id, Enrolment.ending.is_(None))) or 0


# ---- How far people came -----------------------------------------------------------


class Stage(NamedTuple):
    """A part of the way that the funnel shows as one line. `block` counts from 0; steps run from `first` to `last`."""

    name: str  # entry | before | quiz | practice | block | end
    block: int | None
    first: int
    last: int
    matches: int


class StageCount(NamedTuple):
    """How many people reached a stage, went on from it, are in it now, and ended in it, by ending."""

    stage: Stage
    reached: int
    went_on: int
    here: int
    ended: Mapping[str, int]


class ArmCount(NamedTuple):
    """How an arm is filled. `quota` is its share of the places; `score` is None until the wave is frozen."""

    arm: Arm
    completed: int
    here: int
    ended: int
    quota: float
    score: float | None


class WaveFigures(NamedTuple):
    """What a wave has come to. `taken` are places that are held by people who are here or have completed."""

    entered: int
    here: int
    completed: int
    taken: int
    endings: Mapping[str, int]
    stages: Sequence[StageCount]
    arms: Sequence[ArmCount]
    median_minutes: float | None


def stages(design: StudyDesign) -> list[Stage]:
    """The stages of a design, in their order; the page with the code is none."""
    found: list[Stage] = []
    for at, step in enumerate(steps(design)):
        if step.kind == DONE:
            continue
        name, block = _stage_of(step)
        if found and (found[-1].name, found[-1].block) == (name, block):
            found[-1] = found[-1]._replace(last=at, matches=found[-1].matches + (step.kind == MATCH))
        else:
            found.append(Stage(name, block, at, at, int(step.kind == MATCH)))
    return found


def _stage_of(step: Step) -> tuple[str, int | None]:
    if step.kind == CONSENT:
        return "entry", None
    if step.kind in (PARTNER, DEBRIEF) or (step.kind == SURVEY and step.part == "end"):
        return "end", None
    if step.kind == SURVEY and step.part == "start":
        return "before", None
    if step.kind in (INSTRUCTIONS, QUIZ) and step.block == 0:
        return "quiz", None
    return ("practice", None) if step.kind == PRACTICE else ("block", step.block)


class _Group(NamedTuple):
    """People who are alike in what the figures count. `furthest` is the last step before their ending."""

    arm_id: int | None
    ending: str | None
    holds_place: bool
    step: int
    furthest: int
    people: int


def _groups(session: Session, wave: Wave, design: StudyDesign) -> list[_Group]:
    """The people of a wave in groups: one query, however many they are."""
    # Whoever ended early is led to the last pages, which therefore say nothing of how far they came.
    reached = {step.key: at for at, step in enumerate(steps(design)) if step.kind not in (DEBRIEF, DONE)}
    furthest = (
        select(
            StudyEvent.enrolment_id,
            func.max(case(reached, value=StudyEvent.body["step"].as_string(), else_=0)).label("step"),
        )
        .where(StudyEvent.wave_id == wave.id, StudyEvent.kind == "step")
        .group_by(StudyEvent.enrolment_id)
        .subquery()
    )
    columns = (
        Enrolment.arm_id, Enrolment.ending, Enrolment.holds_place, Enrolment.step, func.coalesce(furthest.c.step, 0),
    )  # fmt: skip
    rows = session.execute(
        select(*columns, func.count())
        .outerjoin(furthest, furthest.c.enrolment_id == Enrolment.id)
        .where(Enrolment.wave_id == wave.id)
        .group_by(*columns)
    )
    return [_Group(*row) for row in rows]


def wave_figures(session: Session, wave: Wave, design: StudyDesign) -> WaveFigures:
    """The figures of a wave at this moment."""
    groups = _groups(session, wave, design)
    endings: Counter[str] = Counter()
    for group in groups:
        if group.ending is not None:
            endings[group.ending] += group.people
    return WaveFigures(
        entered=sum(group.people for group in groups),
        here=sum(group.people for group in groups if group.ending is None),
        completed=endings[COMPLETED],
        taken=sum(group.people for group in groups if group.holds_place),
        endings=endings,
        stages=[_stage_count(stage, groups) for stage in stages(design)],
        arms=_arm_counts(session, wave, groups),
        median_minutes=_median_minutes(session, wave),
    )


def _stage_count(stage: Stage, groups: Sequence[_Group]) -> StageCount:
    reached = here = 0
    ended: Counter[str] = Counter()
    for group in groups:
        if group.ending == COMPLETED:
            reached += group.people
            continue
        at = group.step if group.ending is None else group.furthest
        reached += group.people if at >= stage.first else 0
        if stage.first <= at <= stage.last:
            if group.ending is None:
                here += group.people
            else:
                ended[group.ending] += group.people
    return StageCount(stage, reached, reached - here - ended.total(), here, ended)


def _arm_counts(session: Session, wave: Wave, groups: Sequence[_Group]) -> list[ArmCount]:
    arms = session.scalars(select(Arm).where(Arm.study_version_id == wave.study_version_id).order_by(Arm.id)).all()
    scores = _scores(session, wave) if wave.frozen_at is not None else {}
    counts: Counter[tuple[int | None, str]] = Counter()
    for group in groups:
        state = HERE if group.ending is None else COMPLETE if group.ending == COMPLETED else EARLY
        counts[group.arm_id, state] += group.people
    quota = wave.settings["places"] / len(arms)
    return [
        ArmCount(arm, counts[arm.id, COMPLETE], counts[arm.id, HERE], counts[arm.id, EARLY], quota, scores.get(arm.id))
        for arm in arms
    ]


def _scores(session: Session, wave: Wave) -> Mapping[int, float]:
    """The mean score of people in the matches that count, by arm."""
    score = case((SeatRow.seat == 0, MatchRow.utility_0), else_=MatchRow.utility_1)
    rows = session.execute(
        select(MatchRow.arm_id, func.avg(score))
        .join(SeatRow, SeatRow.match_id == MatchRow.id)
        .join(Enrolment, Enrolment.id == SeatRow.enrolment_id)
        .where(Enrolment.wave_id == wave.id, MatchRow.position.is_not(None))
        .group_by(MatchRow.arm_id)
    )
    return {arm: mean for arm, mean in rows if arm is not None and mean is not None}


def _median_minutes(session: Session, wave: Wave) -> float | None:
    """How long those who completed it took, in the middle; None before somebody has."""
    times = session.execute(
        select(Enrolment.enrolled_at, Enrolment.ended_at).where(
            Enrolment.wave_id == wave.id, Enrolment.ending == COMPLETED, Enrolment.ended_at.is_not(None)
        )
    )
    minutes = sorted((ended - began).total_seconds() / 60 for began, ended in times if ended is not None)
    half = len(minutes) // 2
    return None if not minutes else minutes[half] if len(minutes) % 2 else (minutes[half - 1] + minutes[half]) / 2


# ---- What went wrong ---------------------------------------------------------------


class WaveReport(NamedTuple):
    """A person reported a match and left it, or somebody of the wave has to be looked at for another reason."""

    event: StudyEvent
    code: str


def reports(session: Session, wave_id: int) -> list[WaveReport]:
    """The latest reports of people in a wave."""
    rows = session.execute(
        select(StudyEvent, Participant.code)
        .join(Enrolment, Enrolment.id == StudyEvent.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .where(StudyEvent.wave_id == wave_id, StudyEvent.kind == REPORT)
        .order_by(StudyEvent.id.desc())
        .limit(_REPORTS)
    )
    return [WaveReport(*row) for row in rows]


class BrokenMatch(NamedTuple):
    """A match that a model or the server could not go on with, and whose it was."""

    match_id: str
    enrolment_id: int
    code: str
    at: datetime


def broken_matches(session: Session, wave_id: int) -> tuple[int, list[BrokenMatch]]:
    """How many matches of a wave were broken off without a person's doing, and the latest of them."""
    broken = (
        select(MatchRow.id, Enrolment.id, Participant.code, MatchRow.moved_at, func.count().over())
        .join(SeatRow, SeatRow.match_id == MatchRow.id)
        .join(Enrolment, Enrolment.id == SeatRow.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .where(Enrolment.wave_id == wave_id, MatchRow.reason == "aborted")
        .order_by(MatchRow.moved_at.desc())
        .limit(_FAILURES)
    )
    rows = session.execute(broken).all()
    return (rows[0][-1] if rows else 0), [BrokenMatch(*row[:-1]) for row in rows]


# ---- People ------------------------------------------------------------------------


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
    query = _chosen(wave, chosen)
    total = session.scalar(query.with_only_columns(func.count())) or 0
    if before is not None:
        query = query.where(Enrolment.id < before)
    rows = session.execute(query.order_by(Enrolment.id.desc()).limit(PAGE + 1)).all()
    shown = rows[:PAGE]
    numbers = [enrolment.id for enrolment, _code, _arm in shown]
    since, played, pay = _since(session, numbers), _played(session, numbers), _pay(session, numbers)
    way = steps(design)
    listed = [
        PersonListItem(
            enrolment, code, arm, way[enrolment.step], enrolment.ended_at or since.get(enrolment.id) or
            enrolment.enrolled_at, played.get(enrolment.id, 0), pay.get(enrolment.id),
        )
        for enrolment, code, arm in shown
    ]  # fmt: skip
    return PeoplePage(listed, total, shown[-1][0].id if len(rows) > PAGE else None)


def _chosen(wave: Wave, chosen: PeopleFilter) -> Select[Any]:
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


def _played(session: Session, numbers: Sequence[int]) -> Mapping[int, int]:
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


# ---- One person --------------------------------------------------------------------


class PersonMatch(NamedTuple):
    """A match of a person. `position` counts from 0; None is practice."""

    row: MatchRow
    seat: int


class PersonDetail(NamedTuple):
    """All that is known of a person in a wave, but for who they are."""

    enrolment: Enrolment
    participant: Participant
    found: FoundWave
    arm: Arm | None
    events: Sequence[StudyEvent]
    matches: Sequence[PersonMatch]
    payments: Sequence[Payment]
    consents: Sequence[Consent]
    submissions: Sequence[Submission]


def person(session: Session, enrolment_id: int) -> PersonDetail:
    """A person by the number of their enrolment. Raises NotFound for one that is not there, or in no wave."""
    enrolment = session.get(Enrolment, enrolment_id)
    if enrolment is None or enrolment.wave_id is None:
        raise NotFound("enrolment", expected=Phrase("one that exists"), got=enrolment_id)
    matches = session.execute(
        select(MatchRow, SeatRow.seat)
        .join(SeatRow, SeatRow.match_id == MatchRow.id)
        .where(SeatRow.enrolment_id == enrolment_id)
        .order_by(MatchRow.started_at, MatchRow.id)
    )
    events = select(StudyEvent).where(StudyEvent.enrolment_id == enrolment_id).order_by(StudyEvent.id.desc())
    consents = select(Consent).where(Consent.participant_id == enrolment.participant_id).order_by(Consent.id)
    return PersonDetail(
        enrolment,
        session.get_one(Participant, enrolment.participant_id),
        wave_by_id(session, enrolment.wave_id),
        None if enrolment.arm_id is None else session.get_one(Arm, enrolment.arm_id),
        session.scalars(events.limit(_EVENTS)).all()[::-1],
        [PersonMatch(*row) for row in matches],
        session.scalars(select(Payment).where(Payment.enrolment_id == enrolment_id).order_by(Payment.id)).all(),
        session.scalars(consents).all(),
        session.scalars(select(Submission).where(Submission.enrolment_id == enrolment_id)).all(),
    )


def models_by_label(session: Session, version: StudyVersion, design: StudyDesign) -> Mapping[str, LanguageModel]:
    """Which model each label of a design stands for."""
    pinned: Mapping[str, int] = version.design["models"]
    rows = {row.id: row for row in session.scalars(select(LanguageModel).where(LanguageModel.id.in_(pinned.values())))}
    levels = design.levels("model").items()
    return {label: rows[pinned[str(level)]] for label, level in levels if pinned.get(str(level)) in rows}


# ---- Pay ---------------------------------------------------------------------------


class BatchSum(NamedTuple):
    """How many batches are in a state, and what they come to."""

    batches: int
    amount: Decimal


def batch_sums(listed: Sequence[ListedBatch]) -> Mapping[str, BatchSum]:
    """The sums of batches by their state, also of one that none is in."""
    found = {}
    for status in (DRAFTED, UPLOADED, CONFIRMED):
        own = [each.amount for each in listed if each.batch.status == status]
        found[status] = BatchSum(len(own), sum(own, Decimal(0)))
    return found


class ListedAdjustment(NamedTuple):
    """A payment by hand, with whose it is."""

    payment: Payment
    code: str


def adjustments(session: Session, wave_id: int) -> list[ListedAdjustment]:
    """What was adjusted in a wave, the latest first."""
    rows = session.execute(
        select(Payment, Participant.code)
        .join(Enrolment, Enrolment.id == Payment.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .where(Enrolment.wave_id == wave_id, Payment.key.startswith(ADJUSTMENT))
        .order_by(Payment.id.desc())
    )
    return [ListedAdjustment(*row) for row in rows]


def unsettled(session: Session, wave_id: int) -> int:
    """How many people of a wave have ended without a sum being written."""
    written = select(Payment.id).where(Payment.enrolment_id == Enrolment.id).exists()
    wanted = select(func.count()).select_from(Enrolment)
    return session.scalar(wanted.where(Enrolment.wave_id == wave_id, Enrolment.ending.is_not(None), ~written)) or 0
