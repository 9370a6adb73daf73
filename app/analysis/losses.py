"""How a model has learned, as a chart: the loss on what it learns from and on what was held out, by step. Pure."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from app.analysis.chart import HEIGHT, WIDTH, Chart, Description, Spec
from app.analysis.themes import Palette

TRAINING, HELD_OUT = "training", "held out"
MOST_DRAWN = 300  # points of a curve
_LISTED = 40  # of them in the table
_DASHES = [[1, 0], [6, 4]]
_TOOLTIP = [
    {"field": "of", "title": "Loss of"},
    {"field": "step", "title": "Step"},
    {"field": "loss", "title": "Loss", "format": ".4f"},
]

Points = Sequence[tuple[int, float]]


class MarkedStep(NamedTuple):
    """The step that a curve marks, and what is said of it, in lines that are short enough for a phone."""

    step: int
    words: tuple[str, str]


def loss_curve(
    name: str, called: str, events: Sequence[Mapping[str, Any]], steps: int | None, registered: int | None = None
) -> Chart:
    """The curve of a training's events, which are those of `python -m training`; what was told again counts once.

    `called` is what the sentence calls it, `steps` how many there will be, `registered` the step whose weights became
    the model. It is marked; as long as there is none, the best evaluation is.
    """
    train, held_out = points_of(events, "step"), points_of(events, "eval")
    marked = _marked(held_out, registered)
    rows = [
        (str(step), shown_figure(dict(train).get(step)), shown_figure(dict(held_out).get(step)))
        for step in sorted({step for step, _ in (*thinned(train, _LISTED), *held_out)})
    ]
    header = ("Step", "Loss, training", "Loss, held out")
    described = Description(_sentence(called, train, held_out, registered), header, rows)
    last = max(steps or 0, *(step for step, _ in (*train, *held_out)), 1)
    data = [
        {"of": of, "step": step, "loss": loss}
        for of, points in ((TRAINING, thinned(train, MOST_DRAWN)), (HELD_OUT, held_out))
        for step, loss in points
    ]
    return Chart(name, "Loss", described, partial(_drawn, thinned(train, MOST_DRAWN), held_out, marked, last), data)


def _marked(held_out: Points, registered: int | None) -> MarkedStep | None:
    if registered is not None:
        return MarkedStep(registered, (f"step {registered}", "is registered"))
    if not held_out:
        return None
    step = min(held_out, key=lambda each: each[1])[0]
    return MarkedStep(step, (f"step {step} is", "the best so far"))


def _drawn(train: Points, held_out: Points, marked: MarkedStep | None, last: int, colours: Palette) -> Spec:
    """Both curves from step 0 to the last one that there will be."""
    of_each = ((TRAINING, train), (HELD_OUT, held_out))
    values = [{"step": step, "loss": loss, "of": of} for of, points in of_each for step, loss in points]
    groups = [of for of, points in of_each if points or of == TRAINING]
    x_axis: Spec = {"scale": {"domain": [0, last], "nice": False}, "axis": {"tickMinStep": 1}}
    y_scale: Spec = {"zero": False} if values else {"domain": [0, 1]}  # which no data would leave open
    shade: Spec = {
        "field": "of",
        "type": "nominal",
        "sort": groups,
        "title": None,
        "legend": {"orient": "top"} if held_out else None,
        "scale": {"domain": groups, "range": colours.players[: len(groups)]},
    }
    dash = {**shade, "scale": {"domain": groups, "range": _DASHES[: len(groups)]}}
    line = {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"strokeDash": dash}}
    # An evaluation is a dot, and so is a training of a single step, which has no line yet.
    dotted = "true" if len(train) == 1 else f"datum.of == '{HELD_OUT}'"
    dots = {"transform": [{"filter": dotted}], "mark": {"type": "point", "filled": True, "opacity": 1, "size": 55}}
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": values},
        "encoding": {
            "x": {"field": "step", "type": "quantitative", "title": "Step", **x_axis},
            "y": {"field": "loss", "type": "quantitative", "title": "Loss (nats a token)", "scale": y_scale},
            "color": shade,
            "tooltip": _TOOLTIP,
        },
        "layer": [
            *(_mark(marked, last, colours) if marked else ()),
            line,
            *([dots] if held_out or len(train) == 1 else []),
        ],
    }


def _mark(marked: MarkedStep, last: int, colours: Palette) -> Sequence[Spec]:
    """A line from top to bottom at the marked step, with its words on the side where there is more room."""
    left = 2 * marked.step > last
    own: Spec = {
        "data": {"values": [{"step": marked.step, "words": " ".join(marked.words), "lines": "\n".join(marked.words)}]},
        "encoding": {"y": None, "color": None, "tooltip": {"field": "words", "title": "Weights"}},
    }
    words = {"type": "text", "align": "right" if left else "left", "dx": -6 if left else 6, "baseline": "top"}
    text: Spec = {"y": {"value": 4}, "color": None, "text": {"field": "lines"}}
    return (
        {**own, "mark": {"type": "rule", "strokeWidth": 1.5, "strokeDash": [2, 3], "color": colours.ink}},
        {**own, "mark": {**words, "lineBreak": "\n", "color": colours.ink}, "encoding": text},
    )


def points_of(events: Sequence[Mapping[str, Any]], kind: str, name: str = "loss") -> list[tuple[int, float]]:
    """Steps and their figures of that name in order; of a step that was told of several times the last."""
    found = {each["step"]: each[name] for each in events if each["event"] == kind and each.get(name) is not None}
    return sorted(found.items())


def thinned(points: Points, most: int) -> list[tuple[int, float]]:
    """At most so many of the points, evenly, with the last one."""
    every = -(-len(points) // most) or 1
    return list(points[::-1][::every][::-1])


def _sentence(called: str, train: Points, held_out: Points, registered: int | None) -> str:
    if not train:
        return f"{called[:1].upper()}{called[1:]} has told of no step yet."
    (first, before), (last, now) = train[0], train[-1]
    said = f"Loss of {called}: {shown_figure(before)} at step {first}, {shown_figure(now)} at step {last}."
    if held_out:
        at, best = min(held_out, key=lambda each: each[1])
        latest = shown_figure(held_out[-1][1])
        said += f" On what was held out it was {latest} last, and best at step {at}: {shown_figure(best)}."
    return said if registered is None else f"{said} The model has the weights of step {registered}."


def shown_figure(value: float | None) -> str:
    """A figure with four decimals; nothing where there is none."""
    return "" if value is None else f"{value:.4f}"
