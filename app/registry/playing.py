"""Which models are playing now, or will as soon as a worker takes the job."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.jobs import states
from app.models import (
    Alignment,
    Assessment,
    BenchmarkJob,
    Campaign,
    LanguageModel,
    MatchRow,
    ModelRequest,
    RecipeRun,
    RecipeStep,
    RoundRow,
    SeatRow,
    Society,
    SocietyAgent,
    TrainingJob,
)
from app.registry.changes import members_of_alignment, players_of_campaign

_MATCH_OVER = "over"
_TRAINING = "training"  # the kind of recipe steps that make models
_NAMED: tuple[tuple[type[Alignment] | type[Campaign], Callable[[Mapping[str, Any]], set[str]]], ...] = (
    (Alignment, members_of_alignment),
    (Campaign, players_of_campaign),
)


def playing(session: Session) -> set[int]:
    """The numbers of the models with which a round, a society, an assessment, a benchmark, a match of people or a
    question is under way, and of those with which an active campaign, alignment or recipe will play next.
    """
    of_recipes = (
        select(TrainingJob.model_id)
        .join(RecipeStep, (RecipeStep.kind == _TRAINING) & (RecipeStep.number == TrainingJob.id))
        .join(RecipeRun, RecipeRun.id == RecipeStep.run_id)
    )
    seats = select(SeatRow.language_model_id).join(MatchRow, MatchRow.id == SeatRow.match_id)
    wanted = [
        select(RoundRow.model_0_id).where(RoundRow.status.in_(states.LIVE)),
        select(RoundRow.model_1_id).where(RoundRow.status.in_(states.LIVE)),
        select(Assessment.model_id).where(Assessment.status.in_(states.LIVE)),
        select(Assessment.base_id).where(Assessment.status.in_(states.LIVE)),
        select(BenchmarkJob.model_id).where(BenchmarkJob.status.in_(states.LIVE)),
        select(ModelRequest.language_model_id).where(ModelRequest.status.in_(states.OPEN)),
        seats.where(MatchRow.status != _MATCH_OVER, MatchRow.round_id.is_(None)).distinct(),
        select(SocietyAgent.model_id).join(Society).where(Society.status.in_(states.LIVE)).distinct(),
        of_recipes.where(RecipeRun.status.in_(states.LIVE)),
    ]
    found = {number for each in wanted for number in session.scalars(each)} | _newest_of_campaigns(session)
    raters = (
        select(Society.observers).where(Society.status.in_(states.LIVE)),
        select(Assessment.raters).where(Assessment.status.in_(states.LIVE)),
    )
    found.update(each["model_id"] for asked in raters for models in session.scalars(asked) for each in models)
    names = {
        name
        for table, named in _NAMED
        for spec in session.scalars(select(table.spec).where(table.status.in_(states.LIVE)))
        for name in named(spec)
    }
    recipes = select(RecipeRun.models).where(RecipeRun.status.in_(states.LIVE))
    names.update(name for models in session.scalars(recipes) for name in models)
    found.update(session.scalars(select(LanguageModel.id).where(LanguageModel.name.in_(names))))
    return {number for number in found if number is not None}


def _newest_of_campaigns(session: Session) -> set[int]:
    """The numbers of the latest models of campaigns under way, or of their bases."""
    made = (
        select(Campaign.id, TrainingJob.model_id)
        .join(RecipeStep, RecipeStep.campaign_id == Campaign.id)
        .join(TrainingJob, (RecipeStep.kind == _TRAINING) & (RecipeStep.number == TrainingJob.id))
        .where(Campaign.status.in_(states.LIVE), TrainingJob.model_id.is_not(None))
        .order_by(RecipeStep.place)
    )
    began = select(Campaign.id, Campaign.base_id).where(Campaign.status.in_(states.LIVE))
    newest = dict(session.execute(began).all()) | dict(session.execute(made).all())
    return {number for number in newest.values() if number is not None}
