"""Benchmarks for experimenters: a page of them, the results of one, and models side by side."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.benchmarks.job import BENCHMARK
from app.benchmarks.scores import MeasuredScore, common_tasks, geometric_mean, is_share
from app.core.errors import Phrase
from app.core.lists import NOWHERE, ListColumn, Listing, of_other, start_of_json
from app.games.base import JSON
from app.jobs.listing import JobListItem, job_columns, job_figures, job_items
from app.models import BenchmarkAnswer, BenchmarkJob, BenchmarkResult, GenerationRow, LanguageModel
from app.registry.listing import model_column, model_name
from app.registry.prices import prices_of_model
from app.registry.spending import CallSums


class TokenUsage(NamedTuple):
    """The tokens of a job's chats, and their cost in US dollars, None if prices are unknown."""

    prompt_tokens: int
    completion_tokens: int
    estimated_tokens: int | None  # tokens not counted by the server; None: it counted all
    cost: float | None


@dataclass(frozen=True)
class BenchmarkListItem(JobListItem):
    """A benchmark in a list, with its model and the number of scored tasks."""

    model: LanguageModel


class BenchmarkedModel(NamedTuple):
    """A model with its comparable results by task, and its mean over the common tasks."""

    model: LanguageModel
    results: Mapping[str, BenchmarkResult]
    mean: MeasuredScore | None


class BenchmarkSettings(NamedTuple):
    """What two benchmarks must share to be comparable; None: all items, or the task's own number of examples."""

    item_limit: int | None
    shots: int | None


class BenchmarkComparison(NamedTuple):
    """Models side by side: `tasks` are all that any of them has; means are over `common`, shares that all have.

    Only results under the same settings count: those under which most of the models have results.
    """

    limit: int | None
    shots: int | None
    tasks: Sequence[str]
    common: Sequence[str]
    models: Sequence[BenchmarkedModel]


def benchmark_items(session: Session, rows: Sequence[BenchmarkJob]) -> list[BenchmarkListItem]:
    """Benchmarks as items of a list."""
    wanted = select(LanguageModel).where(LanguageModel.id.in_({row.model_id for row in rows}))
    models = {each.id: each for each in session.scalars(wanted)}
    items = job_items(session, BENCHMARK, rows)
    return [BenchmarkListItem(**vars(item), model=models[item.row.model_id]) for item in items]


def results_of(session: Session, rows: Sequence[BenchmarkJob]) -> dict[int, list[BenchmarkResult]]:
    """The results of each job so far, in the order of its tasks, by the job's number."""
    found: dict[int, dict[str, BenchmarkResult]] = {row.id: {} for row in rows}
    for each in session.scalars(select(BenchmarkResult).where(BenchmarkResult.job_id.in_(found))):
        found[each.job_id][each.task] = each
    return {row.id: [found[row.id][task] for task in row.tasks if task in found[row.id]] for row in rows}


def figures_of(session: Session, rows: Sequence[BenchmarkJob]) -> dict[int, JSON]:
    """The progress of each job, as figures by name, by job number."""
    return {each.row.id: {**job_figures(each), "step": each.row.step} for each in job_items(session, BENCHMARK, rows)}


def usage_of(session: Session, rows: Sequence[BenchmarkJob]) -> dict[int, TokenUsage]:
    """The usage of each job's chats, by job number; a job without chats has none."""
    counted = (
        select(BenchmarkAnswer.job_id, *CallSums.columns())
        .join(GenerationRow, GenerationRow.request_id == BenchmarkAnswer.request_id)
        .where(BenchmarkAnswer.job_id.in_([row.id for row in rows]))
        .group_by(BenchmarkAnswer.job_id)
    )
    models = {item.row.id: item.model for item in benchmark_items(session, rows)}
    found = {}
    for number, *row in session.execute(counted):
        sums = CallSums.of(row)
        cost = sums.cost(prices_of_model(models[number]))
        found[number] = TokenUsage(sums.prompt_tokens, sums.completion_tokens, sums.estimated_tokens or None, cost)
    return found


def mean_of(results: Iterable[BenchmarkResult]) -> MeasuredScore | None:
    """The geometric mean of tasks that are scored by shares; None without any."""
    scores = [score_of(each) for each in results if is_share(each.metric, each.value)]
    return geometric_mean(scores) if scores else None


def score_of(result: BenchmarkResult) -> MeasuredScore:
    """The score of a task by its headline metric."""
    return MeasuredScore(result.value, result.stderr)


def compare(session: Session, models: Sequence[LanguageModel]) -> BenchmarkComparison | None:
    """The models with results, in this order, side by side; None if there are none.

    The settings are those under which most of the models have results, the latest if several are tied.
    """
    settings = _settings_of_most(session, models)
    if settings is None:
        return None
    by_model = comparable_results(session, models, settings)
    shown = [each for each in models if each.id in by_model]
    scores = [
        {task: score_of(each) for task, each in by_model[model.id].items() if is_share(each.metric, each.value)}
        for model in shown
    ]
    common = sorted(common_tasks(scores))
    return BenchmarkComparison(
        settings.item_limit,
        settings.shots,
        sorted({task for each in by_model.values() for task in each}),
        common,
        [
            BenchmarkedModel(
                model,
                by_model[model.id],
                geometric_mean([own[task] for task in common]) if common else None,
            )
            for model, own in zip(shown, scores, strict=True)
        ],
    )


def comparable_results(
    session: Session, models: Sequence[LanguageModel], settings: BenchmarkSettings
) -> dict[int, dict[str, BenchmarkResult]]:
    """The latest results of models under these settings, by model number and task.

    Results from a release of a task or its scorer other than the latest of that task are left out.
    """
    releases: dict[str, tuple[str, str]] = {}
    by_model: dict[int, dict[str, BenchmarkResult]] = {}
    for job, result in _newest_first(session, models):
        release = (result.source, result.version)
        if settings_of(job) == settings and releases.setdefault(result.task, release) == release:
            by_model.setdefault(job.model_id, {}).setdefault(result.task, result)
    return by_model


def settings_of(job: BenchmarkJob) -> BenchmarkSettings:
    """The settings of a job."""
    return BenchmarkSettings(job.item_limit, job.shots)


def _settings_of_most(session: Session, models: Sequence[LanguageModel]) -> BenchmarkSettings | None:
    scored: dict[BenchmarkSettings, set[int]] = {}
    for job, _ in _newest_first(session, models):
        scored.setdefault(settings_of(job), set()).add(job.model_id)
    return max(scored, key=lambda each: len(scored[each]), default=None)  # the first of equals is the latest


def _newest_first(session: Session, models: Sequence[LanguageModel]) -> list[tuple[BenchmarkJob, BenchmarkResult]]:
    """All results of models with their jobs, newest first."""
    found = session.execute(
        select(BenchmarkJob, BenchmarkResult)
        .join(BenchmarkResult, BenchmarkResult.job_id == BenchmarkJob.id)
        .where(BenchmarkJob.model_id.in_([each.id for each in models]))
        .order_by(BenchmarkJob.id.desc())
    )
    return [(job, result) for job, result in found]


LIST: Listing[BenchmarkJob] = Listing(
    name=BENCHMARK.plural,
    table=BenchmarkJob,
    columns=job_columns(
        BENCHMARK,
        model_column("model", Phrase("Model"), BenchmarkJob.model_id, seen=NOWHERE),
        ListColumn("tasks", Phrase("Tasks"), lambda each: each.row.tasks, sort=start_of_json(BenchmarkJob.tasks)),
        title=Phrase("Benchmark"),
        done=Phrase("Tasks done"),
        name=lambda each: each.model.name,
        sort=model_name(BenchmarkJob.model_id),
        sort_done=of_other(func.count(BenchmarkResult.task), BenchmarkResult.job_id == BenchmarkJob.id),
    ),
    items=benchmark_items,
)
