"""What an enrolment is owed, in exact decimals: the base by its ending, the bonus by its matches. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from app.studies.arms import Condition
from app.studies.cost import match_bonus
from app.studies.design import StudyDesign
from app.studies.endings import BY_TIME, EARNED, FULL_BASE, NO_BASE, PROLIFIC, EndingName
from app.studies.quantities import rounded

NOTHING = Decimal("0.00")
LONGEST_BREAK = timedelta(minutes=10)  # the most that is paid by time for a gap between signs of life
# Recruiters that pay the base when a submission is approved; mturk did so in waves from before it closed.
APPROVING = ("prolific", "connect", "mturk")
_NOT_APPROVED = ("returned", "timed_out", "rejected")
_DIGITS = 9  # after the point of a utility; further ones come from λ times binary fractions and are no points


class PlayedMatch(NamedTuple):
    """A finished match that counts. `points` are the paid ones; None if a model or we broke it off.

    A participant who left because of a problem and reported it gets at least what a match aborted by a model pays.
    """

    match_id: str
    condition: Condition
    points: Decimal | None
    reported: bool = False


def exact(points: float) -> Decimal:
    """Points as intended: 0.1 + 0.2 are 0.3."""
    return Decimal(str(round(points, _DIGITS)))


def bonus_owed(design: StudyDesign, matches: Iterable[PlayedMatch]) -> Decimal:
    """The bonus for matches, each counted once: rounded once, never above `most_a_person` and never below zero.

    The pay for a match that a model aborted is earned like any other, so it counts towards `most_a_person`, too.
    """
    once = {each.match_id: each for each in matches}
    total = sum((_earned_in(design, each) for each in once.values()), Decimal(0))
    return max(NOTHING, min(rounded(total), design.pay.most_a_person))


def _earned_in(design: StudyDesign, match: PlayedMatch) -> Decimal:
    failure = design.pay.bonus.model_failure
    if match.points is None:
        return failure
    earned = match_bonus(design, match.condition, match.points)
    return max(earned, failure) if match.reported else earned


def base_owed(design: StudyDesign, name: EndingName, taken: timedelta) -> Decimal:
    """The base pay for an ending after the time taken: never less than the ending's `least`."""
    ending, full = design.ending(name, PROLIFIC), design.pay.base
    if ending.base == FULL_BASE:
        amount = full
    elif ending.base == NO_BASE:
        amount = NOTHING
    elif ending.base == BY_TIME:
        share = Decimal(taken // timedelta(microseconds=1)) / (design.minutes * 60_000_000)
        amount = min(full, full * share)
    else:
        amount = Decimal(ending.base)
    return rounded(max(amount, ending.least or NOTHING))


def pays_bonus(design: StudyDesign, name: EndingName) -> bool:
    """Whether an ending pays what was earned."""
    return design.ending(name, PROLIFIC).bonus == EARNED


def is_paid_by_approval(design: StudyDesign, name: EndingName, recruiter: str, status: str | None) -> bool:
    """Whether the recruiter pays the base by approving the submission; `status` is the recruiter's status of it.

    Approval pays the full base and nothing else, and no submission that was returned, timed out or rejected.
    """
    full = design.ending(name, PROLIFIC).base == FULL_BASE
    return full and recruiter in APPROVING and status not in _NOT_APPROVED


def time_taken(signs: Iterable[datetime]) -> timedelta:
    """The time from the first sign of life to the last, counting at most LONGEST_BREAK of each gap between two."""
    ordered = sorted(signs)
    gaps = (later - earlier for earlier, later in pairwise(ordered))
    return sum((min(gap, LONGEST_BREAK) for gap in gaps), timedelta(0))
