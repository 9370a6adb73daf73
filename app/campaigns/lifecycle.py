"""Creating campaigns, and reading what belongs to one. Nothing here commits.

`app/campaigns/job.py` is what becomes of one later.
"""

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.campaigns.job import CAMPAIGN
from app.campaigns.material import Parted
from app.campaigns.spec import CampaignSpec
from app.errors import Conflict, Invalid, NotFound, Phrase, shown
from app.finetuning.backends import find_backend
from app.finetuning.config import LOCAL, check_model_name, read_config
from app.jobs import states
from app.models import Campaign, CampaignEvaluation, CampaignIteration, LanguageModel
from app.registry import find_round_model


def create(session: Session, spec: CampaignSpec, name: str | None, material: Parted, *, queued: bool) -> Campaign:
    """Write down a campaign that waits to be carried on, by workers if it is `queued`.

    Its models will be called NAME-1, NAME-2 and so on; without a name it gets one. `material` is what `material.parted`
    gives, which takes half a second, and so is made before a transaction. Raises NotFound for an unknown base, Conflict
    for a name that one of them would share, and Invalid for all else that cannot be run.
    """
    play, held = material
    base = find_round_model(session, spec.game, spec.base)
    find_backend(LOCAL).check_base(base)
    read_config(spec.method, spec.training)
    _check_partner(session, spec)
    name = name or _default_name(session, spec)
    names = [model_name(name, number) for number in range(1, spec.iterations + 1)]
    for each in names:
        check_model_name(each)
    taken = session.scalar(select(LanguageModel.name).where(LanguageModel.name.in_(names)).limit(1))
    twin = session.scalar(select(Campaign.id).where(Campaign.name == name, Campaign.status.in_(states.LIVE)).limit(1))
    if taken is not None or twin is not None:
        got = (
            Phrase("%(name)s, whose model %(model)s is there already", name=shown(name), model=taken)
            if taken
            else Phrase(
                "%(name)s, which campaign %(campaign)s has, and it is not over", name=shown(name), campaign=twin
            )
        )
        raise Conflict("name", expected=Phrase("one that is not taken"), got=got)
    row = CAMPAIGN.new_row(
        queued=queued,
        name=name,
        game=spec.game,
        base_id=base.id,
        spec={**spec.to_json(), "source": play.source},
        material={"play": list(play.items), "held_out": list(held.items)},
        iterations=spec.iterations,
    )
    session.add(row)
    session.flush()
    session.add(CampaignIteration(campaign_id=row.id, number=0, model_id=base.id))
    session.flush()
    return row


def _check_partner(session: Session, spec: CampaignSpec) -> None:
    """Raises Invalid for a partner that cannot be the one that no model of the campaign learns with."""
    if spec.partner is None:
        return
    try:
        find_round_model(session, spec.game, spec.partner)
    except NotFound as error:
        raise Invalid("partner", **{**error.parts, "remedy": Phrase("or none")}) from None
    if spec.partner == spec.base:
        raise Invalid("partner", expected=Phrase("another model than the base, or none"), got=spec.partner)


def _default_name(session: Session, spec: CampaignSpec) -> str:
    """What a campaign is called that nobody has named: its base, its objective if that is a word, and a free number."""
    objective = spec.config.get("objective")
    about = f"{spec.base}-{objective}" if isinstance(objective, str) else spec.base
    number = (session.scalar(select(func.max(Campaign.id))) or 0) + 1
    return f"{about[:60]}-c{number}"


def model_name(campaign: str, number: int) -> str:
    """What the model of an iteration is called."""
    return f"{campaign}-{number}"


def iterations(session: Session, campaign_id: int) -> Sequence[CampaignIteration]:
    """The iterations of a campaign as far as they were begun; the first one is the base."""
    found = select(CampaignIteration).where(CampaignIteration.campaign_id == campaign_id)
    return session.scalars(found.order_by(CampaignIteration.number)).all()


def evaluations(session: Session, campaign_id: int) -> Sequence[CampaignEvaluation]:
    """The further evaluations of a campaign's models as far as they were begun, by iteration."""
    found = select(CampaignEvaluation).where(CampaignEvaluation.campaign_id == campaign_id)
    return session.scalars(found.order_by(CampaignEvaluation.iteration, CampaignEvaluation.round_id)).all()
