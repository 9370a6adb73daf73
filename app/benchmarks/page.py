"""The page of a benchmark: its settings, and the score of each task."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.benchmarks.job import BENCHMARK
from app.benchmarks.listing import TokenUsage, figures_of, mean_of, results_of, usage_of
from app.benchmarks.scores import is_share
from app.core.errors import Phrase, Verbatim
from app.core.lists import Code, Dollars, ListColumn, Scored
from app.jobs.page import ASKED, JobPage, JobTable, Section, fact, json_fact
from app.models import BenchmarkJob, BenchmarkResult
from app.registry.listing import model_cell


def score_cell(result: BenchmarkResult) -> Scored:
    """The score of a task by its headline metric."""
    return Scored(result.value, result.stderr, is_share(result.metric, result.value))


def _others(result: BenchmarkResult) -> list[Phrase]:
    """The scores by the other metrics."""
    return [
        Phrase("%(figure)s: %(value)s", figure=Verbatim(name), value=each["value"])
        for name, each in result.scores.items()
        if name != result.metric and each["value"] is not None
    ]


def _geometric_mean(results: Sequence[BenchmarkResult]) -> Scored | None:
    mean = mean_of(results)
    return None if mean is None else Scored(mean.value, mean.stderr, is_share=True)


def _of_results(read: Callable[[Sequence[BenchmarkResult]], Any]) -> Callable[[Session, Sequence[Any]], Sequence[Any]]:
    """A function that applies `read` to the results of each of many jobs."""

    def cells(session: Session, items: Sequence[Any]) -> Sequence[Any]:
        found = results_of(session, [each.row for each in items])
        return [read(found[each.row.id]) for each in items]

    return cells


def _used(name: str, title: str, cell: Callable[[Any], Any] = int) -> ListColumn:
    """A column for the usage of a job's chats."""

    def cells(session: Session, items: Sequence[Any]) -> Sequence[Any]:
        used = usage_of(session, [each.row for each in items])
        found = [getattr(used.get(each.row.id, TokenUsage(0, 0, None, None)), name) for each in items]
        return [None if value is None else cell(value) for value in found]

    return fact(name, title, values=cells)


RESULTS = JobTable(
    "results",
    "Results by task",
    [
        fact("task", "Task", lambda each: Code(each.task)),
        fact("metric", "Metric", notes=_others),
        fact("score", "Score", score_cell, numeric=True),
        json_fact("value"),
        json_fact("stderr"),
        fact("n", "Items", numeric=True),
        fact("seconds", "Time (s)", digits="#,##0.0", numeric=True),
        fact(
            "source", "Scored by", notes=lambda each: [Phrase("version %(version)s of the task", version=each.version)]
        ),
        json_fact("version"),
        json_fact("scores"),
    ],
    lines=_of_results(lambda results: results),
    none=Phrase("None of its tasks is scored yet."),
)
_ASKED = (
    fact("name", "Model", lambda each: model_cell(each.model)),
    fact("tasks", "Tasks", lambda each: [Code(task) for task in each.row.tasks]),
    fact("limit", "Items of each task", lambda each: each.row.item_limit, none=Phrase("all")),
    fact("shots", "Examples before each item", none=Phrase("as many as the task says")),
    fact("batch", "Batch"),
    fact("device", "Device", lambda each: each.row.device and Code(each.row.device)),
    fact("step", "At"),
    _used("prompt_tokens", "Tokens in"),
    _used("completion_tokens", "Tokens out"),
    _used("estimated_tokens", "Tokens, estimated"),
    _used("cost", "Cost", Dollars),
)
_HINT = Phrase(
    "After ± is the standard error: for a task, that of the mean over its items; for the geometric mean, by the delta "
    "method. Differences under about three standard errors may be chance. Metrics that are not shares, such as "
    "perplexity, are not in percent and are left out of the mean."
)
_MEAN = fact("geometric_mean", "Geometric mean", values=_of_results(_geometric_mean))
PAGE: JobPage[BenchmarkJob] = JobPage(
    kind=BENCHMARK,
    lead=lambda each: [Phrase("Scores %(model)s.", model=model_cell(each.model))],
    like=lambda _each: True,
    figures=figures_of,
    progress=Phrase("%(done)s of %(all)s tasks are done"),
    sections=[
        Section("results", "Results", [_MEAN], table=RESULTS, hint=_HINT),
        Section(ASKED, "What was asked for", _ASKED),
    ],
)
