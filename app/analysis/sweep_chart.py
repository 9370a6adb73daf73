"""A figure across a sweep's variable: lines with bands for numbers, points with whiskers for words. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.analysis.chart import HEIGHT, WIDTH, Chart, Description, Spec, intervals
from app.analysis.language import ENGLISH, Language
from app.analysis.losses import FIGURES
from app.analysis.themes import Palette

MOST_LINES = 6  # as many as there are colours
_DASHES = ([1, 0], [8, 4], [2, 3], [9, 3, 2, 3], [14, 5], [5, 2])
_FORM = ".4~g"
_MOST_TICKS = 12  # most values that an axis labels individually


class SweptPoint(NamedTuple):
    """A figure at one value: its mean over `n` seeds, and the ends of its 95 % interval, if it has one."""

    at: str | int | float | bool
    value: float
    low: float | None
    high: float | None
    n: int | None


def swept_chart(
    title: str,
    across: str,
    lines: Mapping[str, Sequence[SweptPoint]],
    *,
    over_seeds: bool,
    language: Language = ENGLISH,
) -> Chart:
    """A figure across a variable, with a line for each combination of everything else.

    With more than MOST_LINES lines some are drawn, from the first to the last; the data and the table have all. `lines`
    are named after their values; the only line of a sweep of one field has an empty name.
    """
    gettext = language.gettext
    numeric = all(
        isinstance(each.at, int | float) and not isinstance(each.at, bool) for line in lines.values() for each in line
    )
    drawn = _lines_to_draw(list(lines))
    data: list[Spec] = [{"line": name, **each._asdict()} for name, line in lines.items() for each in line]
    shown = [{**each, "at": each["at"] if numeric else _word(each["at"])} for each in data if each["line"] in drawn]

    def draw(colours: Palette) -> Spec:
        symbol: Spec = {"symbolType": "stroke", "symbolSize": 400, "symbolStrokeWidth": 2} if numeric else {}
        named_lines: Spec = {"orient": "top", "columns": 2, "labelLimit": 0, "symbolOpacity": 1, **symbol}
        legend = named_lines if len(drawn) > 1 else None
        line: Spec = {"field": "line", "type": "nominal", "title": None, "legend": legend}
        colour = {**line, "scale": {"domain": drawn, "range": colours.players[: len(drawn)]}}
        dash = {**line, "scale": {"domain": drawn, "range": [*_DASHES[: len(drawn)]]}}
        x: Spec = {"field": "at", "title": across, "type": "quantitative" if numeric else "nominal"}
        values = list(dict.fromkeys(each["at"] for each in shown))
        ticks: Spec = {"values": values} if len(values) <= _MOST_TICKS else {}
        if numeric:
            x |= {"scale": {"zero": False, "nice": False, "padding": 12}, "axis": {"format": "~g", **ticks}}
        else:
            x |= {"sort": None, "axis": {"labelAngle": 0}}
        y: Spec = {"field": "value", "type": "quantitative", "title": title, "axis": FIGURES, "scale": {"zero": False}}
        ends: Spec = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
        there: Spec = {"transform": [{"filter": {"field": "low", "valid": True}}], "encoding": ends}
        beside = {} if numeric or len(drawn) == 1 else {"xOffset": {"field": "line", "sort": drawn}}
        named = [{"field": "line", "title": gettext("Line")}] if len(drawn) > 1 else []
        hover = [{"field": "at", "title": across}, *named, *intervals(_FORM, language)]
        band: Spec = {"mark": {"type": "area", "opacity": 0.18, "aria": False}, **there}
        whisker: Spec = {"mark": {"type": "rule", "strokeWidth": 1.5}, **there}
        some = any(each["low"] is not None for each in shown)  # Vega warns about an empty layer
        return {
            "width": WIDTH,
            "height": HEIGHT,
            "data": {"values": shown},
            "encoding": {"x": x, "y": y, "color": colour, **beside},
            "layer": [
                *([band] if some and numeric else [whisker] if some else []),
                *([{"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"strokeDash": dash}}] if numeric else []),
                {"mark": {"type": "point", "filled": True, "size": 60, "opacity": 1}, "encoding": {"tooltip": hover}},
            ],
        }

    rows = [
        (
            _word(each.at),
            name,
            *(_number_as_text(value, language) for value in (each.value, each.low, each.high)),
            str(each.n or ""),
        )
        for name, line in lines.items()
        for each in line
    ]
    header = (across, gettext("Line"), gettext("Value"), gettext("95 %% from"), gettext("95 %% to"), "n")
    whole = gettext("%(figure)s across %(variable)s", figure=title, variable=across)
    described = Description(_in_words(whole, lines, drawn, over_seeds, language), header, rows)
    return Chart(f"sweep-{across}", whole, described, draw, data, language)


def _lines_to_draw(names: Sequence[str]) -> list[str]:
    """The lines to draw: all, or an evenly spaced selection that includes the first and the last."""
    if len(names) <= MOST_LINES:
        return [*names]
    return [names[round(place * (len(names) - 1) / (MOST_LINES - 1))] for place in range(MOST_LINES)]


def _in_words(
    whole: str, lines: Mapping[str, Sequence[SweptPoint]], drawn: Sequence[str], over_seeds: bool, language: Language
) -> str:
    gettext = language.gettext
    ends = "; ".join(
        gettext(
            "%(value)s at %(at)s, %(last)s at %(end)s",
            value=_number_as_text(line[0].value, language),
            at=_word(line[0].at),
            last=_number_as_text(line[-1].value, language),
            end=_word(line[-1].at),
        )
        + (f" ({name})" if name else "")
        for name, line in lines.items()
        if name in drawn
    )
    said = [f"{whole}: {ends}."]
    if over_seeds:
        said.append(gettext("Means over seeds, with 95 %% intervals by Student’s t where there are two and more."))
    if len(drawn) < len(lines):
        said.append(
            gettext("%(drawn)s of %(all)s lines are drawn; the numbers have all.", drawn=len(drawn), all=len(lines))
        )
    return " ".join(said)


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _number_as_text(value: float | None, language: Language) -> str:
    return "" if value is None else language.shortest(float(f"{value:.4g}"))
