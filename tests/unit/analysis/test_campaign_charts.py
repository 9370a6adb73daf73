"""The figure of a campaign: its panels, its reference lines, and what it says to whoever does not see it."""

import json
import re
from typing import Any

import pytest

from app.analysis import drawing
from app.analysis.campaign_charts import Point, figure, references
from app.analysis.chart import Chart
from app.analysis.figure_files import SVG
from app.analysis.themes import THEMES
from app.core.config import ROOT
from tests.campaigns import made_up


def drawn(game: str = "negotiation", models: int = 4, **changed: Any) -> Chart:
    points = [Point(number, f"loop-{number}", made_up(number, game) | changed) for number in range(models)]
    found = figure("campaign-1", "campaign 1 (loop)", game, 5, points)
    assert found
    return found


def panels(chart: Chart) -> dict[str, Any]:
    return {each["title"]["text"]: each for each in chart.spec()["concat"]}


def test_a_negotiation_has_four_panels_with_a_value_and_an_interval_for_every_model() -> None:
    chart = drawn()
    found = panels(chart)
    assert list(found) == ["Mean score", "Agreement", "Pareto-optimal deals", "Length of matches"]
    assert [len(each["data"]["values"]) for each in found.values()] == [4, 4, 8, 4]
    lines = {each["line"] for each in found["Pareto-optimal deals"]["data"]["values"]}
    assert lines == {"of agreed games", "of all games"}
    first = found["Mean score"]["data"]["values"][0]
    told = made_up(0)["score_mean"]
    assert {name: first[name] for name in told} == told
    assert {each["encoding"]["x"]["scale"]["domain"][1] for each in found.values()} == {5}  # as many as there will be


def test_evaluations_in_other_conditions_are_lines_beside_the_first_one() -> None:
    ratio = {
        "score_ratio": {"value": 2.0, "low": 1.5, "high": 2.5},
        "unspoken_rate": {"value": 0.2, "low": None, "high": None},
    }
    further = {"greedy": made_up(1) | ratio, "against scripted": {"score_mean": {"value": 1.5, "low": 1, "high": 2}}}
    points = [Point(number, f"loop-{number}", made_up(number) | ratio, further) for number in range(3)]
    chart = figure("campaign-1", "campaign 1 (loop)", "negotiation", 5, points)
    assert chart
    lines = {
        title: list(dict.fromkeys(each["line"] for each in panel["data"]["values"]))
        for title, panel in panels(chart).items()
    }
    assert lines["Mean score"] == ["as played", "greedy", "against scripted"]
    assert lines["Agreement"] == lines["Mean score ÷ the base's"] == ["as played", "greedy"]
    assert lines["Length of matches"] == ["length"]
    assert lines["Deals never said in the talk"] == ["as played", "greedy"]
    assert [row[2] for row in chart.described.rows[:3]] == ["as played", "greedy", "against scripted"]
    assert "against scripted" in drawing.draw(chart, SVG).decode()


def test_taboo_has_outcomes_turns_and_scores() -> None:
    found = panels(drawn("taboo"))
    assert list(found) == ["How games ended", "Turns of the attacker", "Mean scores"]
    assert len({each["line"] for each in found["How games ended"]["data"]["values"]}) == 4


@pytest.mark.parametrize(("game", "scores"), [("negotiation", [5.0, 6.6, 7.4]), ("negotiation", []), ("taboo", [])])
def test_reference_lines_are_what_others_would_have_got_in_the_same_matches(game: str, scores: list[float]) -> None:
    names = ("random_score_mean", "demand_score_mean", "best_score_mean")
    measured = {name: {"value": value, "low": None, "high": None} for name, value in zip(names, scores, strict=False)}
    assert [score for score, _ in references(game, measured)] == scores
    chart = drawn(game, **measured)
    held = re.findall(r'"score": ([\d.]+)', json.dumps(chart.spec()["concat"][0]["layer"]))
    assert [float(score) for score in dict.fromkeys(held)] == scores
    assert ("random complementary split" in chart.described.sentence) == bool(scores)


def test_its_table_and_its_sentence_say_the_same_as_the_picture() -> None:
    chart = drawn(models=2)
    assert "Campaign 1 (loop), 1 iteration after the base: Mean score 1.80 at first, 3.45 now." in (
        chart.described.sentence
    )
    assert chart.described.rows[1][:4] == ("1", "loop-1", "as played", "3.45 (3.25 to 3.65)")
    assert all(len(row) == len(chart.described.header) for row in chart.described.rows)


def test_a_figure_of_nothing_is_no_point() -> None:
    chart = drawn(agreed_pareto_rate={"value": None, "low": None, "high": None})
    assert len(panels(chart)["Pareto-optimal deals"]["data"]["values"]) == 4
    assert figure("campaign-1", "campaign 1", "negotiation", 5, []) is None


@pytest.mark.parametrize("theme", THEMES)
def test_it_is_drawn_in_the_colours_of_the_pages(theme: str) -> None:
    tokens = set(re.findall(r"#[0-9a-f]{6}", (ROOT / "static/css/tokens.css").read_text()))
    for chart in (drawn(), drawn("taboo")):
        assert set(re.findall(r"#[0-9a-f]{6}", json.dumps(chart.spec(theme)))) <= tokens
        svg = drawing.draw(chart, SVG, theme).decode()
        assert all(title in svg for title in panels(chart))
