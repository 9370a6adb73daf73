"""Figures without colours, on paper or for the colour-blind: series differ in more, and axes say what they are of."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from app.analysis.bootstrap import Figure
from app.analysis.chart import Chart, Spec
from app.analysis.language import ENGLISH
from app.analysis.overlaid import Smoothing, overlaid
from app.games.metrics import SHARE
from app.reports.interval_charts import interval_chart
from app.society.charts import society_charts
from app.society.interaction import Interaction, Observation
from app.society.statistics import iteration_figures
from tests.unit.analysis.test_chart_language import all_charts

PARTS = ("layer", "concat", "hconcat", "vconcat")
# By which a reader without colours tells series apart; opacity is how dark a bar is.
BESIDE_COLOUR = ("strokeDash", "shape", "opacity", "x", "y")
# What says enough without a unit: counts, numbers that only order, and shares whose axis is in per cent.
COUNTED = {
    "Matches", "Seats", "Seeds", "Iteration", "Step", "Points", "Accepted moves", "Turns", "Accepted moves before it",
    "Share of matches", "Share of games", "Share of its seats", "Share of moves", "Rating", "nats",
}  # fmt: skip


def _society() -> list[Chart]:
    seen = [
        Interaction(at, agent, "m", "q", "d", (), "r", Observation(3.0 + at, 2.0), Observation(5.0, 4.0 + agent / 9))
        for at in range(2)
        for agent in range(12)
    ]
    return society_charts("1", iteration_figures(seen), 2)


TASKS = {"before": [("sums", 0.25), ("letters", 0.3)], "after": [("sums", 0.5)]}
CHARTS = {
    each.name: each
    for each in (
        *all_charts(ENGLISH),
        *_society(),
        overlaid("Loss (nats a token)", "Step", {"a": [(1, 2.0), (2, 1.0)], "b": [(1, 2.5), (2, 2.0)]}, Smoothing()),
        replace(overlaid("Score (by the task’s metric)", "Task", TASKS, Smoothing()), name="tasks"),
        interval_chart(
            "i", "t", "Score", "points", [("a", Figure(1, 0, 2, 9)), ("b", Figure(2, 1, 3, 9))], "Player", 0
        ),
        interval_chart("s", "t", "Agreement", SHARE, [("a", Figure(0.5, 0.4, 0.6, 9))], "Step"),
    )
}


def marks(spec: Spec, inherited: Mapping[str, Any] = {}) -> Iterator[tuple[str, dict[str, Any], Spec]]:
    """Each mark of a spec, with the encoding that it has or takes from around it, and the spec that it stands in."""
    encoding = {**inherited, **spec.get("encoding", {})}
    if "mark" in spec:
        mark = spec["mark"]
        yield mark if isinstance(mark, str) else mark["type"], encoding, spec
    for name in PARTS:
        for each in spec.get(name, ()):
            yield from marks(each, encoding)


def field(encoding: Mapping[str, Any], channel: str) -> Any:
    return (encoding.get(channel) or {}).get("field")


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_series_differ_in_dash_shape_darkness_or_place_as_well_as_in_colour(name: str, theme: str) -> None:
    told_apart: dict[str, set[str]] = {}
    for _, encoding, _ in marks(CHARTS[name].spec(theme)):
        colour = encoding.get("color") or {}
        if colour.get("type") != "nominal":
            continue
        scale = colour.get("scale", {})
        if len(scale.get("domain", "several")) > 1:
            by = {channel for channel in BESIDE_COLOUR if field(encoding, channel) == colour["field"]}
            told_apart.setdefault(colour["field"], set()).update(by)
    if name.startswith("difference"):  # who is ahead is which side of 0 a bar is on
        assert told_apart.pop("ahead") == set()
    if name.startswith("compare-models"):  # a row begins with the round and goes on with the model
        assert told_apart.pop("model") == set()
        assert all(row["model"] in row["who"] for row in CHARTS[name].spec()["data"]["values"])
    assert all(told_apart.values()), told_apart


@pytest.mark.parametrize("name", CHARTS)
def test_dashes_shapes_and_darkness_are_as_many_as_the_series(name: str) -> None:
    for _, encoding, _ in marks(CHARTS[name].spec()):
        for channel in ("strokeDash", "shape"):
            scale = (encoding.get(channel) or {}).get("scale", {})
            if "range" in scale:
                assert len(scale["range"]) == len(scale["domain"]) == len({*map(str, scale["range"])}), name


@pytest.mark.parametrize("name", CHARTS)
def test_every_axis_of_numbers_says_its_unit_or_what_it_counts(name: str) -> None:
    seen: dict[str, set[str]] = {"x": set(), "y": set()}
    spec = CHARTS[name].spec()
    for _, encoding, _ in marks(spec):
        for axis in seen:
            channel = encoding.get(axis) or {}
            if channel.get("type") == "quantitative" and channel.get("title"):
                title = channel["title"]
                seen[axis].add(" ".join(title) if isinstance(title, list) else title)
    titles = seen["x"] | seen["y"]
    if not name.startswith("cross-play"):  # of which both axes are players, and the legend says the points
        assert titles
    for title in titles:
        assert title in COUNTED or "(" in title or "1 to 7" in title, f"{name}: {title} has no unit"


def test_a_panel_of_a_method_says_its_unit_where_there_is_one() -> None:
    titles = [panel["encoding"]["y"]["title"] for panel in CHARTS["method-1"].spec()["concat"]]
    assert titles == [None, "nats"]
