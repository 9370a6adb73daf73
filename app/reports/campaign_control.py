"""Another campaign as the control of one: its gain, and the campaign's lead over it on the same matches."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.analysis.wording import number, signed_in_words
from app.campaigns.iterations import IterationResult, results
from app.campaigns.job import CAMPAIGN
from app.campaigns.lifecycle import spec_of
from app.core.errors import Conflict, Phrase
from app.core.validation import whole_number
from app.games import metrics_of
from app.jobs.kind import LARGEST
from app.models import Campaign
from app.reports.common_sections import key_difference
from app.reports.gains import GainArm, difference_of, same_matches
from app.reports.origins import differing_settings
from app.reports.report import KeyFigure, ReportTable


class CampaignControl(NamedTuple):
    """The control of a campaign: its evaluated iterations, the gain of its final model over its base, and the lead of
    the campaign's final model over its final model.
    """

    row: Campaign
    found: Sequence[IterationResult]
    gain: Figure
    apart: Figure


def evaluated_iterations(session: Session, number: int) -> list[IterationResult]:
    """The iterations of a campaign that have figures; the first one is the base."""
    return [each for each in results(session, number) if each.figures is not None]


def arm_of(row: Campaign, found: Sequence[IterationResult]) -> GainArm:
    """A campaign as an arm, by the evaluations of its base and of its final model."""
    rounds = [each.evaluation_id for each in (*found[:1], *found[1:][-1:]) if each.evaluation_id]
    return GainArm(row.name, {None: (rounds[0], rounds[1])} if len(rounds) == 2 else {})


def read_control(session: Session, row: Campaign, found: Sequence[IterationResult], raw: str) -> CampaignControl:
    """The control with that number. Raises Invalid, NotFound, and Conflict if its evaluations are not on the same
    matches.
    """
    other = CAMPAIGN.get(session, whole_number(raw, "control", 1, LARGEST))
    control = evaluated_iterations(session, other.id)
    own, arm = arm_of(row, found), arm_of(other, control)
    rounds = [each for pair in (*own.evaluations.values(), *arm.evaluations.values()) for each in pair]
    if other.id == row.id or other.game != row.game or len(rounds) < 4 or not same_matches(session, *rounds):
        raise Conflict(
            "control",
            expected=Phrase(
                "another campaign whose base and final model were evaluated on the same matches as campaign %(number)s",
                number=row.id,
            ),
            got=other.id,
            remedy=Phrase(
                "run the control with the same seed, material, settings of the game and number of evaluation matches"
            ),
        )
    before = GainArm("", {None: (rounds[2], rounds[2])})
    return CampaignControl(
        other, control, difference_of(session, row.game, arm, before), difference_of(session, row.game, own, arm)
    )


def control_figures(game: str, control: CampaignControl) -> list[KeyFigure]:
    """The figures of a control that are shown beside those of the campaign."""
    unit, last = metrics_of(game).headline.unit, control.found[-1].number
    return [
        key_difference(f"Control: iteration {last} minus base", control.gain, unit),
        key_difference("Campaign minus control", control.apart, unit),
    ]


def control_finding(game: str, control: CampaignControl) -> str:
    """The control's result compared with the campaign's, in a sentence."""
    metric = metrics_of(game).headline
    ends = [(control.found[place].figures or {}).get(metric.name, {}).get("value") for place in (0, -1)]
    old, new = (number(each, metric.unit) for each in ends)
    apart = signed_in_words(control.apart, metric.unit)
    return f"The control, campaign {control.row.id}, goes from {old} to {new}: the campaign has {apart} over it."


def control_settings(row: Campaign, control: CampaignControl) -> ReportTable:
    """The settings in which the control differs, apart from the names."""
    own = spec_of(row.spec)
    other = spec_of(control.row.spec).model_copy(update={"name": own.name})
    caption = f"In what the control, campaign {control.row.id} ({control.row.name}), differs; all else is the same."
    return differing_settings("control-settings", caption, ("This campaign", "Control"), own, other)
