"""The charts of a society: ratings before and after revising by iteration, and alignment against engagement.

Source: Liu et al. 2023, arXiv 2305.16960, whose figures these are. Iterations are counted from 1, as on pages.
"""

from collections.abc import Callable, Sequence
from typing import Any

from app.analysis.bootstrap import Figure
from app.analysis.chart import HEIGHT, WIDTH, Chart, Description, Spec, intervals
from app.analysis.language import ENGLISH, Language
from app.analysis.themes import Palette
from app.analysis.wording import in_words
from app.games.metrics import POINTS
from app.society.config import LARGEST_RATING
from app.society.statistics import AFTER, ASPECTS, BEFORE, IterationFigures

_PANEL_WIDTH, _PANEL_HEIGHT = 300, 190  # pixels; a page may use another width
_TICKS = [1, 3, 5, 7]
_WHEN = (BEFORE, AFTER)


def society_charts(
    name: str, figures: Sequence[IterationFigures], iterations: int, language: Language = ENGLISH
) -> list[Chart]:
    """The charts so far of a society with that many `iterations`; none before its first rating.

    `figures` are those of each iteration and, last, of all of them. `name` distinguishes the charts of two societies.
    """
    each = [row for row in figures if row.iteration is not None]
    if not any(_of_aspect(row, aspect, when).value is not None for row in each for aspect in ASPECTS for when in _WHEN):
        return []
    [whole] = [row for row in figures if row.iteration is None]
    return [
        _by_iteration(f"ratings-{name}", each, whole, iterations, language),
        _pareto(f"pareto-{name}", each, whole, language),
    ]


def _of_aspect(row: IterationFigures, aspect: str, when: str) -> Figure:
    found: Figure = getattr(getattr(row, aspect), when)
    return found


# ---- By iteration ---------------------------------------------------------------------


def _by_iteration(
    name: str, rows: Sequence[IterationFigures], whole: IterationFigures, iterations: int, language: Language
) -> Chart:
    def draw(colours: Palette) -> Spec:
        panels = [_aspect_panel(aspect, rows, iterations, colours, language) for aspect in ASPECTS]
        own = {"color": "independent", "strokeDash": "independent"}
        return {
            "params": [{"name": "shown", "value": 0}],
            "columns": 2,
            "spacing": 36,
            "resolve": {"scale": own},
            "concat": panels,
        }

    header = (
        language.gettext("Iteration"),
        language.gettext("Interactions"),
        *(_heading(aspect, when, language) for aspect in ASPECTS for when in _WHEN),
    )
    table = [
        (
            language.gettext("all of them") if row.iteration is None else str(row.iteration + 1),
            str(row.interactions),
            *(_figure_in_words(_of_aspect(row, aspect, when), language) for aspect in ASPECTS for when in _WHEN),
        )
        for row in (*rows, whole)
    ]
    data = [
        {"iteration": row.iteration + 1, "rating": aspect, "of": when, **_of_aspect(row, aspect, when)._asdict()}
        for row in rows
        if row.iteration is not None
        for aspect in ASPECTS
        for when in _WHEN
    ]
    sentence = language.gettext(
        "Over all iterations, alignment is %(before)s before and %(after)s after revising, engagement %(drafts)s and"
        " %(revisions)s.",
        before=_figure_in_words(whole.alignment.before, language),
        after=_figure_in_words(whole.alignment.after, language),
        drafts=_figure_in_words(whole.engagement.before, language),
        revisions=_figure_in_words(whole.engagement.after, language),
    )
    title = language.gettext("Mean ratings by iteration, with 95 %% intervals")
    return Chart(name, title, Description(sentence, header, table), draw, data, language)


def _aspect_panel(
    aspect: str, rows: Sequence[IterationFigures], iterations: int, colours: Palette, language: Language
) -> Spec:
    words = _when(language)
    values = [
        {"iteration": row.iteration + 1, "of": words[when], **_figure_fields(_of_aspect(row, aspect, when))}
        for when in _WHEN
        for row in rows
        if row.iteration is not None and _of_aspect(row, aspect, when).value is not None
    ]
    legend = {"orient": "bottom", "direction": "horizontal", "title": None, "symbolOpacity": 1, "symbolType": "stroke"}
    of: Spec = {"field": "of", "type": "nominal", "legend": legend}
    x: Spec = {
        "field": "iteration",
        "type": "quantitative",
        "title": language.gettext("Iteration"),
        "scale": {"domain": [1, max(2, iterations)], "nice": False, "zero": False, "padding": 8},
        "axis": {"format": "d", "tickMinStep": 1, "tickCount": min(6, max(1, iterations))},
    }
    y = _rating_axis(language.gettext("Rating, 1 to 7"))
    colour = {**of, "scale": {"domain": list(words.values()), "range": [colours.first, colours.second]}}
    dash = {**of, "scale": {"domain": list(words.values()), "range": [[6, 4], [1, 0]]}}
    band = {
        "transform": [{"filter": {"field": "low", "valid": True}}],
        "mark": {"type": "area", "opacity": 0.2, "aria": False},
        "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
    }
    # A page sets the iteration that it shows; 0: none.
    marked = {
        "name": "shown",
        "data": {"values": [{}]},
        "transform": [{"calculate": "shown", "as": "iteration"}, {"filter": "datum.iteration > 0"}],
        "mark": {"type": "rule", "color": colours.ink, "strokeDash": [2, 2], "aria": False},
        "encoding": {"x": x},
    }
    hover = [{"field": "iteration", "title": language.gettext("Iteration")}, {"field": "of", "title": ""}]
    return {
        "title": {"text": _aspect_title(aspect, language), "fontSize": 13, "offset": 8, "frame": "group"},
        "width": _PANEL_WIDTH,
        "height": _PANEL_HEIGHT,
        "data": {"values": values},
        "layer": [
            marked,
            *([band] if any(each["low"] is not None for each in values) else []),  # Vega warns of an empty layer
            {
                "mark": {"type": "line", "strokeWidth": 2},
                "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 14, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": colour, "tooltip": [*hover, *intervals(".2f", language)]},
            },
        ],
    }


def _rating_axis(title: str) -> Spec:
    return {
        "field": "value",
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [1, LARGEST_RATING], "nice": False, "zero": False},
        "axis": {"values": _TICKS},
    }


# ---- Alignment against engagement -----------------------------------------------------


def _pareto(name: str, rows: Sequence[IterationFigures], whole: IterationFigures, language: Language) -> Chart:
    words = _when(language)
    all_of_them = language.gettext("all of them")

    def draw(colours: Palette) -> Spec:
        dots = _dots(rows, words, lambda row: str((row.iteration or 0) + 1))
        means = _dots([whole], words, lambda _row: all_of_them)
        colour = {
            "field": "of",
            "type": "nominal",
            "legend": {"orient": "bottom", "title": None},
            "scale": {"domain": list(words.values()), "range": [colours.first, colours.second]},
        }
        shape = {**colour, "scale": {"domain": list(words.values()), "range": ["circle", "square"]}}
        x = {**_rating_axis(language.gettext("Alignment, 1 to 7")), "field": "alignment"}
        x["axis"] = {"grid": True, "values": list(range(1, LARGEST_RATING + 1))}
        y = {**_rating_axis(language.gettext("Engagement, 1 to 7")), "field": "engagement"}
        hover = [
            {"field": "iteration", "title": language.gettext("Iteration")},
            {"field": "of", "title": ""},
            {"field": "alignment", "title": language.gettext("Alignment"), "format": ".2f", "type": "quantitative"},
            {"field": "engagement", "title": language.gettext("Engagement"), "format": ".2f", "type": "quantitative"},
        ]
        rules = [
            {
                "data": {"values": [each for each in means if each[f"{aspect}_low"] is not None]},
                "mark": {"type": "rule", "strokeWidth": 2, "color": colours.ink},
                "encoding": {
                    axis: {**own, "field": f"{aspect}_low"},
                    f"{axis}2": {"field": f"{aspect}_high"},
                    **other,
                },
            }
            for axis, own, aspect, other in (("x", x, "alignment", {"y": y}), ("y", y, "engagement", {"x": x}))
            if any(each[f"{aspect}_low"] is not None for each in means)
        ]
        return {
            "width": WIDTH,
            "height": HEIGHT,
            "layer": [
                {
                    "data": {"values": dots},
                    "mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.65},
                    "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": hover},
                },
                *rules,
                {
                    "data": {"values": means},
                    "mark": {"type": "point", "filled": True, "size": 170, "stroke": colours.ink, "opacity": 1},
                    "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": hover},
                },
            ],
        }

    change = whole.alignment.change
    sentence = language.gettext(
        "Each iteration has two dots, alignment across and engagement up; the large ones are means of all iterations."
        " Revising changes alignment by %(alignment)s and engagement by %(engagement)s.",
        alignment=_figure_in_words(change, language),
        engagement=_figure_in_words(whole.engagement.change, language),
    )
    header = (
        language.gettext("Iteration"),
        language.gettext("Answers"),
        *(_aspect_title(aspect, language) for aspect in ASPECTS),
    )
    table = [
        (
            all_of_them if row.iteration is None else str(row.iteration + 1),
            text,
            *(_figure_in_words(_of_aspect(row, aspect, when), language) for aspect in ASPECTS),
        )
        for row in (*rows, whole)
        for when, text in words.items()
    ]
    data = [
        {
            "iteration": "all" if row.iteration is None else row.iteration + 1,
            "of": when,
            **{aspect: _of_aspect(row, aspect, when).value for aspect in ASPECTS},
        }
        for row in (*rows, whole)
        for when in words
    ]
    title = language.gettext("Alignment against engagement")
    return Chart(name, title, Description(sentence, header, table), draw, data, language)


def _dots(
    rows: Sequence[IterationFigures], words: dict[str, str], called: Callable[[IterationFigures], str]
) -> list[dict[str, Any]]:
    """A point before and one after revising for each row in which both aspects were rated."""
    found = []
    for row in rows:
        for when, text in words.items():
            point: dict[str, Any] = {"iteration": called(row), "of": text}
            for aspect in ASPECTS:
                figure = _of_aspect(row, aspect, when)
                point |= {aspect: figure.value, f"{aspect}_low": figure.low, f"{aspect}_high": figure.high}
            if all(point[aspect] is not None for aspect in ASPECTS):
                found.append(point)
    return found


# ---- Words ------------------------------------------------------------------------------


def _aspect_title(aspect: str, language: Language) -> str:
    return language.gettext("Alignment") if aspect == "alignment" else language.gettext("Engagement")


def _when(language: Language) -> dict[str, str]:
    return {BEFORE: language.gettext("Before"), AFTER: language.gettext("After revising")}


def _heading(aspect: str, when: str, language: Language) -> str:
    return f"{_aspect_title(aspect, language)}: {_when(language)[when]}"


def _figure_fields(figure: Figure) -> Spec:
    return {"value": figure.value, "low": figure.low, "high": figure.high, "n": figure.n}


def _figure_in_words(figure: Figure, language: Language) -> str:
    return in_words(figure._asdict(), POINTS, language)
