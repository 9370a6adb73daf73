"""The chart of a campaign: the results of its models by iteration, in panels side by side with 95 % intervals.

Source: Liao, Tomlin & Klein 2024, arXiv 2406.18872, whose figures of negotiation have these panels.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.analysis.chart import Chart, Description, Spec, intervals
from app.analysis.language import ENGLISH, Language
from app.analysis.themes import Palette
from app.analysis.wording import in_words, number
from app.games import metrics_of
from app.games.metrics import AS_PLAYED, MOVES, POINTS, SHARE, TIMES, TURNS, Metric, Panel, Use

PANEL_WIDTH, PANEL_HEIGHT = 300, 190  # pixels; a page may take another width
# Distinguish lines without their colours, in addition to the shapes of their points.
_DASHES = ([1, 0], [6, 4], [2, 3], [10, 3, 2, 3], [14, 5], [4, 2])
_DODGE = 90  # lines of a panel are offset by all iterations divided by this, so that no whisker hides another


class Point(NamedTuple):
    """A model of a campaign, by its iteration number, with the figures of its evaluation by column.

    `further` has the figures of its further evaluations, by label.
    """

    iteration: int
    model: str
    figures: Mapping[str, Mapping[str, Any]]
    further: Mapping[str, Mapping[str, Mapping[str, Any]]] = {}

    def figure(self, column: str) -> Mapping[str, Any]:
        """A figure by its column, or by LABEL/COLUMN for that of a further evaluation; empty where there is none."""
        label, _, name = column.rpartition("/")
        return (self.further.get(label, {}) if label else self.figures).get(name) or {}


class DrawnPanel(NamedTuple):
    """A panel with its lines: their names in the legend by column, or by LABEL/COLUMN of a further evaluation."""

    panel: Panel
    unit: str
    lines: Mapping[str, str]

    @property
    def title(self) -> str:
        return self.panel.title


def _panels(game: str, points: Sequence[Point]) -> Sequence[DrawnPanel]:
    """The panels of a game; further evaluations of the models have lines beside the first one."""
    labels = list(dict.fromkeys(label for each in points for label in each.further))
    panels = [_with_further(each, labels) for each in panels_of(game) if labels or each.panel.alone]
    return [each for each in panels if any(point.figure(column) for column in each.lines for point in points)]


def panels_of(game: str) -> list[DrawnPanel]:
    """All panels of a game's metrics, in reading order; those shown only with further evaluations come last."""
    found: dict[Panel, DrawnPanel] = {}
    for metric in metrics_of(game).ranked:
        for panel, label in metric.lines:
            before = found.get(panel, DrawnPanel(panel, metric.unit, {}))
            found[panel] = before._replace(lines={**before.lines, metric.name: label})
    return sorted(found.values(), key=lambda each: not each.panel.alone)


def _with_further(drawn: DrawnPanel, labels: Sequence[str]) -> DrawnPanel:
    if not labels or not drawn.panel.compared:
        return drawn
    [column] = drawn.lines
    return drawn._replace(lines={column: AS_PLAYED, **{f"{label}/{column}": label for label in labels}})


def references(game: str, figures: Mapping[str, Any]) -> Sequence[tuple[float, str]]:
    """The values to compare a game's headline with, measured in the same matches; without unmeasured ones."""
    columns = metrics_of(game).columns
    found = ((figures.get(name) or {}, columns[name].title) for name in metrics_of(game).headline.references)
    return [(figure["value"], title) for figure, title in found if figure.get("value") is not None]


def figure(
    name: str,
    called: str,
    game: str,
    iterations: int,
    points: Sequence[Point],
    language: Language = ENGLISH,
) -> Chart | None:
    """The figure of a campaign of `iterations`, as far as they are evaluated; None before the first evaluation."""
    if not points:
        return None
    compared = references(game, points[-1].figures)

    def draw(colours: Palette) -> Spec:
        panels = [_panel_spec(each, colours, iterations, points, language) for each in _panels(game, points)]
        if panels:
            panels[0]["layer"] = [
                *_reference_lines(compared, colours, points, score, language),
                *panels[0]["layer"],
            ]
        own = {"color": "independent", "shape": "independent", "strokeDash": "independent"}
        return {"columns": 2, "spacing": 36, "resolve": {"scale": own}, "concat": panels}

    shown = {each.name: each for each in metrics_of(game).shown(Use.EVALUATION)}
    score = metrics_of(game).headline.name
    rows = [
        (
            str(each.iteration),
            each.model,
            _line_name(label or AS_PLAYED, language),
            *(in_words(figures.get(key), shown[key].unit, language) for key in shown),
        )
        for each in points
        for label, figures in (("", each.figures), *each.further.items())
    ]
    header = (
        language.gettext("Iteration"),
        language.gettext("Model"),
        language.gettext("Evaluated"),
        *(language.translate(metric.heading) for metric in shown.values()),
    )
    title = language.gettext("Models of %(campaign)s by iteration, with 95 %% intervals", campaign=called)
    sentence = " ".join([_first_panel_in_words(called, game, points, language), *_reference_words(compared, language)])
    data = [
        {"iteration": each.iteration, "model": each.model, "column": key, **found}
        for each in points
        for key in shown
        if (found := each.figures.get(key)) is not None
    ]
    return Chart(name, title, Description(sentence, header, rows), draw, data, language)


def _first_panel_in_words(called: str, game: str, points: Sequence[Point], language: Language) -> str:
    """The first panel's lines in words: from the base to the latest model."""
    first, last = points[0], points[-1]
    sentences = []
    for name, metric in _of_first_panel(game).items():
        begun, come = (number(each.figure(name).get("value"), metric.unit, language) for each in (first, last))
        title = language.translate(metric.heading)
        sentences.append(
            f"{title} {come}"
            if first is last
            else language.gettext("%(figure)s %(before)s at first, %(now)s now", figure=title, before=begun, now=come)
        )
    after = len(points) - 1
    so_far = (
        language.gettext("the base alone")
        if not after
        else language.gettext("1 iteration after the base")
        if after == 1
        else language.gettext("%(number)s iterations after the base", number=after)
    )
    return f"{called[0].upper()}{called[1:]}, {so_far}: {'; '.join(sentences)}."


def _of_first_panel(game: str) -> dict[str, Metric]:
    return {name: metrics_of(game).everything[name] for panel in panels_of(game)[:1] for name in panel.lines}


# ---- Panels ----------------------------------------------------------------------


def _panel_spec(
    panel: DrawnPanel, colours: Palette, iterations: int, points: Sequence[Point], language: Language
) -> Spec:
    labels = [_line_name(label, language) for label in panel.lines.values()]
    legend = {"orient": "bottom", "direction": "horizontal", "columns": 2, "title": None, "symbolSize": 70}
    legend |= {"symbolStrokeWidth": 0}
    line: Spec = {"field": "line", "type": "nominal", "legend": legend if len(labels) > 1 else None}
    colour = {**line, "scale": {"domain": labels, "range": _line_colours(colours, len(labels))}}
    dash = {**line, "scale": {"domain": labels, "range": [*_DASHES[: len(labels)]]}}
    shape = {**line, "scale": {"domain": labels}} if len(labels) > 1 else {"value": "circle"}
    x, y = _axes(panel, iterations, language)
    values = _value_marks(panel, iterations, points, language)
    intervals = {
        "transform": [{"filter": {"field": "low", "valid": True}}],
        "mark": {"type": "rule", "strokeWidth": 1.5},
        "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
    }
    return {
        "title": {"text": language.translate(panel.title), "fontSize": 13, "offset": 8, "frame": "group"},
        "width": PANEL_WIDTH,
        "height": PANEL_HEIGHT,
        "data": {"values": values},
        "encoding": {"x": x, "y": y, "color": colour},
        "layer": [
            *([intervals] if any(row["low"] is not None for row in values) else []),  # Vega warns about an empty layer
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"strokeDash": dash}},
            {
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                "encoding": {"shape": shape, "tooltip": _hover(panel, language)},
            },
        ],
    }


def _axes(panel: DrawnPanel, iterations: int, language: Language) -> tuple[Spec, Spec]:
    """The axes: all planned iterations, and the measured values from 0."""
    x: Spec = {
        "field": "at",
        "type": "quantitative",
        "title": language.gettext("Iteration"),
        "scale": {"domain": [0, max(1, iterations)], "nice": False, "zero": False, "padding": 12},
        "axis": {"format": "d", "tickMinStep": 1, "tickCount": min(10, max(1, iterations))},
    }
    y: Spec = {
        "field": "value",
        "type": "quantitative",
        "title": _axis_title(panel.unit, language),
        "scale": {"zero": True},
    }
    if panel.unit == SHARE:
        y |= {"scale": {"domain": [0, 1]}, "axis": {"format": ".0%", "tickCount": 5}}
    return x, y


def _line_name(label: str, language: Language) -> str:
    """The name of a line or further evaluation; one against a player is named after the player."""
    manner, _, value = label.partition(" ")
    if manner == "against":
        return language.gettext("against %(model)s", model=value)
    if manner == "temperature":
        return language.gettext("at temperature %(temperature)s", temperature=language.shortest(float(value)))
    return language.translate(label)


def _axis_title(unit: str, language: Language) -> str:
    """The title of an axis with this unit."""
    known = {
        POINTS: language.gettext("Points"),
        SHARE: language.gettext("Share of games"),
        MOVES: language.gettext("Accepted moves"),
        TURNS: language.gettext("Turns"),
        TIMES: language.gettext("Times"),
    }
    return known.get(unit) or language.translate(unit)


def _hover(panel: DrawnPanel, language: Language) -> Sequence[Spec]:
    return [
        {"field": "iteration", "title": language.gettext("Iteration")},
        {"field": "model", "title": language.gettext("Model")},
        *intervals(".1%" if panel.unit == SHARE else ".2f", language),
    ]


def _value_marks(panel: DrawnPanel, iterations: int, points: Sequence[Point], language: Language) -> Sequence[Spec]:
    middle = (len(panel.lines) - 1) / 2
    return [
        {
            "iteration": each.iteration,
            "model": each.model,
            "line": _line_name(label, language),
            "at": each.iteration + (place - middle) * max(1, iterations) / _DODGE,
            **each.figure(column),
        }
        for place, (column, label) in enumerate(panel.lines.items())
        for each in points
        if each.figure(column).get("value") is not None
    ]


def _line_colours(colours: Palette, lines: int) -> Sequence[str]:
    """The players' colours for two lines or more; the usual chart colour for a single line."""
    return colours.players[:lines] if lines > 1 else [colours.second]


def _reference_lines(
    found: Sequence[tuple[float, str]], colours: Palette, points: Sequence[Point], column: str, language: Language
) -> Sequence[Spec]:
    """The dashed lines of the first panel, each with its label on the side away from the latest models."""
    latest = (points[-1].figures.get(column) or {}).get("value") or 0.0
    layers: list[Spec] = []
    for score, known in found:
        text = language.translate(known)
        y = {"field": "score", "type": "quantitative"}
        above = score >= latest
        words: Spec = {"type": "text", "align": "right", "baseline": "bottom" if above else "top", "fontSize": 11}
        right = {"x": {"value": "width"}, "color": {"value": colours.soft}}
        layers += [
            {
                "data": {"values": [{"score": score, "text": f"{language.decimals(score, 1)}: {text}"}]},
                "mark": mark,
                "encoding": {"y": y, **more},
            }
            for mark, more in (
                ({"type": "rule", "strokeDash": [5, 4], "stroke": colours.strong}, {"x": None, "color": None}),
                ({**words, "dy": -2 if above else 3}, {**right, "text": {"field": "text"}}),
            )
        ]
    return layers


def _reference_words(found: Sequence[tuple[float, str]], language: Language) -> Sequence[str]:
    if not found:
        return ()
    lines = "; ".join(f"{language.decimals(score, 1)}, {language.translate(text)}" for score, text in found)
    return (language.gettext("Dashed lines of the first panel: %(lines)s.", lines=lines),)
