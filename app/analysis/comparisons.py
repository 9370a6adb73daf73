"""Charts of several rounds: one column side by side, each model of each, and a cross-play as a heat map."""

import math
from collections.abc import Sequence
from typing import Any

from app.analysis.bootstrap import Figure
from app.analysis.chart import ROW, WIDTH, Chart, Description, Spec, ends, in_lines, intervals, tooltip, whiskers
from app.analysis.crossplay import CrossPlay
from app.analysis.language import ENGLISH, Language
from app.analysis.rounds import RoundAnalysis
from app.analysis.themes import Palette
from app.analysis.wording import beside, number, signed, signed_beside
from app.core.errors import Invalid, Verbatim
from app.games import metrics_of
from app.games.metrics import MODEL_SCORE, POINTS, SHARE

TITLE_LETTERS = 24  # letters per title line of an axis that leaves room for its row labels


def compare(analyses: Sequence[RoundAnalysis], column: str | None = None, language: Language = ENGLISH) -> Chart:
    """One column of several rounds of a game; the headline if none is named.

    Raises Invalid for rounds of several games, for no rounds, and for an unknown column.
    """
    games = {each.game for each in analyses}
    if len(games) != 1:
        raise Invalid("rounds", expected="some of one game", got=Verbatim(" and ".join(sorted(games)) or "none"))
    defined = metrics_of(games.pop())
    metric = defined.columns.get(column or defined.headline.name)
    if metric is None:
        raise Invalid("column", expected=f"one of {', '.join(defined.columns)}", got=column)
    name, heading, unit = metric.name, language.translate(metric.heading), metric.unit
    figures = [each.metrics.columns.get(name, Figure(None)) for each in analyses]
    labels = [f"{each.round_id}: {each.name}" for each in analyses]
    values = [{"round": label, **ends(figure)} for label, figure in zip(labels, figures, strict=True)]

    def draw(colours: Palette) -> Spec:
        title = _axis_title_lines(heading, unit, language)
        return points_with_whiskers(
            values, "round", title, {"value": colours.second}, colours, language, share=unit == SHARE
        )

    rows = [
        (label, number(each.value, unit, language), beside(each, unit, language))
        for label, each in zip(labels, figures, strict=True)
    ]
    sentence = language.gettext(
        "%(figure)s of %(rounds)s: %(figures)s.",
        figure=heading,
        rounds=language.gettext("1 round")
        if len(labels) == 1
        else language.gettext("%(number)s rounds", number=len(labels)),
        figures="; ".join(f"{label} {figure}" for label, figure, _ in rows),
    )
    header = (language.gettext("Round"), heading, language.gettext("95 %% interval"))
    described = Description(sentence, header, rows)
    data = [
        {"round_id": each.round_id, "name": each.name, **figure._asdict()}
        for each, figure in zip(analyses, figures, strict=True)
    ]
    title = language.gettext("%(figure)s, with 95 %% intervals", figure=heading)
    return Chart(f"compare-{name}".replace("_", "-"), title, described, draw, data, language)


def compare_models(analyses: Sequence[RoundAnalysis], language: Language = ENGLISH) -> Chart | None:
    """Each model of each round by the headline metric of models; None where no round has two models."""
    if all(each.paired is None for each in analyses):
        return None
    metric = analyses[0].defined.model_headline
    name, heading, unit = metric.name, language.translate(metric.heading), metric.unit
    found = [(each, who, figure) for each in analyses for who, figure in _model_figures(each, name, language)]
    models = list(dict.fromkeys(who for _, who, _ in found))
    values = [{"who": f"{each.round_id}: {who}", "model": who, **ends(figure)} for each, who, figure in found]

    def draw(colours: Palette) -> Spec:
        colour = {
            "field": "model",
            "type": "nominal",
            "legend": None,
            "scale": {"domain": models, "range": [colours.players[place % 6] for place in range(len(models))]},
        }
        title = _axis_title_lines(heading, unit, language)
        return points_with_whiskers(values, "who", title, colour, colours, language, share=unit == SHARE)

    rows = [
        (str(each.round_id), who, number(figure.value, unit, language), beside(figure, unit, language))
        for each, who, figure in found
    ]
    of_each = language.gettext("%(figure)s of each model", figure=heading)
    listed = "; ".join(
        f"{language.gettext('round %(number)s', number=round_id)}: {who} {figure}" for round_id, who, figure, _ in rows
    )
    header = (
        language.gettext("Round"),
        language.gettext("Model"),
        of_each,
        language.gettext("95 %% interval"),
    )
    data = [{"round_id": each.round_id, "model": who, **figure._asdict()} for each, who, figure in found]
    title = language.gettext("%(figure)s, with 95 %% intervals", figure=of_each)
    described = Description(f"{of_each}. {listed}.", header, rows)
    return Chart(f"compare-models-{name}".replace("_", "-"), title, described, draw, data, language)


def _model_figures(analysis: RoundAnalysis, name: str, language: Language) -> list[tuple[str, Figure]]:
    """The models of a round with that figure; one that plays itself has the round's."""
    parts = [
        (_in_role(language.player(part.player), part.role, language), part.columns.get(name, Figure(None)))
        for part in analysis.metrics.parts
    ]
    whole = analysis.metrics.columns.get(name, Figure(None))
    return parts or [(language.player(player), whole) for player in analysis.players]


def _in_role(model: str, role: str | None, language: Language) -> str:
    """The name of a model in a role, if roles differ."""
    if role is None:
        return model
    return language.gettext("%(model)s as %(role)s", model=model, role=language.translate(role))


def compare_differences(analyses: Sequence[RoundAnalysis], language: Language = ENGLISH) -> Chart | None:
    """The lead of one model over the other in each round of two models; None if there is no such round."""
    found = [(each, each.paired, each.paired.columns[MODEL_SCORE.name]) for each in analyses if each.paired is not None]
    if not found:
        return None
    # Two lines, because two names would leave the axis little room on a phone.
    lines = [
        f"{each.round_id}: "
        + language.gettext("%(first)s minus %(second)s", first=f"{versus.first}\n", second=versus.second)
        for each, versus, _ in found
    ]
    labels = [each.replace("\n", "") for each in lines]
    values = [{"round": label, **ends(figure)} for label, (_, _, figure) in zip(lines, found, strict=True)]
    heading = language.gettext("Difference")

    def draw(colours: Palette) -> Spec:
        unit = language.gettext("points per match")
        spec = points_with_whiskers(
            values, "round", in_lines(heading, unit, TITLE_LETTERS), {"value": colours.ink}, colours, language
        )
        spec["encoding"]["y"]["axis"] = {"labelExpr": "split(datum.label, '\\n')", "labelOffset": -7}
        spec["height"] = (ROW + 8) * len(values)
        zero = {"x": {"datum": 0}, "y": None, "color": {"value": colours.strong}}
        spec["layer"].insert(0, {"mark": {"type": "rule", "strokeDash": [3, 3], "aria": False}, "encoding": zero})
        return spec

    rows = [
        (label, signed(each.value, POINTS, language), signed_beside(each, POINTS, language), str(each.n))
        for label, (_, _, each) in zip(labels, found, strict=True)
    ]
    data = [
        {
            "round_id": each.round_id, "first": versus.first, "second": versus.second,
            "pairing": versus.pairing, **figure._asdict(),
        }
        for each, versus, figure in found
    ]  # fmt: skip
    listed = "; ".join(f"{label} {difference}" for label, difference, *_ in rows)
    sentence = language.gettext("Paired differences: %(differences)s.", differences=listed)
    header = (
        language.gettext("Round"),
        heading,
        language.gettext("95 %% interval"),
        language.gettext("Pairs"),
    )
    title = language.gettext("Paired differences, with 95 %% intervals")
    return Chart("compare-differences", title, Description(sentence, header, rows), draw, data, language)


def _axis_title_lines(heading: str, unit: str, language: Language) -> list[str]:
    """The title of an axis, short enough to leave room for the row labels."""
    return in_lines(heading, language.translate(unit), TITLE_LETTERS)


def points_with_whiskers(
    values: Sequence[Any],
    field: str,
    title: Sequence[str],
    colour: Spec,
    colours: Palette,
    language: Language,
    *,
    share: bool = False,
    rows_title: str = "",
) -> Spec:
    """A point with whiskers for each row, which is a round unless `rows_title` names something else."""
    # Padding on both sides keeps points off their row labels. These leave little room for the axis on a phone, so its
    # title may begin below them.
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "title": title,
        "scale": {"zero": share, "nice": False, "padding": 12},
        "axis": {"titleAnchor": "end", "tickCount": 5, "labelFlush": False, **({"format": ".0%"} if share else {})},
    }
    of_rows = rows_title or language.gettext("Round")
    rows: Spec = {"field": field, "type": "nominal", "sort": None, "title": of_rows}
    hover = tooltip(field, of_rows, ".1%" if share else ".2f", language)
    point = {"type": "point", "filled": True, "size": 90, "opacity": 1}
    return {
        "width": WIDTH - 160,
        "height": ROW * len(values),
        "data": {"values": list(values)},
        "encoding": {"y": rows},
        "layer": [*whiskers(colours, values), {"mark": point, "encoding": {"x": x, "color": colour, "tooltip": hover}}],
    }


# ---- Cross-play -------------------------------------------------------------------


def cross_plays(matrix: CrossPlay, language: Language = ENGLISH) -> list[Chart]:
    """Heat maps of mean scores, one for each role where roles differ."""
    return [_heat_map(matrix, role, language) for role in matrix.roles]


def _colour_scale_steps(low: float, high: float) -> tuple[float, float]:
    """The start of the first of seven colours and the width of each, in numbers that are short in a legend."""
    high = high if high > low else low + 1
    power = 10.0 ** max(-2, math.floor(math.log10((high - low) / 7)))

    def first(step: float) -> float:
        return round(math.floor(low / step + 1e-9) * step, 6)

    steps = (part * power for part in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 20))
    step = next(each for each in steps if first(each) + 7 * each >= high - 1e-6)
    return first(step), step


def _heat_map(matrix: CrossPlay, role: str | None, language: Language) -> Chart:
    found = [each for each in matrix.cells if each.role == role]
    scores = [each.score.value for each in found if each.score.value is not None]
    low, step = _colour_scale_steps(min(scores, default=0), max(scores, default=0))
    scale = {"type": "quantize", "domain": [low, low + 7 * step]}
    half = low + 4 * step  # dark ink would be unreadable from the fifth of seven colours on
    values = [{"row": each.row, "column": each.column, "matches": each.matches, **ends(each.score)} for each in found]
    axis: Spec = {"type": "nominal", "sort": list(matrix.players), "scale": {"domain": list(matrix.players)}}
    who, against = _in_role(language.gettext("Model"), role, language), language.gettext("Against")

    def draw(colours: Palette) -> Spec:
        colour = {
            "field": "value",
            "type": "quantitative",
            "scale": {**scale, "range": list(colours.scale)},
            "legend": {"title": language.gettext("Points"), "format": ".2~f"},
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
                "x": {"field": "column", "title": against, "axis": {"labelAngle": 0, "orient": "top"}, **axis},
                "tooltip": [
                    {"field": "row", "title": who},
                    {"field": "column", "title": against},
                    {"field": "matches", "title": language.gettext("Matches")},
                    *intervals(".2f", language),
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

    title = _in_role(language.gettext("Cross-play: mean scores"), role, language)
    sentence = language.gettext(
        "%(title)s of %(models)s models against each other, %(matches)s matches.",
        title=title,
        models=len(matrix.players),
        matches=matrix.matches,
    )
    if scores:
        best = max(found, key=lambda each: -float("inf") if each.score.value is None else each.score.value)
        highest = language.gettext(
            "The highest is %(score)s of %(model)s against %(other)s.",
            score=number(best.score.value, POINTS, language),
            model=best.row,
            other=best.column,
        )
        sentence = f"{sentence} {highest}"
    rows = [
        (
            each.row,
            each.column,
            str(each.matches),
            number(each.score.value, POINTS, language),
            beside(each.score, POINTS, language),
        )
        for each in found
    ]
    data = [{"row": each.row, "column": each.column, "role": each.role, **each.score._asdict()} for each in found]
    header = (
        who,
        against,
        language.gettext("Matches"),
        language.gettext("Mean score"),
        language.gettext("95 %% interval"),
    )
    name = "-".join(["cross-play", str(matrix.matrix_id), *([role] if role else [])])
    return Chart(name, title, Description(sentence, header, rows), draw, data, language)
