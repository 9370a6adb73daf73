"""What depends on a thing that is to be removed, and why it cannot go: only reads.

Jobs name models and datasets in columns or, as those of others, by their names in specs. In doubt, a thing is kept: one
that a live job names anywhere cannot go.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session, defer

from app.cleanup.contents import DATASET, MODEL, subject_of
from app.core.errors import Phrase
from app.core.lists import Reference
from app.finetuning.job import TRAINING
from app.finetuning.listing import learns_from
from app.job_kinds import JOB_KINDS, find_kind
from app.jobs import states
from app.jobs.page import job_references
from app.lineage import descendants
from app.matches.filter import unindexed
from app.models import (
    Alignment,
    BenchmarkJob,
    Campaign,
    CodedMatch,
    Coding,
    Dataset,
    DatasetRow,
    LanguageModel,
    MatchRow,
    RecipeRun,
    RecipeStep,
    RoundRow,
    SeatRow,
    SocietyAgent,
    Study,
    StudyVersion,
    TrainingJob,
    Wave,
)
from app.recipes.faults import RecipeFault
from app.recipes.lifecycle import plan_of
from app.registry import is_shipped
from app.registry.changes import has_open_calls
from app.rounds.job import ROUND, SELFPLAY
from app.society.job import SOCIETY

_PARENTS: Sequence[tuple[type[Any], Any]] = (
    (Campaign, RecipeStep.campaign_id), (Alignment, RecipeStep.alignment_id), (RecipeRun, RecipeStep.run_id),
)  # fmt: skip
_LONG = ("material", "document", "text", "files", "questions", "priors", "log")  # columns that are not searched
_NOT_DONE = [status for status in states.STATUSES if status != states.DONE]
_NAMING_DATASETS = ("dataset", "sft_data", "start_data", "demonstration")  # fields of specs, or their plurals


class Dependent(NamedTuple):
    """Something that depends on a thing, and how. If `keeps`, it prevents the thing's removal."""

    what: Reference
    why: Phrase
    keeps: bool = False


def dependents(session: Session, kind: str, row: Any, *, listed: bool = False) -> list[Dependent]:
    """Everything that depends on a thing, what keeps it first.

    `listed`: it is one of a list, for which the matches of rounds played by models here are not read.
    """
    found = {(*each.what[:2], str(each.why)): each for each in _of_kind(session, kind, row, listed)}
    return sorted(found.values(), key=lambda each: not each.keeps)


def _of_kind(session: Session, kind: str, row: Any, listed: bool) -> Iterator[Dependent]:
    if kind == MODEL:
        yield from _of_model(session, row)
    elif kind == DATASET:
        yield from _of_dataset(session, row, listed)
    else:
        if row.status in states.LIVE:
            yield Dependent(
                _job_reference(session, kind, row.id), Phrase("it is not over; cancel it first"), keeps=True
            )
        yield from _of_parents(session, RecipeStep.kind == kind, RecipeStep.number == row.id)
        if kind == ROUND.name:
            yield from _of_round(session, row, listed)
        elif kind == SOCIETY.name:
            made = select(Dataset).where(Dataset.spec["society"]["society_id"].as_integer() == row.id)
            yield from _datasets(session.scalars(made.order_by(Dataset.id)))
            yield from _of_naming_jobs(session, (), {"society"}, row.id, listed)
        elif kind == TRAINING.name and row.model_id is not None:
            yield Dependent(
                _model_reference(session.get_one(LanguageModel, row.model_id)), Phrase("it was made by this training")
            )


# ---- Models ----------------------------------------------------------------------


def _of_model(session: Session, row: LanguageModel) -> Iterator[Dependent]:
    own = _model_reference(row)
    if is_shipped(row):
        yield Dependent(own, Phrase("it came with Parlor"), keeps=True)
    elif row.kind != "local":
        yield Dependent(own, Phrase("it has no checkpoint here"), keeps=True)
    if row.offered_to_people:
        yield Dependent(own, Phrase("it is offered to people; switch that off first"), keeps=True)
    if has_open_calls(session, row):
        yield Dependent(own, Phrase("a call of it outside of matches is not answered yet"), keeps=True)
    yield from _of_matches_and_waves(session, row)
    yield from _of_jobs(session, row.id, row.name)
    over = select(LanguageModel).where(LanguageModel.adapter_base_id == row.id).order_by(LanguageModel.id)
    for adapter in session.scalars(over):
        keeps = adapter.removed_at is None
        yield Dependent(_model_reference(adapter), Phrase("it is an adapter over this checkpoint"), keeps=keeps)
    made = descendants(session, row.id)
    for heir in made.models:
        yield Dependent(_model_reference(heir.model), Phrase("it was made from this model"))
    for dataset in made.datasets:
        yield Dependent(_dataset(dataset), Phrase("it has rows of this model's matches"))
    scored = session.scalars(select(BenchmarkJob.id).where(BenchmarkJob.model_id == row.id)).all()
    benchmarks = job_references(session, find_kind("benchmark"), scored)
    for number in scored:
        yield Dependent(benchmarks[number], Phrase("it scored this model"))


def _of_matches_and_waves(session: Session, row: LanguageModel) -> Iterator[Dependent]:
    playing = (
        select(MatchRow.id)
        .join(SeatRow, SeatRow.match_id == MatchRow.id)
        .where(SeatRow.language_model_id == row.id, MatchRow.status != "over")
    )
    for match_id in session.scalars(playing.limit(5)):
        yield Dependent(Reference("match", match_id, match_id), Phrase("it plays in this match"), keeps=True)
    versions = (
        select(StudyVersion, Study.name, Wave.status, Wave.frozen_at)
        .join(Study, Study.id == StudyVersion.study_id)
        .outerjoin(Wave, Wave.study_version_id == StudyVersion.id)
        .order_by(StudyVersion.id, Wave.id)
    )
    for version, name, status, frozen_at in session.execute(versions):
        if row.id in version.design.get("models", {}).values():
            open_ = status in ("open", "paused") and frozen_at is None
            why = Phrase("it has an unclosed wave that uses this model") if open_ else Phrase("it plays this model")
            yield Dependent(Reference("study", version.study_id, name), why, keeps=open_)


def _of_jobs(session: Session, number: int, name: str) -> Iterator[Dependent]:
    """The jobs that are not done and name a model: live ones keep it, others could not be resumed."""
    for kind, row in _not_done(session):
        if _names_model(session, kind, row, number, name):
            yield _unfinished(session, kind, row)


def _not_done(session: Session) -> Iterator[tuple[str, Any]]:
    """The jobs that are neither done nor removed, each with its kind, without the long columns."""
    for kind in JOB_KINDS:
        short = [defer(getattr(kind.table, column)) for column in _LONG if hasattr(kind.table, column)]
        which = kind.table.status != states.DONE, kind.table.removed_at.is_(None)
        for row in session.scalars(select(kind.table).where(*which).options(*short)):
            yield kind.name, row


def _names_model(session: Session, kind: str, row: Any, number: int, name: str) -> bool:
    for column in type(row).__table__.columns:
        if any(key.column.table.name == "language_model" for key in column.foreign_keys):
            if getattr(row, column.key) == number:
                return True
        elif column.key not in _LONG and _has_mention_of(
            getattr(row, column.key), {name, f"model:{name}"}, {"model_id"}, number
        ):
            return True
    if kind != SOCIETY.name:
        return False
    agents = select(SocietyAgent.agent).where(SocietyAgent.society_id == row.id, SocietyAgent.model_id == number)
    return session.scalar(agents.limit(1)) is not None


def _has_mention_of(value: Any, names: Collection[str], keys: Collection[str], number: int) -> bool:
    """Whether a JSON value contains one of the names, or the number under one of the keys or their plurals."""
    if isinstance(value, dict):
        return any(
            each in names
            or (each.removesuffix("s") in keys and any(_is_number(one, number) for one in _listed(inside)))
            or _has_mention_of(inside, names, keys, number)
            for each, inside in value.items()
        )
    if isinstance(value, list):
        return any(_has_mention_of(each, names, keys, number) for each in value)
    return isinstance(value, str) and value in names


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_number(value: Any, number: int) -> bool:
    """Whether a value is that number in any form that a spec may have: 5, "5" or "05"."""
    with suppress(ValueError):
        return isinstance(value, int | str) and value is not True and int(value) == number
    return False


# ---- Datasets and rounds -----------------------------------------------------------


def _of_dataset(session: Session, row: Dataset, listed: bool) -> Iterator[Dependent]:
    jobs = select(TrainingJob).where(learns_from([row.id])).options(defer(TrainingJob.log)).order_by(TrainingJob.id)
    for job in session.scalars(jobs):
        if job.status != states.DONE:
            yield _unfinished(session, TRAINING.name, job)
        if job.model_id is not None:
            yield Dependent(
                _model_reference(session.get_one(LanguageModel, job.model_id)), Phrase("it was trained on this")
            )
    yield from _of_parents(session, or_(RecipeStep.dataset_id == row.id, RecipeStep.realignment_id == row.id))
    yield from _of_naming_jobs(session, {row.name, row.reference}, _NAMING_DATASETS, row.id, listed)


def _of_naming_jobs(
    session: Session, names: Collection[str], keys: Collection[str], number: int, listed: bool
) -> Iterator[Dependent]:
    """The jobs that are not done whose specs, or their steps' specs, contain a name, or the number under a key."""
    for kind, job, asked in _unfinished_jobs(session, listed):
        if _has_mention_of(asked, names, keys, number):
            yield _unfinished(session, kind, job)


def _unfinished_jobs(session: Session, listed: bool) -> list[tuple[str, Any, Any]]:
    """The jobs that are not done, each with its kind and its spec; read once for all things that are `listed`."""
    known: list[tuple[str, Any, Any]] | None = session.info.get(_unfinished_jobs) if listed else None
    if known is None:
        known = [(kind, job, _asked_of(job)) for kind, job in _not_done(session)]
        session.info[_unfinished_jobs] = known
    return known


def _asked_of(job: Any) -> Any:
    """The spec of a job; for a recipe's run the specs of all steps, also later ones, with its inputs filled in."""
    if isinstance(job, RecipeRun):
        with suppress(RecipeFault):  # from another version: fails at its next step, and keeps everything it names
            return [step.draft.to_json() for step in plan_of(job).steps]
    return getattr(job, "spec", None)


def _of_round(session: Session, row: RoundRow, listed: bool) -> Iterator[Dependent]:
    own = _job_reference(session, ROUND.name, row.id)
    people = select(MatchRow.id).join(SeatRow).where(MatchRow.round_id == row.id, SeatRow.kind == "person").limit(1)
    if not (listed and row.source == SELFPLAY) and session.scalar(people) is not None:
        yield Dependent(own, Phrase("people wrote in its matches, which is never deleted this way"), keeps=True)
    coded = (
        select(Coding.id, Coding.name)
        .join(CodedMatch, CodedMatch.coding_id == Coding.id)
        .join(MatchRow, MatchRow.id == CodedMatch.match_id)
        .where(*unindexed([MatchRow.round_id == row.id]))  # of the coded matches, which are few
        .distinct()
    )
    for number, name in session.execute(coded):
        yield Dependent(Reference("coding", number, name), Phrase("its matches were given codes"), keeps=True)
    datasets = rows_of_datasets(session, row.id)
    for dataset in session.scalars(select(Dataset).where(Dataset.id.in_(datasets)).order_by(Dataset.id)):
        why = Phrase("%(count)s of its rows are of this round", count=datasets[dataset.id])
        # These matches show whether a dataset's content may leave, and what it was played on.
        yield Dependent(_dataset(dataset), why, keeps=dataset.removed_at is None)
        learned = select(TrainingJob.model_id).where(learns_from([dataset.id]), TrainingJob.model_id.is_not(None))
        for model in session.scalars(select(LanguageModel).where(LanguageModel.id.in_(learned))):
            yield Dependent(_model_reference(model), Phrase("it was trained on rows of this round"))
    yield from _of_naming_jobs(session, (), {"round", "talk_of"}, row.id, listed)
    played_for = select(RecipeStep.campaign_id).where(RecipeStep.kind == ROUND.name, RecipeStep.number == row.id)
    for campaign in filter(None, session.scalars(played_for)):
        yield from _of_naming_jobs(session, (), {"campaign"}, campaign, listed)  # a step will cut a dataset from it
    # Filter by status, which has an index, as few are not done; otherwise all others would be read for each round.
    read_from = (RoundRow.talk_of == row.id, RoundRow.status.in_(_NOT_DONE), RoundRow.removed_at.is_(None))
    for other in session.scalars(select(RoundRow).where(*read_from).order_by(RoundRow.id)):
        yield _unfinished(session, ROUND.name, other)
    if row.matrix_id is not None:
        first = _job_reference(session, ROUND.name, row.matrix_id)
        yield Dependent(first, Phrase("the cross-play that began with it has this round"))


def rows_of_datasets(session: Session, round_id: int) -> dict[int, int]:
    """The number of rows in each dataset that come from a round's matches."""
    rows, matches = (
        session.scalar(select(func.sum(column)).where(which)) or 0
        for column, which in ((Dataset.rows, Dataset.complete), (RoundRow.matches, RoundRow.id == round_id))
    )
    of_round = [MatchRow.round_id == round_id]
    counted = (
        select(DatasetRow.dataset_id, func.count())
        .join(MatchRow, MatchRow.id == DatasetRow.match_id)
        .where(*(unindexed(of_round) if rows < matches else of_round))  # by whichever are fewer
        .group_by(DatasetRow.dataset_id)
    )
    return dict(session.execute(counted).all())


# ---- What they are called ------------------------------------------------------------


def _of_parents(session: Session, *which: Any) -> Iterator[Dependent]:
    """The campaigns, alignments and recipe runs that it is a step of; one that is not over keeps it."""
    for table, column in _PARENTS:
        kind = next(each for each in JOB_KINDS if each.table is table)
        parents = select(table).where(table.id.in_(select(column).where(column.is_not(None), *which)))
        for parent in session.scalars(parents.order_by(table.id)):
            if parent.status == states.DONE:
                yield Dependent(_job_reference(session, kind.name, parent.id), Phrase("it has this as a step"))
            elif parent.removed_at is None:
                yield _unfinished(session, kind.name, parent)


def _unfinished(session: Session, kind: str, row: Any) -> Dependent:
    if row.status in states.LIVE:
        return Dependent(_job_reference(session, kind, row.id), Phrase("it is not over and needs this"), keeps=True)
    return Dependent(_job_reference(session, kind, row.id), Phrase("it could not be resumed without this"))


def _datasets(rows: Iterable[Dataset]) -> Iterator[Dependent]:
    for row in rows:
        yield Dependent(_dataset(row), Phrase("it was cut from this"))


def _job_reference(session: Session, kind: str, number: int) -> Reference:
    return job_references(session, find_kind(kind), [number])[number]


def _model_reference(row: LanguageModel) -> Reference:
    return Reference(MODEL, row.id, row.name)


def _dataset(row: Dataset) -> Reference:
    return Reference(DATASET, row.id, row.reference, subject_of(DATASET, row.id))
