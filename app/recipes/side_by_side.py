"""The models of a recipe run side by side: those that it trained, in order, against the first one's base."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.analysis.side_by_side import SideBySideChoice
from app.core.errors import Invalid, Phrase
from app.finetuning.job import TRAINING
from app.models import LanguageModel, RecipeStep, TrainingJob
from app.recipes.job import RECIPE
from app.recipes.sweep import SEED
from app.recipes.sweep_results import sweep_of
from app.rounds.job import ROUND


def choice_of_run(session: Session, number: int, **further: Any) -> SideBySideChoice:
    """The models that a run's trainings have made so far, in the matches of its rounds. Training k is iteration k,
    unless the trainings differ in more than the iteration of one loop.

    Raises NotFound if the run does not exist, and Invalid for one without a trained model.
    """
    row = RECIPE.get(session, number)
    of_run = RecipeStep.run_id == number
    trained = session.execute(
        select(TrainingJob, RecipeStep.values)
        .join(RecipeStep, (RecipeStep.number == TrainingJob.id) & (RecipeStep.kind == TRAINING.name))
        .where(of_run, TrainingJob.model_id.is_not(None), TrainingJob.base_id.is_not(None))
        .order_by(RecipeStep.place)
    ).all()
    jobs = [job for job, _ in trained]
    if not jobs:
        raise Invalid("recipe", expected=Phrase("a run that has trained a model"), got=Phrase("none yet"))
    numbers = [jobs[0].base_id, *(each.model_id for each in jobs)]
    rows = session.execute(select(LanguageModel.id, LanguageModel.name).where(LanguageModel.id.in_(numbers)))
    names = {row.id: row.name for row in rows}
    models = tuple(dict.fromkeys(names[each] for each in numbers if each is not None))
    looped = {name for _, values in trained for name in values}
    one_loop = not sweep_of(row).variables and len(looped) <= 1 and SEED not in looped
    rounds = select(RecipeStep.number).where(of_run, RecipeStep.kind == ROUND.name, RecipeStep.number.is_not(None))
    return SideBySideChoice(
        models=models,
        base=models[0],
        rounds=tuple(each for each in session.scalars(rounds.order_by(RecipeStep.place)) if each is not None),
        iterations={name: place for place, name in enumerate(models)} if one_loop else {},
        **further,
    )
