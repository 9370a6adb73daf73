"""How far the people of a wave got, how its arms are filled, and how long it takes.

How far a person got before an early ending is read from the log of the wave, because an ending leads to the last pages.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from app.models import Arm, Enrolment, MatchRow, SeatRow, StudyEvent, Wave
from app.studies.design import StudyDesign
from app.studies.endings import COMPLETED, INACTIVE, WITHDRAWN
from app.studies.monitor.people import COMPLETE, EARLY, HERE
from app.studies.participant_steps import (
    CONSENT,
    DEBRIEF,
    DONE,
    INSTRUCTIONS,
    MATCH,
    PARTNER,
    PRACTICE,
    QUIZ,
    SURVEY,
    Step,
    steps,
)
from app.studies.progress import STEP


class Stage(NamedTuple):
    """A part of a study that the funnel shows as one line. `block` counts from 0; steps run from `first` to `last`."""

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
    """The state of a wave. `taken` are places held by people who are here or have completed.

    `only_arrived` are people who opened the link and have not agreed to take part, whether they still may or went away.
    """

    entered: int
    here: int
    completed: int
    taken: int
    only_arrived: int
    endings: Mapping[str, int]
    stages: Sequence[StageCount]
    arms: Sequence[ArmCount]
    median_minutes: float | None


def stages(design: StudyDesign) -> list[Stage]:
    """The stages of a design, in order; the page with the code is not one."""
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
    agreed: bool
    step: int
    furthest: int
    people: int


def _groups_of_people(session: Session, wave: Wave, design: StudyDesign) -> list[_Group]:
    """The people of a wave in groups, by one query regardless of their number."""
    # People who ended early are sent to the last pages, which therefore do not show how far they came.
    reached = {step.key: at for at, step in enumerate(steps(design)) if step.kind not in (DEBRIEF, DONE)}
    # People who completed it passed all steps, so most logs need not be read.
    early = select(Enrolment.id).where(
        Enrolment.wave_id == wave.id, Enrolment.ending.is_not(None), Enrolment.ending != COMPLETED
    )
    furthest = (
        select(
            StudyEvent.enrolment_id,
            func.max(case(reached, value=StudyEvent.body["step"].as_string(), else_=0)).label("step"),
        )
        .where(StudyEvent.enrolment_id.in_(early), StudyEvent.kind == STEP)
        .group_by(StudyEvent.enrolment_id)
        .subquery()
    )
    columns = (
        Enrolment.arm_id, Enrolment.ending, Enrolment.holds_place, Enrolment.agreed_at.is_not(None), Enrolment.step,
        func.coalesce(furthest.c.step, 0),
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
    groups = _groups_of_people(session, wave, design)
    endings: Counter[str] = Counter()
    for group in groups:
        if group.ending is not None:
            endings[group.ending] += group.people
    return WaveFigures(
        entered=sum(group.people for group in groups),
        here=sum(group.people for group in groups if group.ending is None),
        completed=endings[COMPLETED],
        taken=sum(group.people for group in groups if group.holds_place),
        only_arrived=sum(
            group.people for group in groups if not group.agreed and group.ending in (None, INACTIVE, WITHDRAWN)
        ),
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
    scores = _mean_scores(session, wave) if wave.frozen_at is not None else {}
    counts: Counter[tuple[int | None, str]] = Counter()
    for group in groups:
        state = HERE if group.ending is None else COMPLETE if group.ending == COMPLETED else EARLY
        counts[group.arm_id, state] += group.people
    quota = wave.settings["places"] / len(arms)
    return [
        ArmCount(arm, counts[arm.id, COMPLETE], counts[arm.id, HERE], counts[arm.id, EARLY], quota, scores.get(arm.id))
        for arm in arms
    ]


def _mean_scores(session: Session, wave: Wave) -> Mapping[int, float]:
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
    """The median time of those who completed the wave, in minutes; None if nobody has."""
    times = session.execute(
        select(Enrolment.enrolled_at, Enrolment.ended_at).where(
            Enrolment.wave_id == wave.id, Enrolment.ending == COMPLETED, Enrolment.ended_at.is_not(None)
        )
    )
    minutes = [(ended - began).total_seconds() / 60 for began, ended in times if ended is not None]
    return median(minutes) if minutes else None
