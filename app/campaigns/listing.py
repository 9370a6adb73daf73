"""Campaigns for experimenters: a page of them, the current step, the results of the models, and the chart."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.analysis.campaign_charts import Point, figure
from app.analysis.chart import Chart
from app.analysis.language import ENGLISH, Language
from app.campaigns import lifecycle
from app.campaigns.iterations import IterationResult, iteration_of, results, results_of
from app.campaigns.job import CAMPAIGN
from app.campaigns.recipe import recipe_of
from app.campaigns.spec import EvaluationSpec
from app.campaigns.step_names import EVALUATE, OF_BASE
from app.core.errors import Phrase, Verbatim
from app.core.lists import ListColumn, Listing, Measured, Reference, of_other
from app.finetuning.job import TRAINING
from app.games import GAMES, metrics_of
from app.games.base import JSON
from app.jobs import states
from app.jobs.chained import AwaitedJob
from app.jobs.listing import job_columns
from app.models import Campaign, LanguageModel, RecipeStep
from app.recipes.outline import Outline
from app.recipes.stepped import job_of
from app.registry.listing import game_cell, model_column
from app.rounds.job import ROUND

PLAY, CUT, TRAIN = "play", "cut", "train"  # what a campaign does, beside EVALUATE
_CALLED = {"round": PLAY, "keep": CUT, "training": TRAIN, "evaluate": EVALUATE}  # by a step's `do`


class CurrentStep(NamedTuple):
    """The current step of a campaign, its iteration, and its progress: `done` matches or training steps `of`."""

    iteration: int
    step: str
    part: AwaitedJob | None  # the round or job; None before it exists and while a dataset is cut
    done: int
    of: int | None


class CampaignListItem(NamedTuple):
    """A campaign in a list."""

    row: Campaign
    state: str
    base: LanguageModel
    evaluated: int  # iterations finished with all their evaluations; the base does not count
    latest: Mapping[str, Any] | None  # figures of the last evaluated model

    @property
    def done(self) -> int:
        return self.evaluated

    @property
    def of(self) -> int:
        return self.row.iterations

    @property
    def headline(self) -> Measured | None:
        """The headline figure of its latest model."""
        metric = metrics_of(self.row.game).headline
        found = (self.latest or {}).get(metric.name)
        return None if found is None else Measured(metric.name, metric.heading, Figure(**found))


def list_items(session: Session, rows: Sequence[Campaign]) -> list[CampaignListItem]:
    """Campaigns as items of a list."""
    found, states_by_number = results_of(session, rows), CAMPAIGN.states_of(session, rows)
    bases = select(LanguageModel).where(LanguageModel.id.in_([row.base_id for row in rows]))
    base = {each.id: each for each in session.scalars(bases)}
    items = []
    for row in rows:
        figures = [each.figures for each in found[row.id] if each.figures is not None]
        done, latest = evaluated(row, found[row.id]), figures[-1] if figures else None
        items.append(CampaignListItem(row, states_by_number[row.id], base[row.base_id], done, latest))
    return items


def evaluated(row: Campaign, found: Sequence[IterationResult]) -> int:
    """How many iterations of a campaign are done: all begun but possibly the last. The base does not count."""
    done = sum(each.number > 0 and each.figures is not None for each in found)
    if not done or found[-1].figures is None:
        return done
    return done - (_open_evaluation(row, found[-1].evaluations) is not None)


def _open_evaluation(row: Campaign, over: Collection[str]) -> EvaluationSpec | None:
    """The first further evaluation of an iteration whose label is not in `over`."""
    return next((each for each in lifecycle.spec_of(row.spec).further if each.label not in over), None)


def campaign_step_of(session: Session, *, round_id: int | None = None, job_id: int | None = None) -> Reference | None:
    """The campaign and iteration that a round or a job is a step of; None outside of campaigns."""
    kind, number = (TRAINING, job_id) if round_id is None else (ROUND, round_id)
    found = session.execute(
        select(Campaign.id, Campaign.name, RecipeStep.values)
        .join(RecipeStep, RecipeStep.campaign_id == Campaign.id)
        .where(RecipeStep.kind == kind.name, RecipeStep.number == number)
        .order_by(Campaign.id, RecipeStep.place)
    ).first()
    if found is None:
        return None
    campaign_id, campaign, values = found
    called, iteration = Verbatim(campaign), iteration_of(values)
    base = Phrase("Campaign %(name)s, its base", name=called)
    name = Phrase("Campaign %(name)s, iteration %(number)s", name=called, number=iteration)
    return Reference(CAMPAIGN.name, campaign_id, name if iteration else base)


# ---- One campaign ----------------------------------------------------------------


def figure_of(session: Session, campaign_id: int, language: Language = ENGLISH) -> Chart | None:
    """The figure of a campaign so far; None before its base was evaluated."""
    row = CAMPAIGN.get(session, campaign_id)
    points = [
        Point(each.number, each.model.name if each.model else "", each.figures, each.evaluations)
        for each in results(session, campaign_id)
        if each.figures is not None
    ]
    called = language.gettext("campaign %(number)s (%(name)s)", number=row.id, name=row.name)
    return figure(f"campaign-{row.id}", called, row.game, row.iterations, points, language)


def now_of(session: Session, row: Campaign) -> CurrentStep | None:
    """The step that a campaign is at or stopped at; None when it is done."""
    if row.status == states.DONE:
        return None
    begun = CAMPAIGN.steps_of(session, row.id)
    if begun and begun[-1].ended_at is None and (at := _under_way(session, begun[-1])) is not None:
        return at
    recipe = recipe_of(lifecycle.spec_of(row.spec), row.name, None)
    outline = Outline(recipe, recipe.inputs)
    ended = outline.by_key.get(begun[-1].key, begun[-1]).place if begun else -1
    following = outline.turns[ended + 1 :]
    if not following:
        return None
    step = recipe.steps[following[0].index]  # about to begin
    return CurrentStep(iteration_of(following[0].values), _CALLED[step.do], None, 0, None)


def _under_way(session: Session, step: RecipeStep) -> CurrentStep | None:
    """The progress of an unfinished step; None if all that remains is to go on to the next."""
    iteration, job = iteration_of(step.values), job_of(step)
    called = EVALUATE if step.name.startswith(EVALUATE) else TRAIN if step.kind == TRAINING.name else PLAY
    if job is None:
        return None
    row = job.row(session)
    if row.status == states.DONE:
        return CurrentStep(iteration, EVALUATE, None, 0, None) if called == EVALUATE else None
    if job.kind is TRAINING:
        return CurrentStep(iteration, TRAIN, job, row.step or 0, row.steps)
    of = None if row.status == states.WAITING and not row.finished else row.matches  # while waiting for its first match
    return CurrentStep(iteration, called, job, row.finished, of)


def figures_of(session: Session, row: Campaign) -> JSON:
    """The progress of a campaign's current step, as figures by name, for live updates of its page."""
    now = now_of(session, row)
    evaluations = sum(step.figures is not None for step in CAMPAIGN.steps_of(session, row.id))
    job = now.part and (now.part.kind.name, now.part.number) if now else None
    at = (CAMPAIGN.state_of(session, row), evaluations, *((now.iteration, now.step, job) if now else ()))
    return {
        "at": json.dumps(at),  # changes with each step
        "status": at[0],
        "done": now.done if now else 0,
        "of": now.of if now else None,
        "percent": 100 * now.done // max(1, now.of or 0) if now else 100,
    }


# The headline figure of the latest evaluation, as CampaignListItem.headline has it.
_LATEST_SCORE = (
    select(
        case(
            {game: RecipeStep.figures[metrics_of(game).headline.name]["value"].as_float() for game in GAMES},
            value=Campaign.game,
        )
    )
    .where(
        RecipeStep.campaign_id == Campaign.id,
        RecipeStep.name.in_((EVALUATE, EVALUATE + OF_BASE)),
        RecipeStep.figures.is_not(None),
    )
    .order_by(RecipeStep.place.desc())
    .limit(1)
    .correlate(Campaign)
    .scalar_subquery()
)

LIST: Listing[Campaign] = Listing(
    name=CAMPAIGN.plural,
    table=Campaign,
    columns=job_columns(
        CAMPAIGN,
        ListColumn(
            "score", Phrase("Latest score"), lambda each: each.headline, sort=_LATEST_SCORE, none=Phrase("none yet")
        ),
        ListColumn("game", Phrase("Game"), lambda each: game_cell(each.row.game), sort=Campaign.game),
        model_column("base", Phrase("Base"), Campaign.base_id),
        title=Phrase("Campaign"),
        done=Phrase("Iterations done"),
        sort_done=of_other(
            func.count(),
            (RecipeStep.campaign_id == Campaign.id) & (RecipeStep.name == EVALUATE) & RecipeStep.figures.is_not(None),
        ),
    ),
    items=list_items,
)
