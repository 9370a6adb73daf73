"""Campaigns and lineages in a real browser: started from the form, followed as they go on, and open to everybody."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import update

from app.core.extensions import writing
from app.games import metrics_of
from app.games.metrics import Use
from app.models import Campaign, RoundRow
from app.rounds import lifecycle
from app.rounds.spec import RoundSpec
from tests.browser.admin_campaigns import campaign_states, furnish_campaigns
from tests.browser.admin_states import sign_in
from tests.browser.axe import faults_in_each_look, inspector
from tests.browser.steps import sideways
from tests.browser.visitor import Visitor
from tests.campaigns import add_local, campaign_of, change, made_up
from tests.stack import Stack
from tests.tables import database

BASE = "quartz-base"


@pytest.fixture
def admin(parlor: Stack, visitor: Visitor) -> Page:
    """A tab in which an experimenter has signed in by a link."""
    page = visitor.context.new_page()
    sign_in(parlor, page)
    return page


@pytest.fixture(scope="module")
def base(parlor: Stack) -> str:
    """A local model whose checkpoint is nowhere, so that nobody can play it."""
    with database(parlor) as engine, ThreadPoolExecutor(1) as thread:
        thread.submit(add_local, engine, BASE).result()
    return BASE


@pytest.mark.keyboard
def test_a_campaign_is_started_from_the_form_and_says_why_it_cannot_go_on(
    parlor: Stack, admin: Page, visitor: Visitor, base: str
) -> None:
    visitor.forgive("400")
    admin.goto(f"{parlor.url}/admin/campaigns/new?base={base}")
    expect(admin.get_by_label("λ", exact=True)).to_be_hidden()
    admin.get_by_label("Objective").select_option("lambda")
    admin.get_by_label("λ", exact=True).fill("7")
    admin.get_by_label("Iterations").fill("2")
    admin.get_by_role("button", name="Start the campaign").click()
    expect(admin.get_by_role("alert")).to_contain_text("λ: expected a number from -1 to 1, got '7'")
    expect(admin.get_by_label("λ", exact=True)).to_be_focused()
    expect(admin.get_by_label("Iterations")).to_have_value("2")
    admin.get_by_label("λ", exact=True).fill("0.5")
    admin.get_by_label("Matches of an evaluation").fill("4")
    admin.get_by_label("Name", exact=True).fill("quartz-loop")
    admin.get_by_role("button", name="Start the campaign").click()
    expect(admin).to_have_url(re.compile(r"/admin/campaigns/\d+$"))
    expect(admin.get_by_role("heading", level=1)).to_have_text("quartz-loop")
    expect(admin.locator("#results tbody tr")).to_have_count(1)
    # A worker finds no checkpoint, and the page says so by itself.
    expect(admin.locator("#live .note")).to_contain_text("It stopped:")
    expect(admin.locator("#head .tag")).to_have_text("failed")
    expect(admin.get_by_role("button", name="Resume")).to_be_visible()


def test_a_page_follows_a_campaign_and_its_figure_appears_and_grows(
    parlor: Stack, admin: Page, base: str, visitors: Callable[..., Visitor]
) -> None:
    with database(parlor) as engine, ThreadPoolExecutor(1) as thread:

        def do(work: Callable[..., object], *arguments: object, **values: object) -> object:
            return thread.submit(work, engine, *arguments, **values).result()

        def begun() -> tuple[int, int]:
            number = campaign_of(engine, base, "quartz-followed")
            with writing(engine) as session:
                playing = RoundSpec(game="negotiation", models=("scripted",), matches=40, seed=1)
                played = lifecycle.create(session, playing, queued=False).id
                session.execute(update(Campaign).where(Campaign.id == number).values(status="running"))
            change(engine, number, 0, evaluation_id=played)
            return number, played

        def play(number: int, over: int) -> None:
            with writing(engine) as session:
                session.execute(update(RoundRow).where(RoundRow.id == number).values(finished=over))

        number, played = thread.submit(begun).result()
        admin.goto(f"{parlor.url}/admin/campaigns/{number}")
        admin.evaluate("window.here = true")
        expect(admin.locator("#progress")).to_have_text("The base is being evaluated")
        thread.submit(play, played, 10).result()
        expect(admin.locator("#live [data-figure=done]")).to_have_text("10")
        expect(admin.locator("#live progress")).to_have_js_property("value", 10)
        expect(admin.locator("#figure figure")).to_have_count(0)
        do(change, number, 0, figures=made_up(0))
        drawing = admin.locator("#figure figure[data-state=drawn]")
        expect(drawing.locator("svg")).to_be_visible()
        expect(drawing.locator("[data-sentence]")).to_contain_text("the base alone: Mean score 1.80")
        do(change, number, 1, round_id=played, figures=made_up(1))
        expect(drawing.locator("[data-sentence]")).to_contain_text(
            "1 iteration after the base: Mean score 1.80 at first, 3.45 now"
        )
        expect(admin.locator("#results tbody tr")).to_have_count(2)
        expect(admin.locator("#said")).to_contain_text("Iteration 2 of 3")
        assert admin.evaluate("window.here === true")
    with admin.expect_download() as saved:
        admin.get_by_role("button", name="Save as PNG").click()
    assert saved.value.suggested_filename == f"campaign-{number}.png"
    plain = visitors(java_script_enabled=False, storage_state=admin.context.storage_state())
    page = plain.open(admin.url)
    expect(page.locator("#results tbody tr")).to_have_count(2)
    page.get_by_text("See the numbers").click()
    expect(page.locator("[data-numbers] thead th")).to_have_count(3)  # two models beside the names of figures
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#head .tag")).to_have_text(re.compile("cancelling|cancelled"))


def test_all_figures_of_the_iterations_are_read_beside_their_model_on_a_page_that_stays_in_its_width(
    parlor: Stack, admin: Page, base: str
) -> None:
    shown = [each.name for each in metrics_of("negotiation").shown(Use.EVALUATION)]
    figures = {name: {"value": 10.456, "low": 10.123, "high": 10.789} for name in shown}
    with database(parlor) as engine, ThreadPoolExecutor(1) as thread:
        number = thread.submit(campaign_of, engine, base, "quartz-wide").result()
        thread.submit(change, engine, number, 0, figures=figures).result()
    admin.set_viewport_size({"width": 1280, "height": 900})
    admin.goto(f"{parlor.url}/admin/campaigns/{number}")
    box = admin.locator("#results")
    assert box.locator("thead th").count() == len(shown) + 3
    for place in (0, box.evaluate("each => each.scrollWidth")):
        box.evaluate("(each, place) => { each.scrollLeft = place }", place)
        model = box.get_by_role("link", name=base).bounding_box()
        assert model is not None
        assert model["x"] >= 0
        assert model["x"] + model["width"] < 300
    last = box.locator("thead th").last.bounding_box()
    assert last is not None
    assert last["x"] + last["width"] <= 1280
    assert sideways(admin) == 0


def test_axe_finds_nothing_on_the_pages_of_campaigns_and_lineages(
    parlor: Stack, visitors: Callable[..., Visitor]
) -> None:
    visitor = inspector(visitors)
    visitor.forgive("400")
    campaigns = furnish_campaigns(parlor)
    page = visitor.context.new_page()
    sign_in(parlor, page)
    found = {name: faults_in_each_look(page) for name in campaign_states(parlor, page, campaigns)}
    assert {name: each for name, each in found.items() if each} == {}
