"""The steps of a campaign. Each is small, is stored before the next, and may be done by another process.

Rounds and trainings have jobs of their own; a campaign creates them, waits until they are over, and goes on from what
they left. So whatever is killed, the loop goes on from its last step.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.analysis.evaluations import figures_of_model
from app.campaigns import lifecycle, rounds
from app.campaigns.job import CAMPAIGN
from app.campaigns.spec import ALL_ROUNDS, BASE, CampaignSpec, needs_rewards
from app.core.extensions import reading, transact, writing
from app.datasets import build, register, store
from app.datasets.filters import NONZERO
from app.datasets.spec import DatasetSpec
from app.finetuning import lifecycle as jobs
from app.finetuning.job import TRAINING
from app.finetuning.spec import TrainingSpec
from app.games.base import JSON
from app.jobs import states
from app.jobs.chained import AwaitedJob
from app.jobs.context import JobContext
from app.jobs.kind import finish, requester_of
from app.models import Campaign, CampaignEvaluation, CampaignIteration, CampaignRound, LanguageModel, TrainingJob
from app.rounds.job import ROUND
from app.rounds.plan import match_seed


class _Filter(NamedTuple):
    """The next step is to cut the dataset of this iteration."""

    number: int
    wanted: DatasetSpec


class _Analysis(NamedTuple):
    """The next step is to take the figures of this iteration's evaluation, or of a further one by its label."""

    number: int
    label: str | None
    round_id: int
    base: int | None  # the same evaluation of the base


def run(context: JobContext, campaign_id: int) -> None:
    """Take every step of a campaign that can be taken now. Upkeep calls a worker when the next may be due."""
    take_steps(context, campaign_id)


def take_steps(context: JobContext, campaign_id: int) -> AwaitedJob | None:
    """Take every step that can be taken at once. Returns what has to be over before the next one, if anything has."""
    return CAMPAIGN.take_steps(context, campaign_id, _steps)


def _steps(context: JobContext, campaign_id: int) -> AwaitedJob | None:
    while True:
        with writing(context.database) as session:
            row = CAMPAIGN.running(session, campaign_id, context.owner)
            if row is None:
                return None
            due = _next(session, row, context.settings.home)
            if due is None:
                return None
            name = row.name
        if isinstance(due, AwaitedJob):
            return due
        if isinstance(due, _Analysis):
            _analyse(context, campaign_id, due)
        else:
            _filter(context, campaign_id, due, name)


def _next(session: Session, row: Campaign, home: Path) -> AwaitedJob | _Filter | _Analysis | None:
    """Go on until there is something to wait for, or something to do that takes longer than a transaction may; None at
    the end.
    """
    spec = lifecycle.spec_of(row.spec)
    while True:
        done = lifecycle.iterations(session, row.id)
        last = done[-1]
        due = _in_iteration(session, row, spec, done, home)
        if due is not None:
            return due
        if row.status != states.RUNNING:
            return None
        if last.number == row.iterations:
            finish(row)
            return None
        session.add(CampaignIteration(campaign_id=row.id, number=last.number + 1))
        session.flush()


def _in_iteration(
    session: Session, row: Campaign, spec: CampaignSpec, done: Sequence[CampaignIteration], home: Path
) -> AwaitedJob | _Filter | _Analysis | None:
    """What the last iteration needs next, created if need be; None when it has all, or the campaign failed."""
    now = done[-1]
    if now.number > 0:
        if now.dataset_id is None and spec.is_start(now.number):
            now.dataset_id = spec.start_data
        if now.dataset_id is None:
            playing = _self_play(session, row, spec, now, done[-2])
            return _cut(session, row, spec, done) if playing is None else _waiting(row, playing)
        if now.job_id is None:
            now.job_id = _job(session, row, spec, done, home)
        if not CAMPAIGN.is_done(session, row, AwaitedJob(TRAINING, now.job_id)):
            return _waiting(row, AwaitedJob(TRAINING, now.job_id))
        now.model_id = session.get_one(TrainingJob, now.job_id).model_id
    if now.evaluation_id is None:
        now.evaluation_id = rounds.evaluate(session, row, spec, now.number, now.model_id, spec.as_played)
    if not CAMPAIGN.is_done(session, row, AwaitedJob(ROUND, now.evaluation_id)):
        return _waiting(row, AwaitedJob(ROUND, now.evaluation_id))
    if now.figures is None:
        return _Analysis(now.number, None, now.evaluation_id, done[0].evaluation_id)
    session.flush()
    return _further(session, row, spec, now)


def _self_play(
    session: Session, row: Campaign, spec: CampaignSpec, now: CampaignIteration, before: CampaignIteration
) -> AwaitedJob | None:
    """The round that an iteration has to wait for before its dataset can be cut; None when all of them are over."""
    taught = spec.is_start(now.number)
    if now.round_id is None:
        now.round_id = (
            rounds.teach(session, row, spec, now.number)
            if taught
            else rounds.play(session, row, spec, now.number, before.model_id)
        )
    if not CAMPAIGN.is_done(session, row, AwaitedJob(ROUND, now.round_id)):
        return AwaitedJob(ROUND, now.round_id)
    for partner in () if taught else spec.matches_against:
        begun = session.get(CampaignRound, (row.id, now.number, partner))
        if begun is None:
            number = rounds.play_with(session, row, spec, now.number, before.model_id, partner)
            begun = CampaignRound(campaign_id=row.id, iteration=now.number, partner=partner, round_id=number)
            session.add(begun)
        if not CAMPAIGN.is_done(session, row, AwaitedJob(ROUND, begun.round_id)):
            return AwaitedJob(ROUND, begun.round_id)
    return None


def _cut(session: Session, row: Campaign, spec: CampaignSpec, done: Sequence[CampaignIteration]) -> _Filter:
    """How the dataset of the last iteration is to be cut: what the models said that learn, and not their partners."""
    now = done[-1]
    taught = spec.is_start(now.number)
    first = now.number if taught or spec.data_of != ALL_ROUNDS else 1 + spec.has_start
    own = done[first:]
    numbers = {each.number for each in own}
    partners = [each for each in lifecycle.rounds_with_partners(session, row.id) if each.iteration in numbers]
    learners = [session.get_one(LanguageModel, done[each.number - 1].model_id).name for each in own]
    played = [number for each in own if (number := each.round_id) is not None] + [each.round_id for each in partners]
    wanted = DatasetSpec(
        rounds=tuple(sorted(played)),
        filter=NONZERO if taught else spec.kept,
        style=session.get_one(LanguageModel, row.base_id).prompt_style,
        rewards=spec.given_rewards,
        decay=spec.given_decay,
        role_weights=spec.role_weights,
        positive_only=spec.positive_only,
        models=tuple(sorted(learners)) if partners else (),
    )
    return _Filter(now.number, wanted)


def _further(
    session: Session, row: Campaign, spec: CampaignSpec, now: CampaignIteration
) -> AwaitedJob | _Analysis | None:
    """The evaluation that an iteration's model needs next beside the first one; None when it has all."""
    for each in spec.further:
        begun = session.get(CampaignEvaluation, (row.id, now.number, each.label))
        if begun is None:
            number = rounds.evaluate(session, row, spec, now.number, now.model_id, each)
            begun = CampaignEvaluation(campaign_id=row.id, iteration=now.number, label=each.label, round_id=number)
            session.add(begun)
        if not CAMPAIGN.is_done(session, row, AwaitedJob(ROUND, begun.round_id)):
            return _waiting(row, AwaitedJob(ROUND, begun.round_id))
        if begun.figures is None:
            base = session.get_one(CampaignEvaluation, (row.id, 0, each.label)).round_id
            return _Analysis(now.number, each.label, begun.round_id, base)
        session.flush()
    return None


def _evaluated(session: Session, row: Campaign, now: CampaignIteration, round_id: int, base_round: int | None) -> JSON:
    """The figures of an iteration's model in an evaluation that is over, beside those of the base."""
    names = [session.get_one(LanguageModel, number).name for number in (now.model_id, row.base_id)]
    first = None if now.number == 0 or base_round is None else (base_round, names[1])
    return figures_of_model(session, round_id, names[0], first)


def _waiting(row: Campaign, part: AwaitedJob) -> AwaitedJob | None:
    """The part, unless it is what the campaign has failed of."""
    return part if row.status == states.RUNNING else None


# ---- The steps -------------------------------------------------------------------


def _filter(context: JobContext, campaign_id: int, due: _Filter, name: str) -> None:
    """Cut the dataset of an iteration. Raises Invalid when the filter leaves nothing."""
    with reading(context.database) as session:
        found = build.prepare(session, due.wanted)
        draft = store.write(context.settings.home, found, build.training_rows(session, found))
    number = register.add(transact(context.database), draft, lifecycle.model_name(name, due.number))
    with writing(context.database) as session:
        if CAMPAIGN.running(session, campaign_id, context.owner) is None:
            return
        row = session.get_one(CampaignIteration, (campaign_id, due.number))
        row.dataset_id = register.publish(session, number).id


def _analyse(context: JobContext, campaign_id: int, due: _Analysis) -> None:
    """Take the figures of an evaluation."""
    with reading(context.database) as session:
        now = session.get_one(CampaignIteration, (campaign_id, due.number))
        found = _evaluated(session, session.get_one(Campaign, campaign_id), now, due.round_id, due.base)
    with writing(context.database) as session:
        if CAMPAIGN.running(session, campaign_id, context.owner) is None:
            return
        if due.label is None:
            session.get_one(CampaignIteration, (campaign_id, due.number)).figures = found
        else:
            session.get_one(CampaignEvaluation, (campaign_id, due.number, due.label)).figures = found


def _job(session: Session, row: Campaign, spec: CampaignSpec, done: Sequence[CampaignIteration], home: Path) -> int:
    """Create the training of the last iteration; its number.

    The model that played is the reference of a method that learns from rewards, whatever the training goes on from.
    """
    now, before = done[-1], done[-2]
    player = session.get_one(LanguageModel, before.model_id)
    base = session.get_one(LanguageModel, row.base_id) if spec.start == BASE else player
    method, fields = spec.method, spec.training
    if spec.is_start(now.number):
        method, fields = spec.start_method, spec.start_training
    request = TrainingSpec(
        method=method,
        dataset=str(now.dataset_id),
        name=lifecycle.model_name(row.name, now.number),
        base=base.name,
        config={"seed": match_seed(spec.seed, now.number) % 2**32, **fields},
        reference=player.name if player is not base and needs_rewards(method) else None,
        sft_data=None if spec.is_start(now.number) or spec.sft_data is None else str(spec.sft_data),
    )
    return jobs.create(session, request, queued=row.queued, home=home, goes_on=True, requester=requester_of(row)).id
