"""The benchmark results of a campaign's models: the geometric mean over their tasks, by iteration."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.analysis.bootstrap import Figure
from app.analysis.chart import HEIGHT, WIDTH, Chart, Description, Spec
from app.analysis.language import ENGLISH, Language
from app.analysis.themes import Palette
from app.analysis.wording import interval
from app.benchmarks.listing import BenchmarkedModel
from app.benchmarks.scores import MeasuredScore


class BenchmarkPoint(NamedTuple):
    """A model of a campaign by its iteration number; 0 is the base."""

    iteration: int
    scored: BenchmarkedModel


def benchmark_figure(
    name: str,
    called: str,
    iterations: int,
    tasks: Sequence[str],
    points: Sequence[BenchmarkPoint],
    language: Language = ENGLISH,
) -> Chart | None:
    """The models' means over `tasks`, which all of them have, in percent with 95 % intervals.

    `iterations` is the planned number in the campaign. None if no model has a mean.
    """
    values = [_point_json(each, mean) for each in points if (mean := each.scored.mean) is not None]
    if not values:
        return None
    rows = [
        (
            str(each["iteration"]),
            each["model"],
            language.decimals(each["value"], 2),
            _score_label(each["stderr"], language),
            interval(Figure(each["value"], each["low"], each["high"]), "", language),
        )
        for each in values
    ]
    header = (
        language.gettext("Iteration"),
        language.gettext("Model"),
        language.gettext("Geometric mean"),
        language.gettext("Standard error"),
        language.gettext("95 %% interval"),
    )
    described = Description(_means_in_words(called, tasks, values, language), header, rows)

    def draw(colours: Palette) -> Spec:
        return _chart_spec(values, iterations, colours, language)

    title = language.gettext("Reasoning benchmarks of %(called)s by iteration", called=called)
    return Chart(name, title, described, draw, values, language)


def _point_json(point: BenchmarkPoint, mean: MeasuredScore) -> dict[str, Any]:
    low, high = mean.interval or (None, None)
    return {
        "iteration": point.iteration,
        "model": point.scored.model.name,
        "value": 100 * mean.value,
        "stderr": None if mean.stderr is None else 100 * mean.stderr,
        "low": None if low is None else 100 * low,
        "high": None if high is None else 100 * high,
    }


def _chart_spec(values: Sequence[Mapping[str, Any]], iterations: int, colours: Palette, language: Language) -> Spec:
    tooltip: list[Spec] = [
        {"field": "iteration", "title": language.gettext("Iteration")},
        {"field": "model", "title": language.gettext("Model")},
    ]
    for field, title in (
        ("value", language.gettext("Geometric mean")),
        ("low", language.gettext("95 %% from")),
        ("high", language.gettext("95 %% to")),
    ):
        tooltip.append({"field": field, "title": title, "type": "quantitative", "format": ".2f"})
    x: Spec = {
        "field": "iteration",
        "type": "quantitative",
        "title": language.gettext("Iteration"),
        "scale": {"domain": [0, max(1, iterations)], "nice": False, "padding": 12},
        "axis": {"format": "d", "tickMinStep": 1, "tickCount": min(10, max(1, iterations))},
    }
    y: Spec = {"type": "quantitative", "title": language.gettext("Geometric mean (%%)"), "scale": {"zero": False}}
    whiskers: Spec = {
        "transform": [{"filter": {"field": "low", "valid": True}}],
        "mark": {"type": "rule", "strokeWidth": 1.5},
        "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
    }
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": list(values)},
        "encoding": {"x": x, "y": {**y, "field": "value"}, "color": {"value": colours.second}},
        "layer": [
            *([whiskers] if any(each["low"] is not None for each in values) else []),  # Vega warns about an empty layer
            {"mark": {"type": "line", "strokeWidth": 2}},
            {"mark": {"type": "point", "filled": True, "size": 60, "opacity": 1}, "encoding": {"tooltip": tooltip}},
        ],
    }


def _means_in_words(called: str, tasks: Sequence[str], values: Sequence[Mapping[str, Any]], language: Language) -> str:
    first, last = values[0], values[-1]
    begun = language.decimals(first["value"], 2)
    if last is first:
        return language.gettext(
            "Geometric mean of %(called)s over %(tasks)s: %(value)s %%.",
            called=called, tasks=", ".join(tasks), value=begun,
        )  # fmt: skip
    return language.gettext(
        "Geometric mean of %(called)s over %(tasks)s: %(first)s %% at iteration %(begin)s, %(last)s %% at %(end)s.",
        called=called, tasks=", ".join(tasks), first=begun, last=language.decimals(last["value"], 2),
        begin=first["iteration"], end=last["iteration"],
    )  # fmt: skip


def _score_label(value: float | None, language: Language) -> str:
    return "" if value is None else language.decimals(value, 2)
