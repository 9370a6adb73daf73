"""Charts of several rounds: one column side by side, each model of each, and a cross-play as a heat map."""

import math
from collections.abc import Sequence
from typing import Any

from app.analysis.bootstrap import Figure
from app.analysis.chart import ROW, WIDTH, Chart, Description, Spec, ends, in_lines, tooltip, whiskers
from app.analysis.crossplay import CrossPlay
from app.analysis.rounds import RoundAnalysis
from app.analysis.themes import Palette
from app.analysis.wording import beside, number, signed, signed_beside
from app.errors import Invalid, Verbatim
from app.games import metrics_of
from app.games.metrics import MODEL_SCORE, POINTS, SHARE

_TITLE = 24  # letters in a line of the title of an axis that leaves room for the words of its rows


def compare(analyses: Sequence[RoundAnalysis], column: str | None = None) -> Chart:
    """One column of several rounds of a game; the one that says most, if none is named.

    Raises Invalid for rounds of several games, for no rounds, and for a column that there is not.
    """
    games = {each.game for each in analyses}
    if len(games) != 1:
        raise Invalid("rounds", expected="some of one game", got=Verbatim(" and ".join(sorted(games)) or "none"))
    defined = metrics_of(games.pop())
    metric = defined.columns.get(column or defined.headline.name)
    if metric is None:
        raise Invalid("column", expected=f"one of {', '.join(defined.columns)}", got=column)
    name, title, heading, unit = metric.name, metric.title, metric.heading, metric.unit
    figures = [each.metrics.columns.get(name, Figure(None)) for each in analyses]
    labels = [f"{each.round_id}: {each.name}" for each in analyses]
    values = [{"round": label, **ends(figure)} for label, figure in zip(labels, figures, strict=True)]

    def draw(colours: Palette) -> Spec:
        return _points(values, "round", title, unit, {"value": colours.second}, colours)

    listed = "; ".join(f"{label} {number(figure.value, unit)}" for label, figure in zip(labels, figures, strict=True))
    rows = [(label, number(each.value, unit), beside(each, unit)) for label, each in zip(labels, figures, strict=True)]
    description = Description(
        f"{heading} of {len(labels)} round{'' if len(labels) == 1 else 's'}: {listed}.",
        ("Round", heading, "95 % interval"),
        rows,
    )
    data = [
        {"round_id": each.round_id, "name": each.name, **figure._asdict()}
        for each, figure in zip(analyses, figures, strict=True)
    ]
    return Chart(f"compare-{name}".replace("_", "-"), f"{heading}, with 95 % intervals", description, draw, data)


def compare_models(analyses: Sequence[RoundAnalysis]) -> Chart | None:
    """Each model of each round by what says most of one; None where no round has two models."""
    if all(each.paired is None for each in analyses):
        return None
    metric = analyses[0].defined.model_headline
    name, title, unit = metric.name, metric.title, metric.unit
    found = [(each, who, figure) for each in analyses for who, figure in _models(each, name)]
    models = list(dict.fromkeys(who for _, who, _ in found))
    values = [{"who": f"{each.round_id}: {who}", "model": who, **ends(figure)} for each, who, figure in found]

    def draw(colours: Palette) -> Spec:
        colour = {
            "field": "model",
            "type": "nominal",
            "legend": None,
            "scale": {"domain": models, "range": [colours.players[place % 6] for place in range(len(models))]},
        }
        return _points(values, "who", title, unit, colour, colours)

    listed = "; ".join(f"round {each.round_id}: {who} {number(figure.value, unit)}" for each, who, figure in found)
    heading = f"{metric.heading} of each model"
    rows = [(str(each.round_id), who, number(figure.value, unit), beside(figure, unit)) for each, who, figure in found]
    data = [{"round_id": each.round_id, "model": who, **figure._asdict()} for each, who, figure in found]
    described = Description(f"{heading}. {listed}.", ("Round", "Model", heading, "95 % interval"), rows)
    return Chart(f"compare-models-{name}".replace("_", "-"), f"{heading}, with 95 % intervals", described, draw, data)


def _models(analysis: RoundAnalysis, name: str) -> list[tuple[str, Figure]]:
    """The models of a round with that figure; one that plays itself has the round's."""
    parts = [
        (part.player if part.role is None else f"{part.player} as {part.role}", part.columns.get(name, Figure(None)))
        for part in analysis.metrics.parts
    ]
    return parts or [(player, analysis.metrics.columns.get(name, Figure(None))) for player in analysis.players]


def compare_differences(analyses: Sequence[RoundAnalysis]) -> Chart | None:
    """What one model has over the other in each round of two models; None where there is none."""
    found = [(each, each.paired.columns[MODEL_SCORE.name]) for each in analyses if each.paired is not None]
    if not found:
        return None
    labels = [f"{each.round_id}: {each.paired.first} minus {each.paired.second}" for each, _ in found if each.paired]
    values = [{"round": label, **ends(figure)} for label, (_, figure) in zip(labels, found, strict=True)]

    def draw(colours: Palette) -> Spec:
        spec = _points(values, "round", "Difference", "points a match", {"value": colours.ink}, colours)
        # In two lines, as two names would leave little of a phone for the axis.
        words = "split(replace(datum.label, ' minus ', '\\nminus '), '\\n')"
        spec["encoding"]["y"]["axis"] = {"labelExpr": words, "labelOffset": -7}
        spec["height"] = (ROW + 8) * len(values)
        zero = {"x": {"datum": 0}, "y": None, "color": {"value": colours.strong}}
        spec["layer"].insert(0, {"mark": {"type": "rule", "strokeDash": [3, 3], "aria": False}, "encoding": zero})
        return spec

    listed = "; ".join(f"{label} {signed(each.value, POINTS)}" for label, (_, each) in zip(labels, found, strict=True))
    rows = [
        (label, signed(each.value, POINTS), signed_beside(each, POINTS), str(each.n))
        for label, (_, each) in zip(labels, found, strict=True)
    ]
    data = [
        {
            "round_id": each.round_id, "first": each.paired.first, "second": each.paired.second,
            "pairing": each.paired.pairing, **figure._asdict(),
        }
        for each, figure in found
        if each.paired
    ]  # fmt: skip
    described = Description(f"Paired differences: {listed}.", ("Round", "Difference", "95 % interval", "Pairs"), rows)
    return Chart("compare-differences", "Paired differences, with 95 % intervals", described, draw, data)


def _points(values: Sequence[Any], field: str, title: str, unit: str, colour: Spec, colours: Palette) -> Spec:
    """A point with whiskers a row."""
    share = unit == SHARE
    # Room on both sides keeps a point off the words of its row. These leave little for the axis on a phone, so that its
    # title may begin below them.
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "title": in_lines(title, unit, _TITLE),
        "scale": {"zero": share, "nice": False, "padding": 12},
        "axis": {"titleAnchor": "end", "tickCount": 5, "labelFlush": False, **({"format": ".0%"} if share else {})},
    }
    rows: Spec = {"field": field, "type": "nominal", "sort": None, "title": "Round"}
    hover = tooltip(field, "Round", ".1%" if share else ".2f")
    point = {"type": "point", "filled": True, "size": 90, "opacity": 1}
    return {
        "width": WIDTH - 160,
        "height": ROW * len(values),
        "data": {"values": list(values)},
        "encoding": {"y": rows},
        "layer": [*whiskers(colours, values), {"mark": point, "encoding": {"x": x, "color": colour, "tooltip": hover}}],
    }


# ---- Cross-play -------------------------------------------------------------------


def cross_plays(matrix: CrossPlay) -> list[Chart]:
    """A heat map of mean scores, one a role where roles differ."""
    return [_heat_map(matrix, role) for role in matrix.roles]


def _steps(low: float, high: float) -> tuple[float, float]:
    """Where the first of seven colours begins and how far each goes, in numbers that a legend can say shortly."""
    high = high if high > low else low + 1
    power = 10.0 ** max(-2, math.floor(math.log10((high - low) / 7)))

    def first(step: float) -> float:
        return round(math.floor(low / step + 1e-9) * step, 6)

    steps = (part * power for part in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 20))
    step = next(each for each in steps if first(each) + 7 * each >= high - 1e-6)
    return first(step), step


def _heat_map(matrix: CrossPlay, role: str | None) -> Chart:
    found = [each for each in matrix.cells if each.role == role]
    scores = [each.score.value for each in found if each.score.value is not None]
    low, step = _steps(min(scores, default=0), max(scores, default=0))
    scale = {"type": "quantize", "domain": [low, low + 7 * step]}
    half = low + 4 * step  # from the fifth of seven colours on, dark ink would not be read
    values = [{"row": each.row, "column": each.column, "matches": each.matches, **ends(each.score)} for each in found]
    axis: Spec = {"type": "nominal", "sort": list(matrix.players), "scale": {"domain": list(matrix.players)}}
    who = "Model" if role is None else f"Model as {role}"

    def draw(colours: Palette) -> Spec:
        colour = {
            "field": "value",
            "type": "quantitative",
            "scale": {**scale, "range": list(colours.scale)},
            "legend": {"title": "Points", "format": ".2~f"},
        }
        ink = {
            "condition": {"test": {"field": "value", "gte": half}, "value": colours.on_much},
            "value": colours.on_little,
        }
        return {
            "width": {"step": 84},
            "height": {"step": 44},
            "data": {"values": values},
            "encoding": {
                "y": {"field": "row", "title": who, **axis},
                "x": {"field": "column", "title": "Against", "axis": {"labelAngle": 0, "orient": "top"}, **axis},
                "tooltip": [
                    {"field": "row", "title": who},
                    {"field": "column", "title": "Against"},
                    {"field": "matches", "title": "Matches"},
                    *tooltip("row", who, ".2f")[1:],
                ],
            },
            "layer": [
                {"mark": {"type": "rect", "stroke": colours.surface, "strokeWidth": 2}, "encoding": {"color": colour}},
                {
                    "mark": {"type": "text"},
                    "encoding": {"text": {"field": "value", "type": "quantitative", "format": ".2f"}, "color": ink},
                },
            ],
        }

    title = "Cross-play: mean scores" + ("" if role is None else f" as {role}")
    sentence = f"{title} of {len(matrix.players)} models against each other, {matrix.matches} matches."
    if scores:
        best = max(found, key=lambda each: -float("inf") if each.score.value is None else each.score.value)
        sentence += f" The highest is {number(best.score.value, POINTS)} of {best.row} against {best.column}."
    rows = [
        (each.row, each.column, str(each.matches), number(each.score.value, POINTS), beside(each.score, POINTS))
        for each in found
    ]
    data = [{"row": each.row, "column": each.column, "role": each.role, **each.score._asdict()} for each in found]
    description = Description(sentence, (who, "Against", "Matches", "Mean score", "95 % interval"), rows)
    name = "-".join(["cross-play", str(matrix.matrix_id), *([role] if role else [])])
    return Chart(name, title, description, draw, data)
