"""The results of a campaign by iteration: its steps, read by their role in an iteration."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.campaigns.job import CAMPAIGN
from app.campaigns.lifecycle import spec_of
from app.campaigns.recipe import evaluation_names
from app.campaigns.spec import CampaignSpec
from app.campaigns.step_names import EVALUATE, ITERATION, KEEP, KEEP_TAUGHT, OF_BASE, PLAY, TEACH
from app.finetuning.job import TRAINING
from app.models import Campaign, Dataset, LanguageModel, RecipeStep, TrainingJob
from app.rounds.job import ROUND


class Evaluation(NamedTuple):
    """A started evaluation: its round, and its figures once that is over."""

    round_id: int
    figures: Mapping[str, Any] | None


@dataclass
class IterationResult:
    """The results of an iteration of a campaign so far. Iteration 0 is the base, which is only evaluated."""

    number: int
    round_id: int | None = None  # with itself, or the teacher's; None where it learns from an existing dataset
    with_partners: dict[str, int] = field(default_factory=dict)  # its rounds with partners, by the partner's name
    dataset: Dataset | None = None
    job_id: int | None = None
    model: LanguageModel | None = None
    evaluation_id: int | None = None
    figures: Mapping[str, Any] | None = None  # of the evaluation, once it is over
    further: dict[str, Evaluation] = field(default_factory=dict)  # its further evaluations, by label

    @property
    def evaluations(self) -> Mapping[str, Mapping[str, Any]]:
        """The figures of its finished further evaluations, by label."""
        return {label: each.figures for label, each in self.further.items() if each.figures is not None}


def iteration_of(values: Mapping[str, Any]) -> int:
    """The number of the iteration of a step with these loop values; 0 for the base."""
    return int(values.get(ITERATION, 0))


def results(session: Session, campaign_id: int) -> list[IterationResult]:
    """The iterations of a campaign that have started; the first one is the base."""
    return results_of(session, [CAMPAIGN.get(session, campaign_id)])[campaign_id]


def results_of(session: Session, rows: Sequence[Campaign]) -> dict[int, list[IterationResult]]:
    """The iterations of each campaign that have started, by campaign number."""
    steps = CAMPAIGN.steps_of_each(session, [row.id for row in rows])
    specs = {row.id: spec_of(row.spec) for row in rows}
    every = [step for found in steps.values() for step in found]
    trained = select(TrainingJob.id, LanguageModel).join(LanguageModel, LanguageModel.id == TrainingJob.model_id)
    trainings = [step.number for step in every if step.kind == TRAINING.name]
    models = dict(session.execute(trained.where(TrainingJob.id.in_(trainings))).all())
    numbers = {*(step.dataset_id for step in every), *(_start_of(spec) for spec in specs.values())} - {None}
    datasets = {each.id: each for each in session.scalars(select(Dataset).where(Dataset.id.in_(numbers)))}
    bases = select(LanguageModel).where(LanguageModel.id.in_([row.base_id for row in rows]))
    base = {each.id: each for each in session.scalars(bases)}
    found = {}
    for row in rows:
        first = IterationResult(0, model=base[row.base_id])
        found[row.id] = _iterations(first, steps[row.id], specs[row.id], datasets, models)
    return found


def _start_of(spec: CampaignSpec) -> int | None:
    """The number of the dataset that a campaign starts with."""
    return None if spec.start_data is None else int(spec.start_data)


def _iterations(
    base: IterationResult,
    steps: Iterable[RecipeStep],
    spec: CampaignSpec,
    datasets: Mapping[int, Dataset],
    models: Mapping[int, LanguageModel],
) -> list[IterationResult]:
    labels = evaluation_names(spec)
    found = {0: base}
    for step in steps:
        number = iteration_of(step.values)
        if number not in found:
            start = datasets.get(_start_of(spec) or 0) if spec.is_start(number) else None
            found[number] = IterationResult(number, dataset=start)
        result, name = found[number], step.name.removesuffix(OF_BASE)
        if name == EVALUATE:
            result.evaluation_id, result.figures = step.number, step.figures
        elif name in labels and step.number is not None:
            result.further[labels[name]] = Evaluation(step.number, step.figures)
        elif name in (PLAY, TEACH):
            result.round_id = step.number
        elif step.kind == ROUND.name and step.number is not None:
            result.with_partners[step.spec["models"][-1]] = step.number
        elif name in (KEEP, KEEP_TAUGHT):
            result.dataset = datasets.get(step.dataset_id or 0)
        elif step.kind == TRAINING.name:
            result.job_id, result.model = step.number, models.get(step.number or 0)
    return [found[number] for number in sorted(found)]
