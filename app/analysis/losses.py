"""Loss curves: the training loss and the held-out loss, by step. Pure."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from app.analysis.chart import HEIGHT, WIDTH, Chart, Description, Spec
from app.analysis.language import ENGLISH, Language
from app.analysis.themes import Palette

TRAINING, HELD_OUT = "training", "held out"
MOST_DRAWN = 300  # points of a curve
_LISTED = 40  # points listed in the table
_DASHES = [[1, 0], [6, 4]]

STEPS = {"tickMinStep": 1, "format": ",~f"}  # a step axis
FIGURES = {"format": ".4~g"}  # an axis of losses and the like; a single value would otherwise get six digits

Points = Sequence[tuple[int, float]]
T = TypeVar("T")


class MarkedStep(NamedTuple):
    """The step that a curve marks, and its label, in lines short enough for a phone."""

    step: int
    words: tuple[str, str]


def loss_curve(
    name: str,
    called: str,
    events: Sequence[Mapping[str, Any]],
    steps: int | None,
    registered: int | None = None,
    language: Language = ENGLISH,
    *,
    by_token: bool = True,
) -> Chart:
    """The curve of a training's events, which are those of `python -m training`; repeated events count once.

    `called` is its name in the sentence, `steps` the number of planned steps, `registered` the step whose weights
    became the model. That step is marked, or the best evaluation while there is none. `by_token`: the loss is a mean
    over tokens, in nats; otherwise over moves or responses.
    """
    train, held_out = points_of(events, "step"), points_of(events, "eval")
    marked = _marked(held_out, registered, language)
    rows = [
        (str(step), shown_figure(dict(train).get(step), language), shown_figure(dict(held_out).get(step), language))
        for step in sorted({step for step, _ in (*thinned(train, _LISTED), *held_out)})
    ]
    header = (language.gettext("Step"), language.gettext("Loss, training"), language.gettext("Loss, held out"))
    described = Description(_losses_in_words(called, train, held_out, registered, language), header, rows)
    last = max(steps or 0, *(step for step, _ in (*train, *held_out)), 1)
    data = [
        {"of": of, "step": step, "loss": loss}
        for of, points in ((TRAINING, thinned(train, MOST_DRAWN)), (HELD_OUT, held_out))
        for step, loss in points
    ]
    draw = partial(_curve, thinned(train, MOST_DRAWN), held_out, marked, last, loss_title(by_token, language), language)
    return Chart(name, language.gettext("Loss"), described, draw, data, language)


def _marked(held_out: Points, registered: int | None, language: Language) -> MarkedStep | None:
    if registered is not None:
        words = language.gettext("step %(step)s", step=registered), language.gettext("is registered")
        return MarkedStep(registered, words)
    if not held_out:
        return None
    step = min(held_out, key=lambda each: each[1])[0]
    return MarkedStep(step, (language.gettext("step %(step)s is", step=step), language.gettext("the best so far")))


def called_kinds(language: Language) -> dict[str, str]:
    """A chart's names for the two kinds of losses."""
    return {TRAINING: language.gettext("training"), HELD_OUT: language.gettext("held out")}


def _curve(
    train: Points,
    held_out: Points,
    marked: MarkedStep | None,
    last: int,
    title: str,
    language: Language,
    colours: Palette,
) -> Spec:
    """Both curves from step 0 to the last planned one."""
    called = called_kinds(language)
    of_each = ((called[TRAINING], train), (called[HELD_OUT], held_out))
    values = [{"step": step, "loss": loss, "of": of} for of, points in of_each for step, loss in points]
    groups = [of for of, points in of_each if points or of == called[TRAINING]]
    x_axis: Spec = {"scale": {"domain": [0, last], "nice": False}, "axis": STEPS}
    y_scale: Spec = {"zero": False} if values else {"domain": [0, 1]}  # undefined without data
    shade: Spec = {
        "field": "of",
        "type": "nominal",
        "sort": groups,
        "title": None,
        "legend": {"orient": "top", "symbolType": "stroke", "symbolSize": 300} if held_out else None,
        "scale": {"domain": groups, "range": colours.players[: len(groups)]},
    }
    dash = {**shade, "scale": {"domain": groups, "range": _DASHES[: len(groups)]}}
    line = {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"strokeDash": dash}}
    # An evaluation is a dot, and so is a training of a single step, which has no line yet.
    dotted: Any = "true" if len(train) == 1 else {"field": "of", "equal": called[HELD_OUT]}
    dots = {"transform": [{"filter": dotted}], "mark": {"type": "point", "filled": True, "opacity": 1, "size": 55}}
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": values},
        "encoding": {
            "x": {"field": "step", "type": "quantitative", "title": language.gettext("Step"), **x_axis},
            "y": {
                "field": "loss",
                "type": "quantitative",
                "title": title,
                "scale": y_scale,
                "axis": FIGURES,
            },
            "color": shade,
            "tooltip": loss_tooltip(language),
        },
        "layer": [
            *(_line_at_marked_step(marked, last, language, colours) if marked else ()),
            line,
            *([dots] if held_out or len(train) == 1 else []),
        ],
    }


def _line_at_marked_step(marked: MarkedStep, last: int, language: Language, colours: Palette) -> Sequence[Spec]:
    """A vertical line at the marked step, with its label on the side with more room."""
    left = 2 * marked.step > last
    own: Spec = {
        "data": {"values": [{"step": marked.step, "words": " ".join(marked.words), "lines": "\n".join(marked.words)}]},
        "encoding": {"y": None, "color": None, "tooltip": {"field": "words", "title": language.gettext("Weights")}},
    }
    words = {"type": "text", "align": "right" if left else "left", "dx": -6 if left else 6, "baseline": "top"}
    text: Spec = {"y": {"value": 4}, "color": None, "text": {"field": "lines"}}
    return (
        {**own, "mark": {"type": "rule", "strokeWidth": 1.5, "strokeDash": [2, 3], "color": colours.ink}},
        {**own, "mark": {**words, "lineBreak": "\n", "color": colours.ink}, "encoding": text},
    )


def loss_title(by_token: bool, language: Language) -> str:
    """The title of the axis of losses, which are means over tokens or something else."""
    return language.gettext("Loss (nats a token)") if by_token else language.gettext("Loss")


def loss_tooltip(language: Language) -> list[Spec]:
    """The tooltip fields of a point of a curve."""
    return [
        {"field": "of", "title": language.gettext("Loss of")},
        {"field": "step", "title": language.gettext("Step")},
        {"field": "loss", "title": language.gettext("Loss"), "type": "quantitative", "format": ".4f"},
    ]


def points_of(events: Sequence[Mapping[str, Any]], kind: str, name: str = "loss") -> list[tuple[int, float]]:
    """Steps and their figures of that name, in order; for a step reported several times, the last."""
    found = {each["step"]: each[name] for each in events if each["event"] == kind and each.get(name) is not None}
    return sorted(found.items())


def thinned(points: Sequence[T], most: int) -> list[T]:
    """At most `most` of the points, evenly spaced, including the last one."""
    every = -(-len(points) // most) or 1
    return list(points[::-1][::every][::-1])


def _losses_in_words(called: str, train: Points, held_out: Points, registered: int | None, language: Language) -> str:
    if not train:
        subject = f"{called[:1].upper()}{called[1:]}"
        return language.gettext("%(job)s has reported no step yet.", job=subject)
    (first, before), (last, now) = train[0], train[-1]
    said = [
        language.gettext(
            "Loss of %(job)s: %(before)s at step %(first)s, %(now)s at step %(last)s.",
            job=called,
            before=shown_figure(before, language),
            first=first,
            now=shown_figure(now, language),
            last=last,
        )
    ]
    if held_out:
        at, best = min(held_out, key=lambda each: each[1])
        said.append(
            language.gettext(
                "On held-out data it was last %(latest)s, and best at step %(step)s: %(best)s.",
                latest=shown_figure(held_out[-1][1], language),
                step=at,
                best=shown_figure(best, language),
            )
        )
    if registered is not None:
        said.append(language.gettext("The model has the weights of step %(step)s.", step=registered))
    return " ".join(said)


def shown_figure(value: float | None, language: Language) -> str:
    """A figure with four decimals; empty for None."""
    return "" if value is None else language.decimals(value, 4)
