"""Runs drawn over each other."""

from collections.abc import Iterator
from typing import Any

from app.analysis.overlaid import Smoothing, overlaid


def marks(spec: Any) -> Iterator[str]:
    """The kinds of marks of a spec's layers."""
    yield from (each["mark"]["type"] for each in spec["layer"])


def test_what_has_no_order_is_drawn_without_lines_and_told_task_by_task() -> None:
    runs = {"before": [("sums", 0.25), ("letters", 0.3)], "after": [("sums", 0.5)]}
    chart = overlaid("Score", "Task", runs, Smoothing())
    assert set(marks(chart.spec())) == {"point"}
    assert chart.described.sentence == "Score: before sums 0.2500, letters 0.3000; after sums 0.5000."
    assert chart.described.header == ("Task", "before", "after")
    assert chart.described.rows == [("sums", "0.2500", "0.5000"), ("letters", "0.3000", "–")]


def test_what_has_an_order_is_drawn_by_lines_and_told_by_its_ends() -> None:
    chart = overlaid("Loss", "Step", {"a": [(1, 2.0), (2, 0.5), (3, 1.0)]}, Smoothing())
    assert set(marks(chart.spec())) == {"line"}
    assert chart.described.sentence == "Loss, last: a 1.0000."
    assert chart.described.rows == [("a", "2.0000", "0.5000", "2.0000", "1.0000")]
