"""Charts: what they show, in which colours, and what they say to whoever does not see them."""

import json
import re
from typing import Any

import pytest

from app.analysis import drawing
from app.analysis.chart import Chart
from app.analysis.charts import charts_of, count_histogram, outcomes, paired_differences
from app.analysis.comparisons import compare, compare_differences, compare_models, cross_plays
from app.analysis.crossplay import CrossPlay, cells
from app.analysis.distributions import Bin, distributions
from app.analysis.figure_files import FORMATS, PDF, SVG, draw_in_process
from app.analysis.paired import paired
from app.analysis.rounds import RoundAnalysis
from app.analysis.themes import DARK, LIGHT, THEMES, palette
from app.core.config import ROOT
from app.core.errors import Invalid
from app.games.match_table import FinishedMatch, of_rows
from app.games.metrics import SCORE_MEAN, WORDS_MEAN
from app.games.taboo.outcomes import ROLES
from tests.figures import NEGOTIATION, TABOO, negotiation, taboo

DEALS = [
    FinishedMatch((7, 4), ("a", "b"), "deal", 6, 30, first_proposal=4, agreed=True),
    FinishedMatch((0, 10), ("b", "a"), "deal", 5, 20, first_proposal=2, agreed=True),
    FinishedMatch((0, 0), ("a", "b"), "no deal", 12, 95, first_proposal=6),
]
GAMES = [
    FinishedMatch((1, -1), ("a", "b"), "attacker wins", 4, 9, winner=0),
    FinishedMatch((0, 0), ("b", "a"), "tied game", 10, 40),
]


def analysed(rows: list[FinishedMatch], number: int = 1, partner_weight: float | None = 0) -> RoundAnalysis:
    matches = of_rows(rows)
    defined = TABOO if partner_weight is None else NEGOTIATION
    versus = paired(matches, matches.players, defined)
    return RoundAnalysis(
        round_id=number,
        name="a and b",
        game="taboo" if partner_weight is None else "negotiation",
        source="selfplay",
        state="done",
        planned=len(rows),
        over=len(rows),
        matches=len(rows),
        partner_weight=partner_weight,
        players=matches.players,
        metrics=taboo(matches) if partner_weight is None else negotiation(matches, partner_weight),
        distributions=distributions(matches, defined, versus),
        paired=versus,
    )


def matrix(rows: list[FinishedMatch], *roles: str | None) -> CrossPlay:
    matches = of_rows(rows)
    number = len(matches)
    found = cells(matches, ["a", "b"], roles)
    return CrossPlay(4, "a game", [4], number, number, ["a", "b"], roles, found)


ALL = [
    *charts_of(analysed(DEALS)),
    *charts_of(analysed(GAMES, 2, None)),
    compare([analysed(DEALS), analysed(DEALS[:2], 2)]),
    *cross_plays(matrix(DEALS, None)),
    *cross_plays(matrix(GAMES, *ROLES)),
]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("chart", ALL, ids=lambda chart: chart.name)
def test_a_chart_has_a_title_words_at_its_axes_and_only_the_colours_of_the_pages(chart: Chart, theme: str) -> None:
    spec = chart.spec(theme)
    tokens = set(re.findall(r"#[0-9a-f]{6}", (ROOT / "static/css/tokens.css").read_text()))
    assert spec["title"] == chart.title
    assert spec["description"] == chart.described.sentence
    assert set(re.findall(r"#[0-9a-f]{6}", json.dumps(spec))) <= tokens
    assert spec["config"]["background"] == palette(theme).surface
    titles = [
        name["title"] for name in named(spec) if name.get("field") in ("from", "number", "value") and "title" in name
    ]
    assert titles
    assert all(titles)
    assert all(len(row) == len(chart.described.header) for row in chart.described.rows)


def named(spec: Any) -> list[dict[str, Any]]:
    """Every object of a spec that has a field."""
    if isinstance(spec, list):
        return [found for each in spec for found in named(each)]
    if not isinstance(spec, dict):
        return []
    return [*([spec] if "field" in spec else []), *(found for each in spec.values() for found in named(each))]


@pytest.mark.parametrize("chart", ALL, ids=lambda chart: chart.name)
def test_a_chart_can_be_drawn(chart: Chart) -> None:
    assert drawing.draw(chart, SVG, DARK).startswith(b"<svg")


def test_the_same_chart_is_the_same_file_whatever_was_drawn_before() -> None:
    drawn = {form: drawing.draw(ALL[0], form) for form in FORMATS}
    assert [content[:4] for content in drawn.values()] == [b"<svg", b"%PDF", b"\x89PNG"]
    assert {form: drawing.draw(ALL[0], form) for form in reversed(FORMATS)} == drawn
    assert draw_in_process(ALL[0].spec(), PDF) == drawn[PDF]


def test_no_two_charts_of_a_round_would_be_the_same_file() -> None:
    names = [chart.name for chart in ALL]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)


def test_scores_are_counted_by_model() -> None:
    described = count_histogram(analysed(DEALS), SCORE_MEAN).described
    assert list(described.rows) == [
        ("0", "a", "1"),
        ("7", "a", "1"),
        ("10", "a", "1"),
        ("0", "b", "2"),
        ("4", "b", "1"),
    ]
    assert "6 scores. a: mean 5.67 (no interval for fewer than 10 matches, n = 3). b: mean 1.33" in described.sentence
    assert described.sentence.endswith("Most often: 0 (3 times).")


def test_bars_of_models_stand_beside_each_other_in_their_bin() -> None:
    bars = count_histogram(analysed(DEALS), SCORE_MEAN).spec()["data"]["values"]
    of_nothing = {each["model"]: (each["from"], each["to"]) for each in bars if each["label"] == "0"}
    assert of_nothing["a"][1] == pytest.approx(of_nothing["b"][0])
    assert of_nothing["a"][0] > -0.5
    assert of_nothing["b"][1] < 0.5


def test_what_a_chart_shows_is_there_as_csv_to_the_last_digit() -> None:
    lines = outcomes(analysed(GAMES, partner_weight=None)).csv().splitlines()
    assert lines[0] == "reason,matches,value,low,high,n,no_interval"
    assert lines[1].startswith("attacker wins,1,0.5,0.0945312")
    assert count_histogram(analysed(DEALS), SCORE_MEAN).csv().splitlines()[:2] == [
        "low,high,number,player",
        "0.0,1.0,1,a",
    ]
    assert [chart.name for chart in ALL if len(chart.csv().splitlines()) < 2] == []


def test_differences_of_pairs_are_drawn_by_who_is_ahead() -> None:
    chart = next(chart for chart in charts_of(analysed(DEALS)) if chart.name == "difference-1")
    assert [row[1:] for row in chart.described.rows] == [("neither", "1"), ("a", "1"), ("a", "1")]
    assert (
        "of 3 matches: mean +4.33 points per match (no interval for fewer than 10 matches, n = 3)"
        in chart.described.sentence
    )
    assert "a is ahead in 2, b in 0, 1 are even." in chart.described.sentence


def test_rounds_of_two_models_are_compared_by_model_and_by_difference() -> None:
    alone = analysed([FinishedMatch((5, 5), ("a", "a"), "deal", 4, agreed=True)], 3)
    models = compare_models([analysed(DEALS), alone])
    apart = compare_differences([analysed(DEALS), alone])
    assert models is not None
    assert apart is not None
    assert [row[:3] for row in models.described.rows] == [("1", "a", "5.67"), ("1", "b", "1.33"), ("3", "a", "5.00")]
    assert [row[:2] for row in apart.described.rows] == [("1: a minus b", "+4.33")]
    assert compare_models([alone]) is compare_differences([alone]) is None


def test_titles_of_axes_have_lines_that_fit_a_phone() -> None:
    names = ("a-model-with-quite-a-long-name", "another-model-with-a-longer-name")
    rows = [FinishedMatch((7, 4), names, "deal", 6, agreed=True)] * 2
    analysis = analysed(rows)
    models = compare_models([analysis])
    assert analysis.paired is not None
    assert models is not None
    charts = [paired_differences(analysis, analysis.paired), models, compare([analysis], "agreed_pareto_rate")]
    lines = [
        line
        for chart in charts
        for each in named(chart.spec())
        if each["field"] in ("from", "value") and "scale" in each
        for line in each["title"]
    ]
    assert lines[-2:] == ["Pareto-optimal, of deals", "(share)"]
    assert "(points per match)" in lines
    assert max(map(len, lines)) <= 38


def test_whole_differences_have_ticks_at_whole_points_and_0_is_in_sight() -> None:
    rows = [FinishedMatch((4, 6), ("a", "b"), "deal", 6, agreed=True)] * 3
    chart = next(chart for chart in charts_of(analysed(rows)) if chart.name == "difference-1")
    x = chart.spec()["layer"][0]["encoding"]["x"]
    assert (x["axis"]["tickMinStep"], x["scale"]["domain"]) == (1, [-2.5, 0.5])


@pytest.mark.parametrize("theme", THEMES)
def test_an_interval_stands_out_from_the_bar_that_it_lies_on(theme: str) -> None:
    colours = palette(theme)
    _, edge, line = outcomes(analysed(DEALS)).spec(theme)["layer"]
    assert (edge["mark"]["color"], line["mark"]["color"]) == (colours.surface, colours.ink)
    assert edge["mark"]["strokeWidth"] >= 3 * line["mark"]["strokeWidth"]


def test_scores_below_nothing_and_between_points_are_told() -> None:
    rows = [
        FinishedMatch((-3, 3), ("a", "a"), "deal", 4, agreed=True),
        FinishedMatch((2.5, -0.5), ("a", "a"), "deal", 4, agreed=True),
    ]
    competing = count_histogram(analysed(rows[:1], partner_weight=-1), SCORE_MEAN).described
    assert list(competing.rows) == [("−3", "1"), ("3", "1")]
    between = count_histogram(analysed(rows, partner_weight=-0.5), SCORE_MEAN).described
    assert between.rows[1] == ("−1 up to 0", "1")


def test_many_different_lengths_share_bins() -> None:
    rows = [FinishedMatch((0, 0), ("a", "a"), "no deal", 4, words) for words in range(0, 300, 3)]
    bins = distributions(of_rows(rows), NEGOTIATION)["words"]
    assert bins[0] == Bin(0, 10, 4)  # 0 3 6 9
    assert sum(each.number for each in bins) == 100
    assert count_histogram(analysed(rows), WORDS_MEAN).described.rows[0] == ("0 up to 10", "4")


def test_outcomes_have_shares_and_intervals() -> None:
    described = outcomes(analysed(GAMES, partner_weight=None)).described
    assert "attacker wins 50.0 %; tied game 50.0 %" in described.sentence
    assert described.rows[0] == ("attacker wins", "1 of 2", "50.0 %", "9.5 to 90.5 %")


def test_rounds_are_compared_by_any_column() -> None:
    chart = compare([analysed(DEALS), analysed(DEALS[:2], 2)], "agreement_rate")
    assert [row[:2] for row in chart.described.rows] == [("1: a and b", "66.7 %"), ("2: a and b", "100.0 %")]


@pytest.mark.parametrize(
    ("analyses", "column", "line"),
    [
        ([], None, "expected some of one game, got none"),
        ([analysed(DEALS), analysed(GAMES, 2, None)], None, "expected some of one game, got negotiation and taboo"),
        ([analysed(DEALS)], "wins", "expected one of score_mean"),
    ],
)
def test_what_cannot_be_compared_is_refused(analyses: list[RoundAnalysis], column: str | None, line: str) -> None:
    with pytest.raises(Invalid, match=line):
        compare(analyses, column)


def test_a_cross_play_has_a_cell_for_each_that_met() -> None:
    by_pair = {(cell.row, cell.column): (cell.score.value, cell.matches) for cell in matrix(DEALS, None).cells}
    assert by_pair == {("a", "b"): (pytest.approx(17 / 3), 3), ("b", "a"): (pytest.approx(4 / 3), 3)}
    by_role = {(cell.row, cell.column, cell.role): cell.score.value for cell in matrix(GAMES, *ROLES).cells}
    assert by_role == {
        ("a", "b", "attacker"): 1,
        ("b", "a", "attacker"): 0,
        ("b", "a", "defender"): -1,
        ("a", "b", "defender"): 0,
    }


def test_a_model_against_itself_has_the_mean_of_both_seats() -> None:
    rows = [FinishedMatch((7, 4), ("a", "a"), "deal", 6), FinishedMatch((0, 1), ("a", "a"), "deal", 6)]
    [cell] = matrix(rows, None).cells
    assert (cell.matches, cell.score.value) == (2, 3)


def test_equal_scores_are_little_in_colour_and_in_ink() -> None:
    [chart] = cross_plays(matrix([FinishedMatch((3, 3), ("a", "b"), "deal", 6)], None))
    rect, text = chart.spec()["layer"]
    low, high = rect["encoding"]["color"]["scale"]["domain"]
    assert low == 3 < high
    assert text["encoding"]["color"]["condition"]["test"]["gte"] > 3


@pytest.mark.parametrize(("scores", "domain"), [((0, 8), (0, 8.4)), ((-1, 1), (-1.2, 1.6)), ((6, 7), (6, 7.05))])
def test_the_colours_of_a_heat_map_change_at_numbers_that_are_short(
    scores: tuple[int, int], domain: tuple[float, float]
) -> None:
    [chart] = cross_plays(matrix([FinishedMatch(scores, ("a", "b"), "deal", 6)], None))
    assert chart.spec()["layer"][0]["encoding"]["color"]["scale"]["domain"] == pytest.approx(domain)


def contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG 2 defines it."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted([light(one), light(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_text_on_a_heat_map_can_be_read_on_each_of_its_colours(theme: str) -> None:
    colours = palette(theme)
    inks = [colours.on_little] * 4 + [colours.on_much] * 3
    assert [contrast(ink, ground) >= 4.5 for ink, ground in zip(inks, colours.scale, strict=True)] == [True] * 7


def test_an_unknown_theme_is_refused() -> None:
    assert palette(LIGHT) != palette(DARK)
    with pytest.raises(Invalid, match="expected light or dark, got 'grey'"):
        ALL[0].spec("grey")
