"""Charts in the language of a page: every word of theirs, and every number."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from app.analysis import drawing
from app.analysis.bootstrap import Figure
from app.analysis.campaign_charts import Point, figure
from app.analysis.chart import Chart
from app.analysis.charts import charts_of
from app.analysis.comparisons import compare, compare_differences, compare_models, cross_plays
from app.analysis.figure_files import SVG
from app.analysis.language import ENGLISH, Language
from app.analysis.losses import loss_curve
from app.analysis.side_by_side import SideBySide, SideBySideChoice
from app.analysis.side_by_side.charts import charts_of as side_by_side_charts
from app.analysis.side_by_side.figures import PlayerFigures
from app.analysis.side_by_side.language import LanguageFigures
from app.analysis.training_figures import compared_losses, method_curves
from app.games import metrics_of
from app.games.taboo.outcomes import ROLES
from tests.campaigns import made_up
from tests.unit.analysis.test_charts import DEALS, GAMES, analysed, matrix

MARKED = Language(lambda text: f"«{text}»", decimal=",", thousands=".", percent=" %")  # marks what was translated
EVENTS = [
    {"event": kind, "step": step, "loss": 2.5 / step, "reward": 0.25, "kl": 0.5}
    for kind in ("step", "eval")
    for step in (1, 2)
]
POINTS = [
    Point(number, f"m{number}", made_up(number), dict.fromkeys(("against m0", "temperature 0.5"), made_up(number)))
    for number in range(3)
]
LEGENDS = ("reason", "ahead", "of", "line")  # what is told apart by colour, but for models


def all_charts(language: Language) -> list[Chart]:
    rounds = [analysed(DEALS), analysed(DEALS[:2], 2)]
    found = [
        *charts_of(analysed(DEALS), language),
        *charts_of(analysed(GAMES, 2, None), language),
        compare(rounds, "agreement_rate", language),
        compare_models(rounds, language),
        compare_differences(rounds, language),
        *cross_plays(matrix(GAMES, *ROLES), language),
        loss_curve("loss-1", "job 1", EVENTS, 10, None, language),
        loss_curve("loss-2", "job 2", EVENTS, 10, 2, language),
        method_curves("method-1", "job 1", EVENTS, language),
        compared_losses("losses", [("job 1", EVENTS), ("job 2", EVENTS)], language),
        figure("campaign-1", "campaign 1", "negotiation", 3, POINTS, language),
    ]
    found += [
        chart for game in ("negotiation", "taboo") for chart in side_by_side_charts(made_up_sides(game), language)
    ]
    return [chart for chart in found if chart is not None]


def made_up_sides(game: str) -> SideBySide:
    """A model in self-play and with people, with the people, in each role of a game."""
    figures, language = [], []
    for name, setting in (("ada", "self-play"), ("ada", "with people"), ("people", "with people")):
        for role in (None,) if game == "negotiation" else ROLES:
            defined = metrics_of(game)
            known = {each.name: Figure(0.5, 0.25, 0.75, 20) for each in defined.side_by_side}
            results = {"deal": 3, "no deal": 1} if role is None else {"won": 3, "lost": 2, "tied game": 1}
            figures.append(PlayerFigures(name, role, setting, 20, 20, known, {}, results))
            said = {each.name: Figure(1.5, 1.25, 1.75, 20) for each in defined.language}
            offers = [Figure(9.5, 9.25, 9.75, 20), Figure(8.5, n=4, no_interval="fewer than 10 people")]
            language.append(LanguageFigures(name, role, setting, 20, 20, 900, said, [] if role is not None else offers))
    return SideBySide(game, None, SideBySideChoice(models=("ada",), base="ada"), figures, language, ())


CHARTS = all_charts(MARKED)


def titles(spec: Any) -> Iterator[str]:
    """The titles of axes, legends, panels and tooltips."""
    if isinstance(spec, dict):
        title = spec.get("title")
        title = title["text"] if isinstance(title, dict) else title
        if title:
            yield " ".join(title) if isinstance(title, list) else title
    for each in spec.values() if isinstance(spec, dict) else spec if isinstance(spec, list) else ():
        yield from titles(each)


def drawn_values(spec: Any) -> Iterator[dict[str, Any]]:
    """The data of all layers and panels."""
    if isinstance(spec, dict):
        yield from spec.get("data", {}).get("values", ())
    for each in spec.values() if isinstance(spec, dict) else spec if isinstance(spec, list) else ():
        yield from drawn_values(each)


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_every_word_of_a_chart_is_translated(chart: Chart) -> None:
    spec = {name: part for name, part in chart.spec().items() if name != "config"}
    assert "«" in chart.title
    assert "«" in chart.described.sentence
    assert [title for title in titles(spec) if "«" not in title and title != "n"] == []
    assert [name for name in chart.described.header if "«" not in name] == []
    shown = {str(row[name]) for row in drawn_values(spec) for name in LEGENDS if name in row}
    assert {name for name in shown if "«" not in name} <= {"a", "b"}  # models


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_numbers_have_the_signs_of_the_language(chart: Chart) -> None:
    texts = [chart.described.sentence, *(cell for row in chart.described.rows for cell in row)]
    assert [text for text in texts if re.search(r"\d\.\d", text)] == []
    assert chart.spec()["config"]["locale"]["number"]["decimal"] == ","


def test_axes_are_drawn_with_the_signs_of_the_language() -> None:
    chart = loss_curve("loss-3", "job 3", EVENTS[:2], 10, None, MARKED)
    texts = re.findall(r">([^<>]+)</text>", drawing.draw(chart, SVG).decode())
    assert "2,4" in texts
    assert "«Loss (nats a token)»" in texts
    assert not any(re.fullmatch(r"\d+\.\d+", text) for text in texts)


def test_the_numbers_that_are_saved_are_the_same_in_every_language() -> None:
    assert [chart.csv() for chart in CHARTS] == [chart.csv() for chart in all_charts(ENGLISH)]
    assert [chart.name for chart in CHARTS] == [chart.name for chart in all_charts(ENGLISH)]
