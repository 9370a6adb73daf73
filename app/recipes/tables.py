"""Tables of step results: a row each, or one for all iterations of a loop with mean and interval. Pure."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from app.core.errors import Invalid

JSON = dict[str, Any]
_Z = 1.959963984540054  # 95 % of a normal distribution lie within it
# The same for Student's t with 1, 2, 3, … degrees of freedom. Source: Student 1908, The probable error of a mean.
_T = (
    12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139, 2.200985,
    2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922, 2.093024, 2.085963, 2.079614, 2.073873,
    2.068658, 2.063899, 2.059539, 2.055529, 2.051831, 2.048407, 2.045230, 2.042272,
)  # fmt: skip


class ComparedStep(NamedTuple):
    """A step's results: figures by name, each with `value`, and with `low` and `high` if there is an interval."""

    name: str
    values: Mapping[str, Any]  # the values of its loops' variables
    model: str | None
    figures: Mapping[str, Mapping[str, Any]]


def table_of(steps: Sequence[ComparedStep], over: str | None, only: Sequence[str]) -> JSON:
    """The table as stored with a step: `columns` of figures, `variables` of loops, and `rows`.

    Raises Invalid for a figure that none of the steps has.
    """
    known = list(dict.fromkeys(name for step in steps for name in step.figures))
    if unknown := next((name for name in only if name not in known), None):
        raise Invalid("figures", expected=f"existing figures: {', '.join(known)}", got=unknown)
    variables = list(dict.fromkeys(name for step in steps for name in step.values if name != over))
    rows = [_row(step) for step in steps] if over is None else [*_mean_rows(steps, over, known)]
    return {"over": over, "variables": variables, "columns": [*(only or known)], "rows": rows}


def _row(step: ComparedStep) -> JSON:
    return {"step": step.name, "values": dict(step.values), "model": step.model, "figures": dict(step.figures)}


def _mean_rows(steps: Sequence[ComparedStep], over: str, names: Sequence[str]) -> Iterator[JSON]:
    """A row for each group of steps that differ only in `over`; steps without it, `alone`, keep their figures."""
    groups: dict[tuple[Any, ...], list[ComparedStep]] = {}
    for step in steps:
        others = tuple((name, value) for name, value in step.values.items() if name != over)
        groups.setdefault((step.name, others), []).append(step)
    for (name, others), group in groups.items():
        if over not in group[0].values:
            yield from ({**_row(step), "alone": True} for step in group)
            continue
        figures = {}
        for figure in names:
            found = [step.figures[figure]["value"] for step in group if figure in step.figures]
            if numbers := [float(each) for each in found if each is not None]:
                figures[figure] = mean_with_interval(numbers)
        yield {"step": name, "values": dict(others), "model": None, "figures": figures}


def mean_with_interval(numbers: Sequence[float]) -> JSON:
    """The mean of some numbers, with its 95 % interval by Student's t if there are at least two."""
    mean, count = statistics.fmean(numbers), len(numbers)
    if count < 2:
        return {"value": mean, "low": None, "high": None, "n": count}
    half = _quantile(count - 1) * statistics.stdev(numbers) / math.sqrt(count)
    return {"value": mean, "low": mean - half, "high": mean + half, "n": count}


def _quantile(freedom: int) -> float:
    """The quantile of Student's t. Source: Abramowitz & Stegun 1964, 26.7.5, for many degrees of freedom."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    first, second = (_Z**3 + _Z) / 4, (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96
    return _Z + first / freedom + second / freedom**2


# ---- Lines of files ----------------------------------------------------------------


class TableCell(NamedTuple):
    """A figure of a row, which has its own line in a file."""

    step: str
    values: Mapping[str, Any]
    model: str | None
    figure: str
    value: float | None
    low: float | None
    high: float | None
    n: int | None


def cells_of(table: Mapping[str, Any]) -> list[TableCell]:
    """Every figure of every row."""
    return [
        TableCell(
            row["step"], row["values"], row["model"], name, found["value"], found.get("low"), found.get("high"),
            found.get("n"),
        )
        for row in table["rows"]
        for name in table["columns"]
        if (found := row["figures"].get(name)) is not None
    ]  # fmt: skip
