"""The figure of a campaign: what its models have come to, by iteration, in panels side by side with 95 % intervals.

Source: Liao, Tomlin & Klein 2024, arXiv 2406.18872, whose figures of negotiation have these panels.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.analysis import columns
from app.analysis.campaigns import COLUMNS, in_words
from app.analysis.chart import Chart, Description, Spec
from app.analysis.columns import MOVES, POINTS, SHARE, TIMES, TURNS, number
from app.analysis.themes import Palette

PANEL_WIDTH, PANEL_HEIGHT = 300, 190  # pixels; a page may take another width
_DODGE = 90  # lines of a panel stand apart by this part of all iterations, so that no whisker hides another
_UNITS = {POINTS: "Points", SHARE: "Share of games", MOVES: "Accepted moves", TURNS: "Turns", TIMES: "Times"}


AS_PLAYED = "as played"  # what the first evaluation is called beside others


class Point(NamedTuple):
    """A model of a campaign, by the number of its iteration, with the figures of its evaluation by column.

    `further` has those of its further evaluations, by their labels.
    """

    iteration: int
    model: str
    figures: Mapping[str, Mapping[str, Any]]
    further: Mapping[str, Mapping[str, Mapping[str, Any]]] = {}

    def figure(self, column: str) -> Mapping[str, Any]:
        """A figure by its column, or by LABEL/COLUMN for that of a further evaluation; empty where there is none."""
        label, _, name = column.rpartition("/")
        return (self.further.get(label, {}) if label else self.figures).get(name) or {}


class _Panel(NamedTuple):
    title: str
    unit: str
    lines: Mapping[str, str]  # by column, what the legend calls it
    compared: bool = False  # whether its one line has others beside it, one for each further evaluation
    alone: bool = True  # whether it is there without these


_PANELS: Mapping[str, Sequence[_Panel]] = {
    "negotiation": (
        _Panel("Mean score", POINTS, {"score_mean": "mean score"}, compared=True),
        _Panel("Agreement", SHARE, {"agreement_rate": "agreement"}, compared=True),
        _Panel("Pareto-optimal deals", SHARE, {"agreed_pareto_rate": "of agreed games", "pareto_rate": "of all games"}),
        _Panel("Length of matches", MOVES, {"messages_mean": "length"}),
        _Panel("Mean score ÷ the base's", TIMES, {"score_ratio": AS_PLAYED}, compared=True),
        _Panel("Deals never said in the talk", SHARE, {"unspoken_rate": AS_PLAYED}, compared=True),
    ),
    "taboo": (
        _Panel(
            "How games ended",
            SHARE,
            {
                "attacker_wins_rate": "attacker wins",
                "defender_wins_rate": "defender wins",
                "tied_rate": "tied",
                "rules_broken_rate": "rules broken",
            },
        ),
        _Panel("Turns of the attacker", TURNS, {"turns_mean": "turns"}),
        _Panel("Mean scores", POINTS, {"attacker_score_mean": "attacker", "defender_score_mean": "defender"}),
        _Panel("Games won as attacker", SHARE, {"attacker_wins_rate": AS_PLAYED}, compared=True, alone=False),
        _Panel("Games won as defender", SHARE, {"defender_wins_rate": AS_PLAYED}, compared=True, alone=False),
    ),
}


def _panels(game: str, points: Sequence[Point]) -> Sequence[_Panel]:
    """The panels of a game; where models were evaluated in further ways, these have lines beside the first one."""
    labels = list(dict.fromkeys(label for each in points for label in each.further))
    wanted = [each for each in _PANELS[game] if labels or each.alone]
    panels = [each._replace(lines=_with_further(each, labels)) for each in wanted]
    return [each for each in panels if any(point.figure(column) for column in each.lines for point in points)]


def _with_further(panel: _Panel, labels: Sequence[str]) -> Mapping[str, str]:
    if not labels or not panel.compared:
        return panel.lines
    [column] = panel.lines
    return {column: AS_PLAYED, **{f"{label}/{column}": label for label in labels}}


def references(game: str, lam: float | None) -> Sequence[tuple[float, str]]:
    """Scores to compare a player's mean with: of two who split at random, and of two who find the best joint deal.

    They are means over the published contexts; with λ = 1 both players score what both get together.
    """
    if game != "negotiation" or lam not in (0, 1):
        return ()
    scale = 1 + lam
    return (5.0 * scale, "random complementary split"), (7.5 * scale, "best joint score")


def figure(
    name: str, called: str, game: str, lam: float | None, iterations: int, points: Sequence[Point]
) -> Chart | None:
    """The figure of a campaign of so many `iterations`, as far as they were evaluated; None before the first was."""
    if not points:
        return None

    def draw(colours: Palette) -> Spec:
        panels = [_panel(each, colours, iterations, points) for each in _panels(game, points)]
        panels[0]["layer"] = [*_reference_lines(references(game, lam), colours, points), *panels[0]["layer"]]
        own = {"color": "independent", "shape": "independent"}
        return {"columns": 2, "spacing": 36, "resolve": {"scale": own}, "concat": panels}

    shown = COLUMNS[game]
    rows = [
        (
            str(each.iteration),
            each.model,
            label or AS_PLAYED,
            *(in_words(figures.get(key), shown[key].unit) for key in shown),
        )
        for each in points
        for label, figures in (("", each.figures), *each.further.items())
    ]
    header = ("Iteration", "Model", "Evaluated", *(column.title for column in shown.values()))
    title = f"Models of {called} by iteration, with 95 % intervals"
    sentence = " ".join([_sentence(called, game, points), *_reference_words(references(game, lam))])
    data = [
        {"iteration": each.iteration, "model": each.model, "column": key, **found}
        for each in points
        for key in shown
        if (found := each.figures.get(key)) is not None
    ]
    return Chart(name, title, Description(sentence, header, rows), draw, data)


def _sentence(called: str, game: str, points: Sequence[Point]) -> str:
    """The first panel's lines in words: from the base to the latest model."""
    first, last = points[0], points[-1]
    unit, lines = _PANELS[game][0].unit, _PANELS[game][0].lines
    told = []
    for column in lines:
        title = columns.GAMES[game][column].title
        begun, come = (number((each.figures.get(column) or {}).get("value"), unit) for each in (first, last))
        told.append(f"{title} {come}" if first is last else f"{title} {begun} at first, {come} now")
    after = len(points) - 1
    so_far = f"{after} iteration{'s'[: after > 1]} after the base" if after else "the base alone"
    return f"{called[0].upper()}{called[1:]}, {so_far}: {'; '.join(told)}."


# ---- Panels ----------------------------------------------------------------------


def _panel(panel: _Panel, colours: Palette, iterations: int, points: Sequence[Point]) -> Spec:
    labels = list(panel.lines.values())
    legend = {"orient": "bottom", "direction": "horizontal", "columns": 2, "title": None, "symbolSize": 70}
    line: Spec = {"field": "line", "type": "nominal", "legend": legend if len(labels) > 1 else None}
    colour = {**line, "scale": {"domain": labels, "range": _line_colours(colours, len(labels))}}
    shape = {**line, "scale": {"domain": labels}} if len(labels) > 1 else {"value": "circle"}
    x, y = _axes(panel, iterations)
    values = _values(panel, iterations, points)
    intervals = {
        "transform": [{"filter": {"field": "low", "valid": True}}],
        "mark": {"type": "rule", "strokeWidth": 1.5},
        "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
    }
    return {
        "title": {"text": panel.title, "fontSize": 13, "offset": 8, "frame": "group"},
        "width": PANEL_WIDTH,
        "height": PANEL_HEIGHT,
        "data": {"values": values},
        "encoding": {"x": x, "y": y, "color": colour},
        "layer": [
            *([intervals] if any(row["low"] is not None for row in values) else []),  # Vega warns of a layer of none
            {"mark": {"type": "line", "strokeWidth": 2}},
            {
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                "encoding": {"shape": shape, "tooltip": _hover(panel)},
            },
        ],
    }


def _axes(panel: _Panel, iterations: int) -> tuple[Spec, Spec]:
    """Iterations, as many as there will be, and what is measured, from 0."""
    x: Spec = {
        "field": "at",
        "type": "quantitative",
        "title": "Iteration",
        "scale": {"domain": [0, max(1, iterations)], "nice": False, "zero": False, "padding": 12},
        "axis": {"format": "d", "tickMinStep": 1, "tickCount": min(10, max(1, iterations))},
    }
    y: Spec = {"field": "value", "type": "quantitative", "title": _UNITS[panel.unit], "scale": {"zero": True}}
    if panel.unit == SHARE:
        y |= {"scale": {"domain": [0, 1]}, "axis": {"format": ".0%", "tickCount": 5}}
    return x, y


def _hover(panel: _Panel) -> Sequence[Spec]:
    form = ".1%" if panel.unit == SHARE else ".2f"
    numbers = [("value", "Value"), ("low", "95 % from"), ("high", "95 % to")]
    return [
        {"field": "iteration", "title": "Iteration"},
        {"field": "model", "title": "Model"},
        *({"field": field, "title": title, "type": "quantitative", "format": form} for field, title in numbers),
        {"field": "n", "title": "n"},
    ]


def _values(panel: _Panel, iterations: int, points: Sequence[Point]) -> Sequence[Spec]:
    middle = (len(panel.lines) - 1) / 2
    return [
        {
            "iteration": each.iteration,
            "model": each.model,
            "line": label,
            "at": each.iteration + (place - middle) * max(1, iterations) / _DODGE,
            **each.figure(column),
        }
        for place, (column, label) in enumerate(panel.lines.items())
        for each in points
        if each.figure(column).get("value") is not None
    ]


def _line_colours(colours: Palette, lines: int) -> Sequence[str]:
    """The two players' own colours where there are two and more; the usual one of charts for a line alone."""
    return colours.players[:lines] if lines > 1 else [colours.second]


def _reference_lines(found: Sequence[tuple[float, str]], colours: Palette, points: Sequence[Point]) -> Sequence[Spec]:
    """Dashed lines of the first panel, each with its words on the side that the latest models are not on."""
    latest = (points[-1].figures.get("score_mean") or {}).get("value") or 0.0
    layers: list[Spec] = []
    for score, text in found:
        y = {"field": "score", "type": "quantitative"}
        above = score >= latest
        words: Spec = {"type": "text", "align": "right", "baseline": "bottom" if above else "top", "fontSize": 11}
        right = {"x": {"value": "width"}, "color": {"value": colours.soft}}
        layers += [
            {
                "data": {"values": [{"score": score, "text": f"{score:.1f}: {text}"}]},
                "mark": mark,
                "encoding": {"y": y, **more},
            }
            for mark, more in (
                ({"type": "rule", "strokeDash": [5, 4], "stroke": colours.strong}, {"x": None, "color": None}),
                ({**words, "dy": -2 if above else 3}, {**right, "text": {"field": "text"}}),
            )
        ]
    return layers


def _reference_words(found: Sequence[tuple[float, str]]) -> Sequence[str]:
    if not found:
        return ()
    told = "; ".join(f"{score:.1f}, {text}" for score, text in found)
    return (f"Dashed lines of the first panel: {told}.",)
