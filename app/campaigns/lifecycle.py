"""A campaign's life: created, carried on step by step, cancelled, resumed, ended. Nothing here commits.

`app/states.py` says how the states follow each other.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session

from app import leases, states
from app.campaigns.material import Parted
from app.campaigns.spec import CampaignSpec
from app.errors import Conflict, Invalid, NotFound, Phrase, shown
from app.finetuning.config import check_model_name, read_config
from app.models import Campaign, CampaignEvaluation, CampaignIteration, LanguageModel
from app.registry import find_round_model

PATIENCE = timedelta(seconds=3)  # how long a ring may take to be heard before it counts as lost


def create(session: Session, spec: CampaignSpec, name: str | None, material: Parted, *, queued: bool) -> Campaign:
    """Write down a campaign that waits to be carried on, by workers if it is `queued`.

    Its models will be called NAME-1, NAME-2 and so on; without a name it gets one. `material` is what `material.parted`
    gives, which takes half a second, and so is made before a transaction. Raises NotFound for an unknown base, Conflict
    for a name that one of them would share, and Invalid for all else that cannot be run.
    """
    play, renew = material
    base = find_round_model(session, spec.game, spec.base)
    if base.kind != "local":
        raise Invalid(
            "base",
            expected=Phrase("a local model, which has weights to train"),
            got=Phrase("%(name)s, which is %(kind)s", name=base.name, kind=base.kind),
        )
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
    row = Campaign(
        name=name,
        game=spec.game,
        base_id=base.id,
        spec={**spec.to_json(), "source": play.source},
        material={"play": list(play.items), "held_out": list(renew.items)},
        iterations=spec.iterations,
        status=states.WAITING,
        queued=queued,
        created_at=datetime.now(UTC),
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


def get_campaign(session: Session, campaign_id: int) -> Campaign:
    """The campaign of that number. Raises NotFound."""
    row = session.get(Campaign, campaign_id) if 0 < campaign_id < 2**31 else None
    if row is None:
        raise NotFound(
            "campaign",
            expected=Phrase("the number of one that exists"),
            got=campaign_id,
            remedy=Phrase("`flask campaign list` shows them"),
        )
    return row


def iterations(session: Session, campaign_id: int) -> Sequence[CampaignIteration]:
    """The iterations of a campaign as far as they were begun; the first one is the base."""
    found = select(CampaignIteration).where(CampaignIteration.campaign_id == campaign_id)
    return session.scalars(found.order_by(CampaignIteration.number)).all()


def evaluations(session: Session, campaign_id: int) -> Sequence[CampaignEvaluation]:
    """The further evaluations of a campaign's models as far as they were begun, by iteration."""
    found = select(CampaignEvaluation).where(CampaignEvaluation.campaign_id == campaign_id)
    return session.scalars(found.order_by(CampaignEvaluation.iteration, CampaignEvaluation.round_id)).all()


# ---- The lease -------------------------------------------------------------------


def take(session: Session, campaign_id: int, owner: str, seconds: float) -> bool:
    """Take a campaign that is to be carried on and that nobody is at. One conditional UPDATE decides."""
    now = datetime.now(UTC)
    taken = session.scalar(
        update(Campaign)
        .where(
            Campaign.id == campaign_id,
            Campaign.status.in_(states.OPEN),
            or_(leases.free(Campaign, now), Campaign.lease_owner == owner),
        )
        .values(status=states.RUNNING, lease_owner=owner, lease_until=now + timedelta(seconds=seconds))
        .returning(Campaign.id)
        .execution_options(synchronize_session=False)
    )
    if taken is not None:
        _set(session, Campaign.id == taken, Campaign.started_at.is_(None), started_at=now)
    return taken is not None


def renew(session: Session, campaign_id: int, owner: str) -> Campaign | None:
    """The campaign, locked, if it is still ours and to be carried on."""
    row = session.get(Campaign, campaign_id, with_for_update=True, populate_existing=True)
    return row if row is not None and row.lease_owner == owner and row.status == states.RUNNING else None


def release(session: Session, campaign_id: int, owner: str) -> None:
    """Let go of a campaign, so that the next may carry it on; since when nobody is at it stays written down."""
    now = datetime.now(UTC)
    _set(session, Campaign.id == campaign_id, Campaign.lease_owner == owner, lease_owner=None, lease_until=now)
    settle_cancelled(session)


# ---- From state to state ---------------------------------------------------------


def finish(row: Campaign) -> None:
    """Nothing is left to do."""
    row.status, row.ended_at, row.error = states.DONE, datetime.now(UTC), None


def fail(row: Campaign, error: str) -> None:
    """Stop a campaign that cannot go on until somebody has mended what `error` says."""
    row.status, row.ended_at, row.error = states.FAILED, datetime.now(UTC), error


def cancel(session: Session, campaign_id: int) -> Campaign:
    """Ask for a campaign to stop; what it has made stays. Raises NotFound, and Conflict when it is over."""
    row = get_campaign(session, campaign_id)
    if leases.request_stop(
        session, row, Phrase("campaign %(number)s", number=campaign_id), Phrase("one that is running")
    ):
        settle_cancelled(session)
        session.refresh(row)
    return row


def settle_cancelled(session: Session) -> None:
    """Call campaigns that are being cancelled cancelled where nobody is at them any more."""
    now = datetime.now(UTC)
    which = and_(Campaign.status == states.CANCELLING, leases.free(Campaign, now))
    _set(session, which, status=states.CANCELLED, ended_at=now, lease_owner=None, lease_until=None)


def resume(session: Session, campaign_id: int, *, queued: bool) -> Campaign:
    """Let a campaign that stopped go on from its last step. Raises NotFound, and Conflict where there is none."""
    row = get_campaign(session, campaign_id)
    session.refresh(row, with_for_update=True)
    if row.status == states.DONE:
        raise Conflict(
            "campaign",
            expected=Phrase("one with something left to do"),
            got=Phrase("one that is done"),
            subject=Phrase("campaign %(number)s", number=campaign_id),
        )
    if row.status == states.CANCELLING or (row.status in states.OPEN and leases.is_held(row)):
        raise Conflict(
            "campaign",
            expected=Phrase("one that nobody is at"),
            got=Phrase("one that is %(status)s", status=Phrase(row.status)),
            subject=Phrase("campaign %(number)s", number=campaign_id),
        )
    row.status, row.queued, row.ended_at, row.error, row.rung_at = states.WAITING, queued, None, None, None
    session.flush()
    return row


def take_forgotten(session: Session) -> Sequence[int]:
    """Ids of queued campaigns whose next step may be due. Marks them as rung."""
    now = datetime.now(UTC)
    quiet = or_(Campaign.rung_at.is_(None), Campaign.rung_at < now - PATIENCE)
    waits = and_(Campaign.queued, Campaign.status.in_(states.OPEN), quiet, leases.free(Campaign, now))
    return leases.mark_enqueued(session, Campaign, waits, now)


def _set(session: Session, *which: ColumnElement[bool], **values: Any) -> None:
    session.execute(update(Campaign).where(*which).values(**values), execution_options={"synchronize_session": False})
