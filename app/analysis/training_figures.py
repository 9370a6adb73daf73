"""How trainings went, beside one job's loss curve: what a method's loss tells, and several jobs in one chart. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.analysis.chart import HEIGHT, WIDTH, Chart, Description, Spec
from app.analysis.losses import HELD_OUT, MOST_DRAWN, TRAINING, points_of, shown_figure, thinned
from app.analysis.themes import Palette

TITLES = {
    "reward": "Mean reward",
    "kl": "Distance to the reference (KL)",
    "clip_fraction": "Share of moves that are clipped",
    "penalty": "Penalty of worse responses",
}
MOST_JOBS = 6  # in one chart: as many as there are colours
_PANEL = {"width": 240, "height": 130}  # pixels

Events = Sequence[Mapping[str, Any]]


def method_curves(name: str, called: str, events: Events) -> Chart | None:
    """A panel for each figure that the loss of a job's method tells beside itself; None where it tells none."""
    found = {of: points for of in TITLES if (points := points_of(events, "step", of))}
    if not found:
        return None
    values = [{"of": of, "step": step, "value": value} for of, points in found.items() for step, value in points]

    def draw(colours: Palette) -> Spec:
        panels = [_panel(of, thinned(points, MOST_DRAWN), colours) for of, points in found.items()]
        return {"columns": 2, "spacing": 36, "concat": panels}

    first_and_last = [
        (TITLES[of], shown_figure(points[0][1]), shown_figure(points[-1][1])) for of, points in found.items()
    ]
    said = "; ".join(f"{title} {before} at first, {now} now" for title, before, now in first_and_last)
    described = Description(f"Of {called}: {said}.", ("Figure", "First step", "Last step"), first_and_last)
    return Chart(name, "What the loss tells", described, draw, values)


def _panel(of: str, points: Sequence[tuple[int, float]], colours: Palette) -> Spec:
    step = {
        "field": "step",
        "type": "quantitative",
        "title": "Step",
        "axis": {"tickMinStep": 1},
        "scale": {"nice": False},
    }
    value = {"field": "value", "type": "quantitative", "title": None, "scale": {"zero": False}}
    return {
        "title": {"text": TITLES[of], "fontSize": 13, "offset": 8, "frame": "group"},
        **_PANEL,
        "data": {"values": [{"step": at, "value": each} for at, each in points]},
        "mark": {"type": "line", "strokeWidth": 2, "color": colours.first, "point": len(points) == 1},
        "encoding": {
            "x": step,
            "y": value,
            "tooltip": [{**step, "title": "Step"}, {**value, "title": TITLES[of], "format": ".4g"}],
        },
    }


def compared_losses(name: str, jobs: Sequence[tuple[str, Events]]) -> Chart:
    """The losses of up to MOST_JOBS jobs, each by its label, in one chart: training drawn through, held out dashed."""
    kinds = ((TRAINING, "step"), (HELD_OUT, "eval"))
    found = [(label, of, points_of(events, kind)) for label, events in jobs for of, kind in kinds]
    values = [
        {"job": label, "of": of, "step": step, "loss": loss} for label, of, points in found for step, loss in points
    ]
    labels = [label for label, _ in jobs]

    def draw(colours: Palette) -> Spec:
        drawn = [
            {"job": label, "of": of, "step": step, "loss": loss}
            for label, of, points in found
            for step, loss in thinned(points, MOST_DRAWN)
        ]
        colour = {"domain": labels, "range": colours.players[: len(labels)]}
        dashes = {"domain": [TRAINING, HELD_OUT], "range": [[1, 0], [6, 4]]}
        legend: Spec = {"orient": "top"}
        stroke = {**legend, "symbolType": "stroke", "symbolSize": 300}
        return {
            "width": WIDTH,
            "height": HEIGHT,
            "data": {"values": drawn},
            # What was told of once has no line yet.
            "mark": {"type": "line", "strokeWidth": 2, "point": any(len(points) == 1 for _, _, points in found)},
            "encoding": {
                "x": {"field": "step", "type": "quantitative", "title": "Step", "axis": {"tickMinStep": 1}},
                "y": {
                    "field": "loss",
                    "type": "quantitative",
                    "title": "Loss (nats a token)",
                    "scale": {"zero": False} if drawn else {"domain": [0, 1]},
                },
                "color": {"field": "job", "type": "nominal", "title": None, "scale": colour, "legend": legend},
                "strokeDash": {"field": "of", "type": "nominal", "title": None, "scale": dashes, "legend": stroke},
                "tooltip": [
                    {"field": "job", "title": "Job"},
                    {"field": "of", "title": "Loss of"},
                    {"field": "step", "title": "Step"},
                    {"field": "loss", "title": "Loss", "format": ".4f"},
                ],
            },
        }

    rows = [
        (
            label,
            of,
            shown_figure(points[0][1]),
            shown_figure(min(loss for _, loss in points)),
            shown_figure(points[-1][1]),
        )
        for label, of, points in found
        if points
    ]
    last = "; ".join(f"{label} {of} {now}" for label, of, _, _, now in rows) or "none has told of a step yet"
    described = Description(f"Last losses: {last}.", ("Job", "Loss of", "First", "Lowest", "Last"), rows)
    return Chart(name, "Loss", described, draw, values)
