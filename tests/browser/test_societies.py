"""A society in a real browser: stepped through by slider and keys, an agent opened, and open to everybody."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import expect
from sqlalchemy import Engine, update

from app.core.config import Settings
from app.core.extensions import writing
from app.models import SocietyInteraction
from tests.browser.admin_states import sign_in
from tests.browser.axe import faults_in_each_look, inspector
from tests.browser.visitor import Visitor
from tests.societies import make_society, run
from tests.stack import Stack
from tests.tables import database, settings_of


@pytest.fixture(scope="module")
def society(parlor: Stack) -> int:
    """A society of nine agents that has gone through three iterations; in each the ratings differ."""
    with database(parlor) as engine, ThreadPoolExecutor(1) as thread:  # Playwright has the loop of this one
        return thread.submit(_made, engine, settings_of(parlor)).result()


def _made(engine: Engine, settings: Settings) -> int:
    number = make_society(engine, "scripted-agent", observers=["scripted-observer"], size=3, iterations=3)
    run(engine, settings, number)
    with writing(engine) as session:
        table = SocietyInteraction
        for iteration, rating in enumerate((2, 3.5, 6)):
            of = table.society_id == number, table.iteration == iteration
            session.execute(update(table).where(*of).values(alignment_after=rating))
    return number


def test_a_page_that_was_open_from_the_start_shows_ratings_and_no_longer_that_there_are_none(
    parlor: Stack, visitor: Visitor
) -> None:
    with database(parlor) as engine, ThreadPoolExecutor(1) as thread:
        number = make_society(engine, "scripted-agent", observers=["scripted-observer"], size=3, iterations=1)
        admin = visitor.context.new_page()
        sign_in(parlor, admin)
        admin.goto(f"{parlor.url}/admin/societies/{number}")
        nothing = admin.get_by_text("No interaction is over yet.")
        expect(nothing).to_be_visible()
        thread.submit(run, engine, settings_of(parlor), number).result()
        expect(admin.locator("#head .tag")).to_have_text("done")
        expect(admin.locator("#grid button").first).to_have_text(re.compile(r"\d"))
        expect(nothing).to_be_hidden()


@pytest.mark.keyboard
def test_a_society_is_stepped_through_and_its_agents_are_opened(
    parlor: Stack, visitors: Callable[..., Visitor], society: int
) -> None:
    admin = inspector(visitors).context.new_page()
    sign_in(parlor, admin)
    admin.goto(f"{parlor.url}/admin/societies/{society}?iteration=1&agent=4")
    cells = admin.locator("#grid button")
    expect(admin.locator("#charts figure[data-state=drawn] svg")).to_have_count(2)
    expect(cells).to_have_text(["2"] * 9)
    expect(admin.get_by_role("button", name="Play")).to_be_visible()

    admin.get_by_role("slider", name="Iteration").focus()
    admin.keyboard.press("ArrowRight")
    expect(cells).to_have_text(["3.5"] * 9)
    expect(admin.locator("#where")).to_have_text("2 of 3")
    expect(admin.locator("#chosen-part")).to_have_attribute("data-iteration", "2")
    expect(admin.locator("#links .link-in")).to_have_count(2)
    marks = admin.locator("#charts [class*=shown_marks] line")
    expect(marks).to_have_count(2)  # in the panels of alignment and of engagement
    before = marks.first.bounding_box()
    admin.keyboard.press("ArrowRight")
    expect(admin.locator("#chosen-part")).to_have_attribute("data-iteration", "3")
    expect(marks).to_have_count(2)
    after = marks.first.bounding_box()
    assert before is not None
    assert after is not None
    assert after["x"] > before["x"]
    admin.keyboard.press("ArrowLeft")
    expect(admin.locator("#chosen-part")).to_have_attribute("data-iteration", "2")
    admin.get_by_label("Show", exact=True).select_option("drift")
    expect(cells).to_have_text(["+1.5"] * 9)

    cells.nth(4).focus()
    admin.keyboard.press("ArrowDown")
    admin.keyboard.press("ArrowRight")
    admin.keyboard.press("ArrowRight")  # at the edge
    expect(cells.nth(8)).to_be_focused()
    expect(admin.get_by_role("button", name="Agent 3, 3, started bad: +1.5")).to_have_attribute("aria-pressed", "true")
    expect(admin.get_by_role("heading", name="Agent 3, 3")).to_be_visible()
    expect(admin).to_have_url(re.compile(r"\?iteration=2&agent=8$"))
    expect(admin.get_by_label("Go to an agent")).to_have_value("8")
    assert faults_in_each_look(admin) == []

    admin.get_by_role("link", name="Memory and all answers").click()
    expect(admin.get_by_role("heading", level=1)).to_have_text("Agent 3, 3")
    expect(admin.get_by_role("heading", name=re.compile("^Iteration"))).to_have_count(3)
    assert faults_in_each_look(admin) == []
    for page in (
        "/admin/societies/new",
        "/admin/societies",
        f"/admin/compare/societies?run={society}",
        f"/admin/societies/{society}/data",
    ):
        admin.goto(parlor.url + page)
        assert faults_in_each_look(admin) == []
