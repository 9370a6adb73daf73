"""Further training charts: the extra metrics of a method, and several jobs in one chart. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.analysis.chart import HEIGHT, WIDTH, Chart, Description, Spec
from app.analysis.language import ENGLISH, Language
from app.analysis.losses import (
    FIGURES,
    HELD_OUT,
    MOST_DRAWN,
    STEPS,
    TRAINING,
    called_kinds,
    loss_title,
    loss_tooltip,
    points_of,
    shown_figure,
    thinned,
)
from app.analysis.themes import Palette

TITLES = {
    "reward": "Mean reward",
    "kl": "Distance to the reference (KL)",
    "clip_fraction": "Share of moves that are clipped",
    "penalty": "Penalty of worse responses",
}
MOST_JOBS = 6  # in one chart: as many as there are colours
_MOST_MARKED = 6  # points of a curve that show the shape of its job
_PANEL = {"width": 240, "height": 130}  # pixels

Events = Sequence[Mapping[str, Any]]


def method_curves(name: str, called: str, events: Events, language: Language = ENGLISH) -> Chart | None:
    """A panel for each extra training metric of a job's method; None where it has none."""
    found = {of: points for of in TITLES if (points := points_of(events, "step", of))}
    if not found:
        return None
    values = [{"of": of, "step": step, "value": value} for of, points in found.items() for step, value in points]
    titles = {of: language.translate(TITLES[of]) for of in found}

    def draw(colours: Palette) -> Spec:
        units = {"kl": language.gettext("nats"), "clip_fraction": language.gettext("Share of moves")}
        panels = [
            _metric_panel(titles[of], units.get(of), thinned(points, MOST_DRAWN), language, colours)
            for of, points in found.items()
        ]
        return {"columns": 2, "spacing": 36, "concat": panels}

    first_and_last = [
        (titles[of], shown_figure(points[0][1], language), shown_figure(points[-1][1], language))
        for of, points in found.items()
    ]
    said = "; ".join(
        language.gettext("%(figure)s %(before)s at first, %(now)s now", figure=title, before=before, now=now)
        for title, before, now in first_and_last
    )
    sentence = language.gettext("Of %(job)s: %(figures)s.", job=called, figures=said)
    header = (language.gettext("Figure"), language.gettext("First step"), language.gettext("Last step"))
    title = language.gettext("Extra training metrics")
    return Chart(name, title, Description(sentence, header, first_and_last), draw, values, language)


def _metric_panel(
    title: str, unit: str | None, points: Sequence[tuple[int, float]], language: Language, colours: Palette
) -> Spec:
    axis, dot = language.gettext("Step"), {"color": colours.first}
    step = {
        "field": "step",
        "type": "quantitative",
        "title": axis,
        "axis": STEPS,
        "scale": {"nice": False},
    }
    value = {"field": "value", "type": "quantitative", "title": unit, "scale": {"zero": False}, "axis": FIGURES}
    return {
        "title": {"text": title, "fontSize": 13, "offset": 8, "frame": "group"},
        **_PANEL,
        "data": {"values": [{"step": at, "value": each} for at, each in points]},
        "mark": {"type": "line", "strokeWidth": 2, "color": colours.first, "point": dot if len(points) == 1 else False},
        "encoding": {
            "x": step,
            "y": value,
            "tooltip": [step, {**value, "title": title, "format": ".4g"}],
        },
    }


def compared_losses(
    name: str, jobs: Sequence[tuple[str, Events]], language: Language = ENGLISH, *, by_token: bool = True
) -> Chart:
    """The losses of up to MOST_JOBS jobs, by label, in one chart: training as solid lines, held out dashed.

    `by_token`: whether all are means over tokens.
    """
    kinds = ((TRAINING, "step"), (HELD_OUT, "eval"))
    found = [(label, of, points_of(events, kind)) for label, events in jobs for of, kind in kinds]
    values = [
        {"job": label, "of": of, "step": step, "loss": loss} for label, of, points in found for step, loss in points
    ]
    labels, called = [label for label, _ in jobs], called_kinds(language)

    def draw(colours: Palette) -> Spec:
        drawn = [
            {"job": label, "of": called[of], "step": step, "loss": loss}
            for label, of, points in found
            for step, loss in thinned(points, MOST_DRAWN)
        ]
        colour = {"domain": labels, "range": colours.players[: len(labels)]}
        job = {"field": "job", "type": "nominal", "title": None, "legend": {"orient": "top"}}
        marked = [
            {"job": label, "of": called[of], "step": step, "loss": loss}
            for label, of, points in found
            for step, loss in thinned(points, _MOST_MARKED)
        ]
        dash = {
            "field": "of",
            "type": "nominal",
            "title": None,
            "scale": {"domain": [called[TRAINING], called[HELD_OUT]], "range": [[1, 0], [6, 4]]},
            "legend": {"orient": "top", "symbolType": "stroke", "symbolSize": 300, "symbolStrokeColor": colours.ink},
        }
        steps = [step for _, _, points in found for step, _ in points]
        whole = min(10, max(1, max(steps, default=1) - min(steps, default=0)))  # no tick between two steps
        # Shapes distinguish jobs without their colours, and a value reported once has no line yet. They are a separate
        # layer: combined, lines would lose their legend.
        shapes = {
            "data": {"values": marked},
            "mark": {"type": "point", "filled": True, "opacity": 1, "size": 55},
            "encoding": {"shape": {**job, "scale": {"domain": labels}}},
        }
        return {
            "width": WIDTH,
            "height": HEIGHT,
            "data": {"values": drawn},
            "encoding": {
                "x": {
                    "field": "step",
                    "type": "quantitative",
                    "title": language.gettext("Step"),
                    "axis": {**STEPS, "tickCount": whole},
                    "scale": {"nice": False},
                },
                "y": {
                    "field": "loss",
                    "type": "quantitative",
                    "title": loss_title(by_token, language),
                    "axis": FIGURES,
                    "scale": {"zero": False} if drawn else {"domain": [0, 1]},
                },
                "color": {**job, "scale": colour},
                "tooltip": [{"field": "job", "title": language.gettext("Job")}, *loss_tooltip(language)],
            },
            "layer": [
                {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"strokeDash": dash}},
                *([shapes] if marked else []),
            ],
        }  # fmt: skip

    rows = [
        (
            label,
            called[of],
            shown_figure(points[0][1], language),
            shown_figure(min(loss for _, loss in points), language),
            shown_figure(points[-1][1], language),
        )
        for label, of, points in found
        if points
    ]
    last = "; ".join(f"{label} {of} {now}" for label, of, _, _, now in rows)
    sentence = language.gettext(
        "Last losses: %(losses)s.", losses=last or language.gettext("none has reported a step yet")
    )
    header = (
        language.gettext("Job"),
        language.gettext("Loss of"),
        language.gettext("First"),
        language.gettext("Lowest"),
        language.gettext("Last"),
    )
    return Chart(name, language.gettext("Loss"), Description(sentence, header, rows), draw, values, language)
