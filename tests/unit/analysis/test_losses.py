"""The curve of a training: what it draws and says."""

from typing import Any

from app.analysis import drawing
from app.analysis.figure_files import SVG
from app.analysis.losses import loss_curve
from app.analysis.themes import DARK, LIGHT


def told(kind: str, step: int, loss: float | None) -> dict[str, Any]:
    return {"event": kind, "step": step, "loss": loss}


def values_of(layer: dict[str, Any]) -> list[dict[str, Any]]:
    """The data that a layer has of its own."""
    found: list[dict[str, Any]] = layer.get("data", {}).get("values", [])
    return found


EVENTS = [
    {"event": "started"}, told("step", 1, 4.0), told("step", 2, 3.0), told("eval", 2, 3.5), told("step", 3, 9.0),
    {"event": "started"}, told("step", 3, 2.0), told("step", 4, None), told("eval", 4, 3.75),
]  # fmt: skip


def test_a_step_that_was_told_again_counts_once_and_one_without_a_number_not_at_all() -> None:
    chart = loss_curve("loss-3", "job 3", EVENTS, 10)
    assert chart.described.rows == [
        ("1", "4.0000", ""), ("2", "3.0000", "3.5000"), ("3", "2.0000", ""), ("4", "", "3.7500"),
    ]  # fmt: skip
    assert chart.described.sentence == (
        "Loss of job 3: 4.0000 at step 1, 2.0000 at step 3. On held-out data it was last 3.7500,"
        " and best at step 2: 3.5000."
    )
    spec = chart.spec()
    assert spec["encoding"]["x"]["scale"]["domain"] == [0, 10]
    assert len(spec["data"]["values"]) == 5


def test_the_step_whose_weights_became_the_model_is_marked_and_the_best_until_there_is_one() -> None:
    for registered, words in ((None, "step 2 is the best so far"), (2, "step 2 is registered")):
        chart = loss_curve("loss-3", "job 3", EVENTS, 10, registered)
        drawn = drawing.draw(chart, SVG).decode()
        [mark] = {own["words"]: own for layer in chart.spec()["layer"] for own in values_of(layer)}.values()
        assert mark["words"] == words
        lines = mark["lines"].split("\n")
        assert " ".join(lines) == words
        assert all(line in drawn and len(line) <= 16 for line in lines)  # half of a phone has room for them
        assert chart.described.sentence.endswith("weights of step 2.") == (registered is not None)
    assert "so far" not in drawing.draw(loss_curve("loss-3", "job 3", EVENTS[:3], 10), SVG).decode()


def test_a_long_training_is_drawn_with_a_few_hundred_points_and_the_last() -> None:
    chart = loss_curve("loss-3", "job 3", [told("step", step, 1 / step) for step in range(1, 10_001)], 10_000)
    points = chart.spec()["data"]["values"]
    assert len(points) <= 300
    assert points[-1]["step"] == 10_000
    assert len(chart.described.rows) <= 40
    assert len(chart.csv().splitlines()) <= 301  # it is part of the page


def test_every_state_of_a_training_can_be_drawn() -> None:
    for events in ([], EVENTS[:2], EVENTS):
        for theme in (LIGHT, DARK):
            assert drawing.draw(loss_curve("loss-3", "job 3", events, None), SVG, theme).startswith(b"<svg")
    assert loss_curve("loss-3", "job 3", [], None).described.sentence == "Job 3 has reported no step yet."
