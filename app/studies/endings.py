"""The endings of enrolments, and what each pays. Pure.

An ending determines whether the base is paid, whether the earned bonus is paid, whether the place goes to another
person, and whether the data counts. A design changes the endings it names; the rest come from a preset.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from app.studies.quantities import Money

EndingName = Literal[
    "completed", "declined", "ineligible", "quiz_failed", "no_partner", "partner_left", "technical", "inactive",
    "withdrawn", "removed", "full", "closed",
]  # fmt: skip
COMPLETED: EndingName = "completed"
DECLINED: EndingName = "declined"
INELIGIBLE: EndingName = "ineligible"
QUIZ_FAILED: EndingName = "quiz_failed"
NO_PARTNER: EndingName = "no_partner"
PARTNER_LEFT: EndingName = "partner_left"
TECHNICAL: EndingName = "technical"
INACTIVE: EndingName = "inactive"
WITHDRAWN: EndingName = "withdrawn"
REMOVED: EndingName = "removed"
FULL: EndingName = "full"
CLOSED: EndingName = "closed"
FULL_BASE: Literal["full"] = "full"
BY_TIME: Literal["by time"] = "by time"
NO_BASE: Literal["none"] = "none"
EARNED: Literal["earned"] = "earned"
NO_BONUS: Literal["none"] = "none"
Base = Money | Literal["full", "by time", "none"]


class Ending(BaseModel):
    """The consequences of an ending.

    `base`: all of the base pay, the share of it that the time taken is of the stated time, none, or an amount; never
    less than `least`, if given. `bonus`: what was earned, or none. `frees_place`: whether another person takes the
    place. `keeps_data`: whether the data counts as taken part.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    base: Base = NO_BASE
    least: Money | None = None
    bonus: Literal["earned", "none"] = NO_BONUS
    frees_place: bool = True
    keeps_data: bool = True


class EndingChange(BaseModel):
    """A design's changes to an ending."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    base: Base | None = None
    least: Money | None = None
    bonus: Literal["earned", "none"] | None = None
    frees_place: bool | None = None
    keeps_data: bool | None = None


# At Prolific, a return can only be paid by bonus, a failed quiz is no reason to reject, and early screen-outs get a
# fixed reward. Whatever was earned is paid.
PROLIFIC: Mapping[EndingName, Ending] = {
    COMPLETED: Ending(base=FULL_BASE, bonus=EARNED, frees_place=False),
    DECLINED: Ending(keeps_data=False),
    INELIGIBLE: Ending(keeps_data=False),
    QUIZ_FAILED: Ending(bonus=EARNED),
    NO_PARTNER: Ending(base=BY_TIME, bonus=EARNED),
    PARTNER_LEFT: Ending(base=FULL_BASE, bonus=EARNED),
    TECHNICAL: Ending(base=FULL_BASE, bonus=EARNED),
    INACTIVE: Ending(base=BY_TIME, bonus=EARNED),
    WITHDRAWN: Ending(base=BY_TIME, bonus=EARNED),
    REMOVED: Ending(bonus=EARNED),
    FULL: Ending(keeps_data=False),
    CLOSED: Ending(base=BY_TIME, bonus=EARNED),
}
