"""Results of benchmarks as CSV: one row per model and task."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.benchmarks.listing import BenchmarkComparison
from app.core.csv_tables import Column
from app.models import BenchmarkResult


class ComparisonRow(NamedTuple):
    """A result with its model and the settings shared by the whole comparison."""

    model: str
    result: BenchmarkResult
    limit: int | None
    shots: int | None


def comparison_columns() -> Sequence[Column]:
    """The columns of the table."""
    return (
        Column("model", "text", "Name of the model.", "any", lambda row: row.model),
        Column("task", "text", "Name of the task.", "any", lambda row: row.result.task),
        Column("metric", "text", "What the task counts by.", "acc, exact_match, …", lambda row: row.result.metric),
        Column(
            "value", "number", "The score.", "0 to 1; of metrics that are no shares any", lambda row: row.result.value
        ),
        Column("stderr", "number", "Its standard error.", "from 0 on; empty: not known", lambda row: row.result.stderr),
        Column("n", "integer", "Items that were scored.", "from 1 on", lambda row: row.result.n),
        Column("limit", "integer", "Most items of a task.", "empty: all", lambda row: row.limit),
        Column("shots", "integer", "Solved examples before an item.", "empty: the task's", lambda row: row.shots),
        Column("seconds", "number", "How long it took.", "from 0 on", lambda row: row.result.seconds),
        Column("source", "text", "What scored it, with its version.", "any", lambda row: row.result.source),
        Column("version", "text", "Version of the task.", "any", lambda row: row.result.version),
        Column(
            "scores", "json", "Every metric's value and standard error.", "an object", lambda row: row.result.scores
        ),
        Column("benchmark", "integer", "Number of the job.", "from 1 on", lambda row: row.result.job_id),
    )


def comparison_rows(found: BenchmarkComparison | None) -> Iterator[ComparisonRow]:
    """Every result of a comparison."""
    if found is None:
        return
    for each in found.models:
        for task in sorted(each.results):
            yield ComparisonRow(each.model.name, each.results[task], found.limit, found.shots)
