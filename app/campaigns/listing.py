"""Campaigns for experimenters: a page of them, the step that one is at, the results of its models, and its chart."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.analysis.campaign_charts import Point, figure
from app.analysis.chart import Chart
from app.analysis.language import ENGLISH, Language
from app.campaigns import lifecycle
from app.campaigns.job import CAMPAIGN
from app.campaigns.spec import CampaignSpec, EvaluationSpec
from app.core.errors import Phrase, Verbatim
from app.core.lists import ListColumn, Listing, Measured, Reference, of_other
from app.finetuning.job import TRAINING
from app.games import metrics_of, partner_weight_of
from app.games.base import JSON
from app.jobs import states
from app.jobs.chained import AwaitedJob
from app.jobs.listing import job_columns
from app.models import (
    Campaign,
    CampaignEvaluation,
    CampaignIteration,
    CampaignRound,
    Dataset,
    LanguageModel,
    RoundRow,
    TrainingJob,
)
from app.registry.listing import game_cell, model_column
from app.rounds.job import ROUND

PLAY, CUT, TRAIN, EVALUATE = "play", "cut", "train", "evaluate"


class CurrentStep(NamedTuple):
    """The step that a campaign is at, in which iteration, and how far it is: `done` matches or training steps `of`."""

    iteration: int
    step: str
    part: AwaitedJob | None  # the round or the job; none while a dataset is cut, and before there is one
    done: int
    of: int | None


class CampaignListItem(NamedTuple):
    """A campaign in a list."""

    row: Campaign
    state: str
    base: LanguageModel
    evaluated: int  # iterations that are done, with all their evaluations; the base is none
    latest: Mapping[str, Any] | None  # figures of the model that was evaluated last

    @property
    def done(self) -> int:
        return self.evaluated

    @property
    def of(self) -> int:
        return self.row.iterations

    @property
    def headline(self) -> Measured | None:
        """The figure of its latest model that says most."""
        metric = metrics_of(self.row.game).headline
        found = (self.latest or {}).get(metric.name)
        return None if found is None else Measured(metric.name, metric.heading, Figure(**found))


class IterationResult(NamedTuple):
    """An iteration, with its results so far."""

    row: CampaignIteration
    dataset: Dataset | None
    model: LanguageModel | None
    further: Mapping[str, CampaignEvaluation]  # its further evaluations as far as they were begun, by label
    with_partners: Mapping[str, int]  # its rounds with partners as far as they were begun, by the partner's name

    @property
    def evaluations(self) -> Mapping[str, Mapping[str, Any]]:
        """The figures of its further evaluations that are over, by label."""
        return {label: each.figures for label, each in self.further.items() if each.figures is not None}


def list_items(session: Session, rows: Sequence[Campaign]) -> list[CampaignListItem]:
    """Campaigns as items of a list."""
    found, states_by_number = results_of(session, rows), CAMPAIGN.states_of(session, rows)
    bases = select(LanguageModel).where(LanguageModel.id.in_([row.base_id for row in rows]))
    base = {each.id: each for each in session.scalars(bases)}
    items = []
    for row in rows:
        figures = [each.row.figures for each in found[row.id] if each.row.figures is not None]
        done, latest = evaluated(row, found[row.id]), figures[-1] if figures else None
        items.append(CampaignListItem(row, states_by_number[row.id], base[row.base_id], done, latest))
    return items


def evaluated(row: Campaign, found: Sequence[IterationResult]) -> int:
    """How many iterations of a campaign are done; all but the last that was begun are. The base is none."""
    done = sum(each.row.number > 0 and each.row.figures is not None for each in found)
    if not done or found[-1].row.figures is None:
        return done
    return done - (_open_evaluation(row, found[-1].evaluations) is not None)


def _open_evaluation(row: Campaign, over: Collection[str]) -> EvaluationSpec | None:
    """The first further evaluation of an iteration that is not `over`, by label."""
    return next((each for each in lifecycle.spec_of(row.spec).further if each.label not in over), None)


def place_of(session: Session, *, round_id: int | None = None, job_id: int | None = None) -> Reference | None:
    """The campaign and iteration that a round or a job is a step of; None for one that is on its own."""
    if round_id is not None:
        further = select(CampaignEvaluation).where(
            CampaignEvaluation.round_id == round_id,
            CampaignEvaluation.campaign_id == CampaignIteration.campaign_id,
            CampaignEvaluation.iteration == CampaignIteration.number,
        )
        with_partner = select(CampaignRound).where(
            CampaignRound.round_id == round_id,
            CampaignRound.campaign_id == CampaignIteration.campaign_id,
            CampaignRound.iteration == CampaignIteration.number,
        )
        own = (CampaignIteration.round_id == round_id, CampaignIteration.evaluation_id == round_id)
        belongs = or_(*own, further.exists(), with_partner.exists())
    else:
        belongs = CampaignIteration.job_id == job_id
    found = session.execute(
        select(Campaign, CampaignIteration.number)
        .join(CampaignIteration, CampaignIteration.campaign_id == Campaign.id)
        .where(belongs)
        .order_by(CampaignIteration.campaign_id, CampaignIteration.number)
    ).first()
    if found is None:
        return None
    row, number = found
    called = Verbatim(row.name)
    base = Phrase("Campaign %(name)s, its base", name=called)
    step = Phrase("Campaign %(name)s, iteration %(number)s", name=called, number=number)
    return Reference(CAMPAIGN.name, row.id, step if number else base)


# ---- One campaign ----------------------------------------------------------------


def results(session: Session, campaign_id: int) -> list[IterationResult]:
    """The iterations of a campaign as far as they were begun; the first one is the base."""
    return results_of(session, [CAMPAIGN.get(session, campaign_id)])[campaign_id]


def results_of(session: Session, rows: Sequence[Campaign]) -> dict[int, list[IterationResult]]:
    """The iterations of each campaign as far as they were begun, by the campaign's number."""
    numbers = [row.id for row in rows]
    begun = select(CampaignIteration).where(CampaignIteration.campaign_id.in_(numbers))
    steps = session.scalars(begun.order_by(CampaignIteration.campaign_id, CampaignIteration.number)).all()
    others = select(CampaignEvaluation).where(CampaignEvaluation.campaign_id.in_(numbers))
    ordered = others.order_by(CampaignEvaluation.campaign_id, CampaignEvaluation.iteration, CampaignEvaluation.round_id)
    further = [*session.scalars(ordered)]
    played = select(CampaignRound).where(CampaignRound.campaign_id.in_(numbers)).order_by(CampaignRound.round_id)
    with_partners = [*session.scalars(played)]
    datasets = select(Dataset).where(Dataset.id.in_([step.dataset_id for step in steps]))
    models = select(LanguageModel).where(LanguageModel.id.in_([step.model_id for step in steps]))
    built = {each.id: each for each in session.scalars(datasets)}
    made = {each.id: each for each in session.scalars(models)}
    found: dict[int, list[IterationResult]] = {number: [] for number in numbers}
    for step in steps:
        own = [each for each in further if (each.campaign_id, each.iteration) == (step.campaign_id, step.number)]
        found[step.campaign_id].append(
            IterationResult(
                step,
                built.get(step.dataset_id or 0),
                made.get(step.model_id or 0),
                {each.label: each for each in own},
                {
                    each.partner: each.round_id
                    for each in with_partners
                    if (each.campaign_id, each.iteration) == (step.campaign_id, step.number)
                },
            )
        )
    return found


def figure_of(session: Session, campaign_id: int, language: Language = ENGLISH) -> Chart | None:
    """The figure of a campaign, as far as it has come; None before its base was evaluated."""
    row = CAMPAIGN.get(session, campaign_id)
    points = [
        Point(each.row.number, each.model.name if each.model else "", each.row.figures, each.evaluations)
        for each in results(session, campaign_id)
        if each.row.figures is not None
    ]
    lam = partner_weight_of(row.game, row.spec["config"])
    called = language.gettext("campaign %(number)s (%(name)s)", number=row.id, name=row.name)
    return figure(f"campaign-{row.id}", called, row.game, lam, row.iterations, points, language)


def now_of(session: Session, row: Campaign) -> CurrentStep | None:
    """What a campaign is at, or has stopped at; None when it is done."""
    if row.status == states.DONE:
        return None
    newest = results(session, row.id)[-1]
    last = newest.row
    if last.figures is not None and (further := _open_evaluation(row, newest.evaluations)) is not None:
        begun = session.get(CampaignEvaluation, (row.id, last.number, further.label))
        at = _round(session, last, EVALUATE, None if begun is None else begun.round_id)
        return at or CurrentStep(last.number, EVALUATE, None, 0, None)
    spec = lifecycle.spec_of(row.spec)
    if last.figures is not None:  # the next one is begun in a moment
        first = TRAIN if spec.is_start(last.number + 1) and spec.start_data is not None else PLAY
        return CurrentStep(last.number + 1, first, None, 0, None) if last.number < row.iterations else None
    if last.number > 0:
        if last.dataset_id is None:
            return _playing(session, spec, newest) or CurrentStep(last.number, CUT, None, 0, None)
        trained = _job(session, last)
        if trained is not None:
            return trained
    return _round(session, last, EVALUATE, last.evaluation_id) or CurrentStep(last.number, EVALUATE, None, 0, None)


def _playing(session: Session, spec: CampaignSpec, now: IterationResult) -> CurrentStep | None:
    """The first round of an iteration that is not over; None when all of them are."""
    partners = () if spec.is_start(now.row.number) else spec.matches_against
    for number in (now.row.round_id, *(now.with_partners.get(name) for name in partners)):
        found = _round(session, now.row, PLAY, number)
        if found is not None:
            return found
    return None


def _round(session: Session, at: CampaignIteration, step: str, number: int | None) -> CurrentStep | None:
    """How far a round is, of no matches while it waits for its first; None when it is done."""
    if number is None:
        return CurrentStep(at.number, step, None, 0, None)
    row = session.get_one(RoundRow, number)
    if row.status == states.DONE:
        return None
    of = None if row.status == states.WAITING and not row.finished else row.matches
    return CurrentStep(at.number, step, AwaitedJob(ROUND, number), row.finished, of)


def _job(session: Session, at: CampaignIteration) -> CurrentStep | None:
    """How far a training is; None when it is done."""
    if at.job_id is None:
        return CurrentStep(at.number, TRAIN, None, 0, None)
    row = session.get_one(TrainingJob, at.job_id)
    return (
        None
        if row.status == states.DONE
        else CurrentStep(at.number, TRAIN, AwaitedJob(TRAINING, at.job_id), row.step or 0, row.steps)
    )


def figures_of(session: Session, row: Campaign) -> JSON:
    """How far the step is that a campaign is at, as figures by name, for a line to its page."""
    now = now_of(session, row)
    first = sum(each.figures is not None for each in lifecycle.iterations(session, row.id))
    evaluations = first + sum(each.figures is not None for each in lifecycle.evaluations(session, row.id))
    job = now.part and (now.part.kind.name, now.part.number) if now else None
    at = (CAMPAIGN.state_of(session, row), evaluations, *((now.iteration, now.step, job) if now else ()))
    return {
        "at": json.dumps(at),  # changes with each step
        "status": at[0],
        "done": now.done if now else 0,
        "of": now.of if now else None,
        "percent": 100 * now.done // max(1, now.of or 0) if now else 100,
    }


LIST: Listing[Campaign] = Listing(
    name=CAMPAIGN.plural,
    table=Campaign,
    columns=job_columns(
        CAMPAIGN,
        ListColumn("score", Phrase("Latest score"), lambda each: each.headline, none=Phrase("none yet")),
        ListColumn("game", Phrase("Game"), lambda each: game_cell(each.row.game), sort=Campaign.game),
        model_column("base", Phrase("Base"), Campaign.base_id),
        title=Phrase("Campaign"),
        done=Phrase("Iterations done"),
        sort_done=of_other(
            func.count(), (CampaignIteration.campaign_id == Campaign.id) & CampaignIteration.figures.is_not(None)
        ),
    ),
    items=list_items,
)
