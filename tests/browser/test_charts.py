"""Charts in a real browser, under the Content-Security-Policy of the pages."""

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from app.analysis.charts import charts_of
from app.analysis.comparisons import compare, compare_differences, cross_plays
from app.analysis.crossplay import CrossPlay, cells
from app.analysis.distributions import distributions
from app.analysis.losses import loss_curve
from app.analysis.paired import paired
from app.analysis.rounds import RoundAnalysis
from app.analysis.themes import DARK, LIGHT, palette
from app.core.config import ROOT
from app.factory import _POLICY
from app.games.match_table import FinishedMatch, of_rows
from tests.browser.visitor import Visitor
from tests.figures import NEGOTIATION, negotiation

SITE = "http://127.0.0.1:4999"  # where nobody listens: `answer` does
ROWS = [
    FinishedMatch((7, 4), ("a", "b"), "deal", 6, 30, first_proposal=4, agreed=True),
    FinishedMatch((0, 10), ("a", "b"), "deal", 5, 20, first_proposal=2, agreed=True),
    FinishedMatch((0, 0), ("a", "a"), "no deal", 12, 50, first_proposal=6),
]
FOUND = of_rows(ROWS)
ROUND = RoundAnalysis(
    round_id=1,
    name="a and b",
    game="negotiation",
    source="selfplay",
    state="done",
    planned=3,
    over=3,
    matches=3,
    partner_weight=0.0,
    players=FOUND.players,
    metrics=negotiation(FOUND, 0),
    distributions=distributions(FOUND, NEGOTIATION),
)
MATRIX = CrossPlay(1, "negotiation", [1], 3, 3, FOUND.players, [None], cells(FOUND, FOUND.players, [None]))
DIFFERENCES = compare_differences([replace(ROUND, paired=paired(of_rows(ROWS[:2]), FOUND.players, NEGOTIATION))])
LOSSES = loss_curve("loss-1", "job 1", [{"event": kind, "step": 1, "loss": 2.0} for kind in ("step", "eval")], 9)
ALL = (*charts_of(ROUND), compare([ROUND]), *([DIFFERENCES] if DIFFERENCES else []), *cross_plays(MATRIX), LOSSES)
CHARTS = {chart.name: chart for chart in ALL}
PAGE = """<!doctype html><html lang="en"><title>Charts</title>
<script type="module" src="/static/js/charts.js"></script><input type="hidden" name="csrf_token" value="t">
{figures}</html>"""
FIGURE = """<figure class="chart" {spec} data-name="{name}" data-save="/save/"><div data-drawing></div>
<p data-drawn hidden><button data-download="svg">SVG</button> <button data-download="pdf">PDF</button></p>
<p data-unsaved hidden>It cannot be saved.</p>
<p data-failed hidden>It cannot be drawn.</p></figure>"""


def answer(route: Route) -> None:
    """A site of charts: the pages' headers, Parlor's static files, and a page a chart."""
    path = route.request.url.removeprefix(SITE)
    headers = {"Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items())}
    if path.startswith("/static/"):
        route.fulfill(path=ROOT / path.removeprefix("/"), headers=headers, content_type="text/javascript")
    elif path.startswith("/spec/"):
        name, _, theme = path.removeprefix("/spec/").partition("?theme=")
        if name in CHARTS:
            route.fulfill(json=CHARTS[name].spec(theme), headers={**headers, "Figure-Signature": f"signed by {name}"})
        else:
            route.fulfill(status=404, headers=headers)
    elif path == "/save/pdf":
        signed = re.search(r"signed by [-\w]+", route.request.post_data or "")
        route.fulfill(body=f"drawn of a spec {signed and signed[0]}", headers=headers, content_type="application/pdf")
    elif path.startswith("/save/"):
        route.fulfill(status=503, headers=headers)
    elif path == "/in-page":
        both = json.dumps({theme: CHARTS["score-1"].spec(theme) for theme in (LIGHT, DARK)})
        template = f'<template id="both">{html.escape(both)}</template>'
        figure = FIGURE.format(spec='data-spec-id="both"', name="score-1")
        route.fulfill(body=PAGE.format(figures=template + figure), headers=headers, content_type="text/html")
    else:
        names = CHARTS if path == "/all" else [path.removeprefix("/")]
        figures = "".join(FIGURE.format(spec=f'data-spec-url="/spec/{name}"', name=name) for name in names)
        route.fulfill(body=PAGE.format(figures=figures), headers=headers, content_type="text/html")


@pytest.fixture
def opened(visitors: Callable[..., Visitor]) -> Callable[..., Page]:
    """Opens a page of that site for a new visitor, who complains of all that the policy forbids."""

    def open_page(path: str, **options: object) -> Page:
        visitor = visitors(accept_downloads=True, **options)
        visitor.context.route(f"{SITE}/**", answer)
        return visitor.open(f"{SITE}{path}")

    return open_page


def rgb(colour: str) -> str:
    """#rrggbb as a browser says it."""
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"


def test_every_chart_is_drawn_under_the_policy_of_the_pages(opened: Callable[..., Page]) -> None:
    page = opened("/all")
    expect(page.locator('figure[data-state="drawn"] svg')).to_have_count(len(CHARTS))
    for chart in CHARTS.values():
        svg = page.locator(f'figure[data-name="{chart.name}"] svg')
        expect(svg).to_contain_text(chart.title)
        expect(
            page.locator(f'figure[data-name="{chart.name}"] [aria-label="{chart.described.sentence}"]')
        ).to_be_visible()


def test_a_label_of_a_chart_may_have_two_lines(opened: Callable[..., Page]) -> None:
    page = opened("/compare-differences")
    for line in ("1: a", "minus b"):
        expect(page.locator("figure svg tspan").get_by_text(line, exact=True)).to_be_visible()
    page = opened("/loss-1")
    for line in ("step 1 is", "the best so far"):
        expect(page.locator("figure svg tspan").get_by_text(line, exact=True)).to_be_visible()


def test_a_chart_follows_light_and_dark(opened: Callable[..., Page]) -> None:
    page = opened("/score-1", color_scheme="light")
    expect(page.locator("figure svg")).to_have_css("background-color", rgb(palette(LIGHT).surface))
    page.emulate_media(color_scheme="dark")
    expect(page.locator("figure svg")).to_have_css("background-color", rgb(palette(DARK).surface))
    expect(page.locator("figure svg")).to_have_count(1)


def test_a_chart_may_stand_in_the_page_itself(opened: Callable[..., Page]) -> None:
    page = opened("/in-page", color_scheme="dark")
    expect(page.locator("figure svg")).to_have_css("background-color", rgb(palette(DARK).surface))


def test_a_chart_fits_a_phone(opened: Callable[..., Page]) -> None:
    page = opened("/score-1", viewport={"width": 360, "height": 700})
    expect(page.locator("figure svg")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_chart_is_saved_as_the_server_draws_it(visitor: Visitor, tmp_path: Path) -> None:
    visitor.context.route(f"{SITE}/**", answer)
    visitor.forgive("503")
    page = visitor.open(f"{SITE}/score-1")
    with page.expect_download() as download:
        page.get_by_role("button", name="PDF").click()
    assert download.value.suggested_filename == "score-1.pdf"
    download.value.save_as(tmp_path / "chart")
    assert (tmp_path / "chart").read_bytes() == b"drawn of a spec signed by score-1"
    with page.expect_response(lambda response: response.status == 503):
        page.get_by_role("button", name="SVG").click()
    expect(page.get_by_text("It cannot be saved.")).to_be_visible()


def test_a_chart_that_does_not_come_says_so(visitor: Visitor) -> None:
    visitor.context.route(f"{SITE}/**", answer)
    visitor.forgive("404|/spec/missing")
    page = visitor.open(f"{SITE}/missing")
    expect(page.get_by_text("It cannot be drawn.")).to_be_visible()
    expect(page.get_by_role("button")).to_have_count(0)
