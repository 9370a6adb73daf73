"""A language model's ancestors and descendants: model ← job ← dataset ← rounds ← models. Only reads.

The job that made a model names its base and its dataset, and every row of a dataset names the match it was built from,
and so the round and the models that played it. A lineage begins with a model that has no job.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session, defer

from app.campaigns.iterations import iteration_of
from app.core.config import ROOT
from app.finetuning.config import SFT_DATA
from app.finetuning.job import TRAINING
from app.finetuning.listing import datasets_of, learns_from
from app.models import (
    Campaign,
    Dataset,
    DatasetRow,
    LanguageModel,
    MatchRow,
    RecipeStep,
    Removal,
    RoundRow,
    SeatRow,
    TrainingJob,
)
from app.registry import BASELINE, MODELS, get_model_by_number
from app.rounds.job import ROUND

TRAINED, SHIPPED, ADDED = "trained", "shipped", "added"  # by a job; shipped with Parlor; added by hand


class DatasetSource(NamedTuple):
    """A round that a dataset was built from, or, with None, all of its matches outside of rounds."""

    round: RoundRow | None
    models: Sequence[LanguageModel]  # who played, without duplicates; empty for an imported round
    people: bool  # whether people played as well
    rows: int  # the dataset's rows that come from it


class CampaignIterationRef(NamedTuple):
    """A campaign's iteration that a model belongs to; 0 is that of the model that the campaign started with."""

    campaign_id: int
    name: str
    iteration: int


@dataclass(frozen=True, slots=True)
class ModelOrigin:
    """How a model was made. Only one that is `trained` has a job and a dataset, with the dataset's sources.

    `sft_dataset` is the one whose rows its job mixed in, if any.
    """

    model: LanguageModel
    origin: str
    job: TrainingJob | None = None
    base: LanguageModel | None = None  # None: trained from scratch
    dataset: Dataset | None = None
    sources: Sequence[DatasetSource] = ()
    sft_dataset: Dataset | None = None
    sft_sources: Sequence[DatasetSource] = ()
    places: Sequence[CampaignIterationRef] = ()

    @property
    def parents(self) -> list[LanguageModel]:
        """The models that it was made from, without duplicates: its base, and all that played what it learned from."""
        found = [self.base] if self.base else []
        found += [model for source in (*self.sources, *self.sft_sources) for model in source.models]
        return list({model.id: model for model in found}.values())


class Descendant(NamedTuple):
    """A model made from another one, and the minimum number of trainings between them."""

    model: LanguageModel
    steps: int


@dataclass(frozen=True, slots=True)
class Descendants:
    """What was made from a model: datasets of its matches, jobs on these or from its weights, and those jobs'
    models.
    """

    datasets: Sequence[Dataset]
    jobs: Sequence[TrainingJob]
    models: Sequence[Descendant]  # and models made from those, and so on


def ancestors(session: Session, model_id: int) -> list[ModelOrigin]:
    """How a model and each of its ancestors was made: without duplicates, the latest first. Raises NotFound."""
    found: dict[int, ModelOrigin] = {}
    wanted = {get_model_by_number(session, model_id).id}
    while wanted:
        generation = list(_origins_of_models(session, wanted))
        found |= {each.model.id: each for each in generation}
        wanted = {parent.id for each in generation for parent in each.parents} - set(found)
    # A model's ancestors were registered before it.
    return sorted(found.values(), key=lambda each: (each.model.id != model_id, -each.model.id))


def descendants(session: Session, model_id: int) -> Descendants:
    """What was made from a model; the latest first, but models by distance, the nearest first. Raises NotFound."""
    known = {get_model_by_number(session, model_id).id}
    datasets, jobs = _learned_from(session, known)
    heirs: list[Descendant] = []
    steps, further = 1, jobs
    while made := {job.model_id for job in further if job.model_id is not None} - known:
        models = session.scalars(select(LanguageModel).where(LanguageModel.id.in_(made)).order_by(LanguageModel.id))
        heirs += [Descendant(model, steps) for model in models]
        known |= made
        steps, (_, further) = steps + 1, _learned_from(session, made)
    return Descendants(datasets, jobs, heirs)


def models_of(session: Session, dataset_ids: Collection[int] | None = None) -> Mapping[int, Sequence[Dataset]]:
    """The models whose weights learned from these datasets, or from any that is unusable, by number, each with those
    datasets: models of jobs on them, models trained further from those, and clones.
    """
    which = Dataset.unusable_at.is_not(None) if dataset_ids is None else Dataset.id.in_(dataset_ids)
    datasets = {row.id: row for row in session.scalars(select(Dataset).where(which))}
    found: dict[int, set[int]] = defaultdict(set)
    made = select(TrainingJob).where(TrainingJob.model_id.is_not(None), learns_from(datasets))
    for job in session.scalars(made.options(defer(TrainingJob.log))):
        found[job.model_id or 0] |= set(datasets_of(job)) & set(datasets)
    wanted = set(found)
    while wanted:
        trained = select(TrainingJob.base_id, TrainingJob.model_id).where(TrainingJob.base_id.in_(wanted))
        cloned = select(LanguageModel.cloned_from_id, LanguageModel.id).where(LanguageModel.cloned_from_id.in_(wanted))
        wanted = set()
        for parent, child in (*session.execute(trained), *session.execute(cloned)):
            if child is not None and parent is not None and not found[parent] <= found[child]:
                found[child] |= found[parent]
                wanted.add(child)
    return {model: [datasets[number] for number in sorted(numbers)] for model, numbers in found.items()}


def origin_of(model: LanguageModel, job: TrainingJob | None) -> str:
    """Whether a model was trained by a job, came with Parlor, or was added by hand."""
    if job is not None:
        return TRAINED
    if model.kind == "local":
        came = (ROOT / str(model.options.get("path", ""))).is_relative_to(MODELS)
    else:
        came = (model.kind, model.name) == ("scripted", BASELINE)
    return SHIPPED if came else ADDED


# ---- Upwards ---------------------------------------------------------------------


def _origins_of_models(session: Session, ids: Collection[int]) -> Iterator[ModelOrigin]:
    """How each of these models was made."""
    made = select(TrainingJob).where(TrainingJob.model_id.in_(ids))
    jobs = {job.model_id: job for job in session.scalars(made.options(defer(TrainingJob.log)))}
    learned = {number for job in jobs.values() for number in datasets_of(job)}
    datasets = {row.id: row for row in session.scalars(select(Dataset).where(Dataset.id.in_(learned)))}
    sources, places = _sources(session, learned), _campaign_iterations(session, ids)
    for model in session.scalars(select(LanguageModel).where(LanguageModel.id.in_(ids))):
        job = jobs.get(model.id)
        origin, known = origin_of(model, job), places.get(model.id, ())
        if job is None:
            yield ModelOrigin(model, origin, places=known)
            continue
        base = None if job.base_id is None else session.get_one(LanguageModel, job.base_id)
        learnt, mixed_in = job.dataset_id, job.config.get(SFT_DATA, 0)
        yield ModelOrigin(
            model, origin, job, base, datasets[learnt], sources[learnt],
            datasets.get(mixed_in), sources.get(mixed_in, ()), known,
        )  # fmt: skip


def _sources(session: Session, ids: Collection[int]) -> Mapping[int, Sequence[DatasetSource]]:
    """The sources of each of these datasets, in order; matches outside rounds come last."""
    counted = (
        select(DatasetRow.dataset_id, MatchRow.round_id, func.count())
        .join(MatchRow, MatchRow.id == DatasetRow.match_id)
        .where(DatasetRow.dataset_id.in_(ids))
        .group_by(DatasetRow.dataset_id, MatchRow.round_id)
    )
    rows = {(dataset, number): count for dataset, number, count in session.execute(counted)}
    for dataset, spec in session.execute(select(Dataset.id, Dataset.spec).where(Dataset.id.in_(ids))):
        rows |= {(dataset, number): 0 for number in spec["rounds"] if (dataset, number) not in rows}
    for removal in _removed_rounds(session):
        found_rows = {int(dataset): count for dataset, count in removal.dataset_rows.items()}
        rows |= {(dataset, removal.number): found_rows[dataset] for dataset in {*ids} & {*found_rows}}
    numbers = {number for _, number in rows if number is not None}
    rounds = {row.id: row for row in session.scalars(select(RoundRow).where(RoundRow.id.in_(numbers)))}
    found: dict[int, list[DatasetSource]] = {dataset: [] for dataset in ids}
    for (dataset, number), count in sorted(rows.items(), key=lambda each: (each[0][1] is None, each[0][1] or 0)):
        if number is None:
            models, people = _outside_rounds(session, dataset)
            found[dataset].append(DatasetSource(None, models, people, count))
        elif number in rounds:
            played = dict.fromkeys((rounds[number].model_0_id, rounds[number].model_1_id))
            models = [session.get_one(LanguageModel, each) for each in played if each is not None]
            found[dataset].append(DatasetSource(rounds[number], models, False, count))
    return found


def _removed_rounds(session: Session) -> Sequence[Removal]:
    """The removals of rounds, which store how many rows of each dataset came from their matches."""
    return session.scalars(select(Removal).where(Removal.kind == ROUND.name, Removal.in_force.is_(True))).all()


def _outside_rounds(session: Session, dataset_id: int) -> tuple[list[LanguageModel], bool]:
    """Who played a dataset's matches outside of rounds: models, and whether people did."""
    sat = (
        select(SeatRow.kind, SeatRow.language_model_id)
        .join(DatasetRow, DatasetRow.match_id == SeatRow.match_id)
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .where(DatasetRow.dataset_id == dataset_id, MatchRow.round_id.is_(None))
        .distinct()
    )
    seats = session.execute(sat).all()
    ids = sorted({number for _, number in seats if number is not None})
    return [session.get_one(LanguageModel, number) for number in ids], any(kind == "person" for kind, _ in seats)


def _campaign_iterations(session: Session, ids: Collection[int]) -> Mapping[int, Sequence[CampaignIterationRef]]:
    """The campaign iterations that each of these models belongs to."""
    made = (
        select(TrainingJob.model_id, Campaign.id, Campaign.name, RecipeStep.values)
        .join(RecipeStep, (RecipeStep.kind == TRAINING.name) & (RecipeStep.number == TrainingJob.id))
        .join(Campaign, Campaign.id == RecipeStep.campaign_id)
        .where(TrainingJob.model_id.in_(ids))
    )
    begun = select(Campaign.base_id, Campaign.id, Campaign.name).where(Campaign.base_id.in_(ids))
    found: dict[int, list[CampaignIterationRef]] = defaultdict(list)
    for base_id, campaign_id, name in session.execute(begun):
        found[base_id].append(CampaignIterationRef(campaign_id, name, 0))
    for model_id, campaign_id, name, values in session.execute(made):
        if model_id is not None:
            found[model_id].append(CampaignIterationRef(campaign_id, name, iteration_of(values)))
    return {model_id: sorted(places, key=itemgetter(0, 2)) for model_id, places in found.items()}


# ---- Downwards -------------------------------------------------------------------


def _learned_from(session: Session, ids: Collection[int]) -> tuple[list[Dataset], list[TrainingJob]]:
    """Datasets with rows from these models' matches, and jobs on those or from these weights, the latest first."""
    numbers = {*_built_from_rounds(session, ids), *_built_from_others(session, ids)}
    for removal in _removed_rounds(session):
        played = session.get_one(RoundRow, removal.number)
        if {played.model_0_id, played.model_1_id} & {*ids}:
            numbers |= {*map(int, removal.dataset_rows)}
    datasets = select(Dataset).where(Dataset.id.in_(numbers), Dataset.complete).order_by(Dataset.id.desc())
    which = or_(TrainingJob.base_id.in_(ids), learns_from(numbers))
    jobs = select(TrainingJob).where(which).order_by(TrainingJob.id.desc()).options(defer(TrainingJob.log))
    return list(session.scalars(datasets)), list(session.scalars(jobs))


# These queries go from dataset rows to their matches: by the indexes of models and rounds, SQLite would read all of
# their matches.


def _built_from_rounds(session: Session, ids: Collection[int]) -> Iterable[int]:
    return session.scalars(
        select(DatasetRow.dataset_id)
        .join(MatchRow, MatchRow.id == DatasetRow.match_id)
        .join(RoundRow, RoundRow.id == MatchRow.round_id)
        .where(or_(*(func.coalesce(each, 0).in_(ids) for each in (RoundRow.model_0_id, RoundRow.model_1_id))))
        .distinct()
    )


def _built_from_others(session: Session, ids: Collection[int]) -> Iterable[int]:
    return session.scalars(
        select(DatasetRow.dataset_id)
        .join(MatchRow, MatchRow.id == DatasetRow.match_id)
        .join(SeatRow, SeatRow.match_id == MatchRow.id)
        .where(func.coalesce(MatchRow.round_id, 0) == 0, func.coalesce(SeatRow.language_model_id, 0).in_(ids))
        .distinct()
    )
