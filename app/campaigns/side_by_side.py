"""The models of a campaign side by side: one for each iteration, against the base, in their evaluation rounds."""

from typing import Any

from sqlalchemy.orm import Session

from app.analysis.side_by_side import SideBySideChoice
from app.campaigns.iterations import results
from app.campaigns.job import CAMPAIGN
from app.campaigns.lifecycle import spec_of


def choice_of_campaign(session: Session, number: int, **further: Any) -> SideBySideChoice:
    """The models trained so far, in the rounds that evaluate them in self-play and against opponents.

    Raises NotFound for an unknown campaign.
    """
    spec = spec_of(CAMPAIGN.get(session, number).spec)
    iterations, rounds = {}, []
    with_partners = {each.label for each in spec.further if each.partner}
    for each in results(session, number):
        if each.model is None:
            continue
        iterations[each.model.name] = each.number
        rounds += [] if each.evaluation_id is None else [each.evaluation_id]
        rounds += [found.round_id for label, found in each.further.items() if label in with_partners]
    return SideBySideChoice(
        models=tuple(iterations),
        base=next(iter(iterations)),
        rounds=tuple(rounds),
        iterations=iterations,
        **{"game": spec.game, **further},
    )
