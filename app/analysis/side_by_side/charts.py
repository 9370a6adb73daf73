"""Charts of models side by side: a figure in each setting, how matches ended, and the demands in offers."""

from collections.abc import Iterator, Sequence
from typing import Any

from app.analysis.bootstrap import Figure
from app.analysis.chart import (
    HEIGHT,
    ROW,
    WIDTH,
    Chart,
    Description,
    Spec,
    ends,
    in_lines,
    intervals,
    tooltip,
    whiskers,
)
from app.analysis.language import ENGLISH, Language
from app.analysis.side_by_side import SideBySide
from app.analysis.side_by_side.figures import LOST, WON, PlayerFigures
from app.analysis.side_by_side.language import LanguageFigures
from app.analysis.themes import Palette
from app.analysis.wording import beside, number
from app.games.metrics import BAD, POINTS, SHARE

_TITLE = 24  # letters per title line of an axis that leaves room for its row labels
_DASHES = ([1, 0], [6, 4], [2, 3], [10, 3, 2, 3], [14, 5], [4, 2])
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_FIRST_OFFER = "first_offer_mean"
_DARKNESS = (0.6, 0.42, 0.27, 0.15, 0.08)  # of a bar's parts; text stays readable on each

_Player = PlayerFigures | LanguageFigures


def charts_of(found: SideBySide, language: Language = ENGLISH) -> list[Chart]:
    """The models' headline figure in each setting, the results, first offers, and concession curves by setting."""
    metric = found.defined.model_headline
    charts = [
        _figure_chart(found, metric.name, metric.heading, metric.unit, found.players, language),
        _results_chart(found, language),
    ]
    offers = {each.name: each for each in found.defined.language}
    if _FIRST_OFFER in offers:
        heading = offers[_FIRST_OFFER].heading
        charts.append(_figure_chart(found, _FIRST_OFFER, heading, POINTS, found.language, language))
        charts += _concessions(found, language)
    return charts


def _who(each: _Player, language: Language) -> str:
    """A player with its setting, and with its role where roles differ."""
    parts = [language.player(each.player), language.translate(each.setting)]
    return ", ".join([*parts, *([] if each.role is None else [language.translate(each.role)])])


def _figure_chart(
    found: SideBySide, name: str, heading: str, unit: str, players: Sequence[_Player], language: Language
) -> Chart:
    """One figure of every player in every setting, with its interval."""
    having = [each for each in players if each.columns[name].value is not None]
    known = [(_who(each, language), each.columns[name]) for each in having]
    values = [{"who": who, **ends(figure)} for who, figure in known]
    share, title = unit == SHARE, language.translate(heading)

    def draw(colours: Palette) -> Spec:
        x: Spec = {
            "field": "value",
            "type": "quantitative",
            "title": in_lines(title, language.translate(unit), _TITLE),
            "scale": {"zero": share, "nice": False, "padding": 12},
            "axis": {"titleAnchor": "end", "tickCount": 5, "labelFlush": False, **({"format": ".0%"} if share else {})},
        }
        of_rows = language.gettext("Player")
        hover = tooltip("who", of_rows, ".1%" if share else ".2f", language)
        mark = {"type": "point", "filled": True, "size": 90, "opacity": 1, "color": colours.second}
        return {
            "width": WIDTH - 200,
            "height": ROW * max(1, len(values)),
            "data": {"values": values},
            "encoding": {"y": {"field": "who", "type": "nominal", "sort": None, "title": None}},
            "layer": [*whiskers(colours, values), {"mark": mark, "encoding": {"x": x, "tooltip": hover}}],
        }

    rows = [(who, number(each.value, unit, language), beside(each, unit, language)) for who, each in known]
    header = (language.gettext("Player"), title, language.gettext("95 %% interval"))
    listed = "; ".join(f"{who} {value}" for who, value, _ in rows) or language.gettext("none yet")
    described = Description(f"{title}: {listed}.", header, rows)
    heading = language.gettext("%(figure)s, with 95 %% intervals", figure=title)
    data = [{**_player_identity(each), **each.columns[name]._asdict()} for each in having]
    return Chart(f"{found.key}-{name}".replace("_", "-"), heading, described, draw, data, language)


def _player_identity(each: _Player) -> dict[str, Any]:
    """The player's identity, the same in every language."""
    return {"player": each.player, "setting": each.setting, "role": each.role}


# ---- Results -------------------------------------------------------------------------


def _results_chart(found: SideBySide, language: Language) -> Chart:
    """A bar for each player, setting and role: the shares of seats that won, lost, and ended without a winner."""
    results = list(dict.fromkeys(result for each in found.players for result in each.results))
    words = {result: language.translate(result) for result in results}
    values, data = [], []
    for each in found.players:
        total, before = sum(each.results.values()), 0.0
        for result in (each_result for each_result in results if each.results.get(each_result)):
            share = each.results[result] / total
            about = {"who": _who(each, language), "result": words[result], "seats": each.results[result]}
            values.append({**about, "share": share, "from": before, "to": before + share})
            data.append({**_player_identity(each), "result": result, "seats": each.results[result], "share": share})
            before += share

    def draw(colours: Palette) -> Spec:
        fills = {WON: colours.first, LOST: colours.second}
        spare = iter([colours.brass, colours.strong, colours.good, colours.warn, colours.line] * 3)
        tones = found.defined.tones
        shades = [
            fills[result] if result in fills else colours.bad if tones.get(result) == BAD else next(spare)
            for result in results
        ]
        colour: Spec = {
            "field": "result",
            "type": "nominal",
            "title": None,
            "scale": {"domain": [*words.values()], "range": shades},
            "legend": {"orient": "top", "columns": 3},
        }
        axis = {"format": ".0%", "tickCount": 5}
        title = language.gettext("Share of its seats")
        x: Spec = {"field": "from", "type": "quantitative", "title": title, "axis": axis, "scale": {"domain": [0, 1]}}
        hover = [
            {"field": "who", "title": language.gettext("Player")},
            {"field": "result", "title": language.gettext("Result")},
            {"field": "share", "title": language.gettext("Share"), "type": "quantitative", "format": ".1%"},
            {"field": "seats", "title": language.gettext("Seats"), "type": "quantitative"},
        ]
        darkness: Spec = {
            "field": "result",
            "type": "ordinal",
            "sort": [*words.values()],
            "title": None,
            "scale": {"domain": [*words.values()], "range": [_DARKNESS[n % len(_DARKNESS)] for n in range(len(words))]},
        }
        bar = {"type": "bar", "stroke": colours.surface, "strokeWidth": 2, "height": ROW - 10}
        middle = {"calculate": "(datum.from + datum.to) / 2", "as": "middle"}
        label: Spec = {
            "transform": [{"filter": "datum.share >= 0.08"}, middle],
            "mark": {"type": "text", "fontSize": 11, "color": colours.ink, "aria": False},
            "encoding": {
                "x": {"field": "middle", "type": "quantitative"},
                "text": {"field": "share", "type": "quantitative", "format": ".0%"},
            },
        }
        parts = {"color": colour, "opacity": darkness}
        return {
            "width": WIDTH - 200,
            "height": ROW * max(1, len(found.players)),
            "data": {"values": values},
            "encoding": {"y": {"field": "who", "type": "nominal", "sort": None, "title": None}},
            "layer": [
                {"mark": bar, "encoding": {"x": x, "x2": {"field": "to"}, **parts, "tooltip": hover}},
                label,
            ],
        }

    rows = [
        (str(each["who"]), str(each["result"]), number(each["share"], SHARE, language), str(each["seats"]))  # type: ignore[arg-type]
        for each in values
    ]
    gettext = language.gettext
    header = (gettext("Player"), gettext("Result"), gettext("Share"), gettext("Seats"))
    sentence = "; ".join(f"{who}: {result} {share}" for who, result, share, _ in rows)
    title = gettext("How matches ended for each player")
    described = Description(f"{title}. {sentence}.", header, rows)
    return Chart(f"{found.key}-results", title, described, draw, data, language)


# ---- Offers --------------------------------------------------------------------------


def _concessions(found: SideBySide, language: Language) -> Iterator[Chart]:
    """The worth of first offers, second ones and so on to their makers: a chart per setting, a line per player."""
    for setting in found.settings:
        offers = [
            (each, place, figure)
            for each in found.language
            if each.setting == setting
            for place, figure in enumerate(each.demands, 1)
            if figure.value is not None
        ]
        if offers:
            yield _concession(found, setting, offers, language)


def _concession(
    found: SideBySide, setting: str, offers: Sequence[tuple[LanguageFigures, int, Figure]], language: Language
) -> Chart:
    gettext = language.gettext
    values = [
        {"player": language.player(each.player), "offer": place, **ends(figure)} for each, place, figure in offers
    ]
    names = list(dict.fromkeys(each["player"] for each in values))
    demanded = gettext("Demanded for itself")

    def draw(colours: Palette) -> Spec:
        series: Spec = {"field": "player", "type": "nominal", "title": None, "legend": {"orient": "top", "columns": 3}}

        def told_apart(by: Sequence[Any]) -> Spec:
            return {**series, "scale": {"domain": names, "range": [by[n % len(by)] for n in range(len(names))]}}

        y: Spec = {
            "field": "value",
            "type": "quantitative",
            "title": f"{demanded} ({language.translate(POINTS)})",
            "scale": {"zero": False},
        }
        x: Spec = {"field": "offer", "type": "ordinal", "title": gettext("Offer"), "axis": {"labelAngle": 0}}
        hover = [{"field": "player", "title": gettext("Player")}, {"field": "offer", "title": gettext("Offer")}]
        known = any(each["low"] is not None for each in values)
        whisker: Spec = {
            "transform": [{"filter": {"field": "low", "valid": True}}],
            "mark": {"type": "rule", "strokeWidth": 1.5, "opacity": 0.7},
            "encoding": {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}},
        }
        line: Spec = {
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {"y": y, "strokeDash": told_apart(_DASHES)},
        }
        point: Spec = {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {"y": y, "shape": told_apart(_SHAPES), "tooltip": [*hover, *intervals(".2f", language)]},
        }
        return {
            "width": WIDTH,
            "height": HEIGHT,
            "data": {"values": list(values)},
            "encoding": {"x": x, "color": told_apart(colours.players)},
            "layer": [*([whisker] if known else []), line, point],
        }

    rows = [
        (
            language.player(each.player),
            str(place),
            number(figure.value, POINTS, language),
            beside(figure, POINTS, language),
        )
        for each, place, figure in offers
    ]
    header = (gettext("Player"), gettext("Offer"), demanded, gettext("95 %% interval"))
    where = language.translate(setting)
    title = gettext("What offers demand: %(setting)s", setting=where)
    last = "; ".join(f"{player} {offer}: {value}" for player, offer, value, _ in rows)
    described = Description(f"{title}. {last}.", header, rows)
    name = f"{found.key}-offers-{setting}".replace(" ", "-")
    data = [{**_player_identity(each), "offer": place, **figure._asdict()} for each, place, figure in offers]
    return Chart(name, title, described, draw, data, language)
