"""A turn that runs out in a browser: the page warns before, and a study asks whether the person is still there."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from playwright.sync_api import expect

from app.core.extensions import reading, writing
from app.matches.clocks import Clocks
from app.models import Enrolment
from app.studies import matches
from app.web import tickets
from tests.browser.steps import faults
from tests.browser.visitor import Visitor
from tests.stack import Stack
from tests.study_matches import enrolled, go_to, loaded, move_back
from tests.tables import database, settings_of, two_people

PHONE = {"width": 390, "height": 844}
WORD = {"word": "lemon"}


def a_turn_with(parlor: Stack, total: float, left: float) -> str:
    """The address of a match whose first seat is to move, with so many seconds left of its turn."""
    first, _ = two_people(parlor, "taboo", WORD, Clocks(turn=total))
    with database(parlor) as engine, writing(engine) as session:
        move_back(session, first.match, timedelta(seconds=total - left))
    return first.url


def test_half_time_is_seen_and_said(parlor: Stack, visitors: Callable[..., Visitor]) -> None:
    page = visitors(viewport=PHONE).open(a_turn_with(parlor, 240, 124))
    expect(page.locator("#turn")).to_have_class("turn turn-soon")
    expect(page.locator("#turn-now")).to_have_text("Half of your time is over. Your turn.")
    expect(page.locator("#turn-more")).to_have_text("If it runs out, the game is over and nobody scores.")
    expect(page.locator("#turn-more")).to_be_visible()
    expect(page.locator("#turn-time")).to_have_text(re.compile(r"^Half of the time is over: \d+ seconds left\.$"))
    expect(page).to_have_title(re.compile(r"^[12]:\d\d left: Your turn: "))
    assert faults(page) == []


def test_the_last_seconds_are_seen_said_and_heard(parlor: Stack, visitors: Callable[..., Visitor]) -> None:
    visitor = visitors(viewport=PHONE)
    visitor.context.add_init_script(
        "window.tones = 0; const start = OscillatorNode.prototype.start;"
        "OscillatorNode.prototype.start = function (...when) { window.tones += 1; start.apply(this, when); };"
    )
    page = visitor.open(a_turn_with(parlor, 600, 30))
    page.get_by_role("button", name="Sound").click()
    heard = page.evaluate("window.tones")
    expect(page.locator("#turn")).to_have_class("turn turn-last", timeout=60_000)
    expect(page.locator("#turn-now")).to_have_text("Your time is nearly over. Your turn.")
    expect(page.locator("#turn-alarm")).to_have_text(re.compile(r"^\d+ seconds? left\.$"))
    expect(page).to_have_title(re.compile(r"^0:\d\d left: Your turn: "))
    assert page.evaluate("window.tones") >= heard + 3
    assert faults(page) == []


def test_a_short_turn_warns_once(parlor: Stack, visitors: Callable[..., Visitor]) -> None:
    page = visitors(viewport=PHONE).open(a_turn_with(parlor, 30, 20))
    expect(page.locator("#turn")).not_to_have_class(re.compile("turn-soon"))
    expect(page.locator("#turn")).to_have_class("turn turn-last", timeout=20_000)


def test_a_study_says_when_its_turns_warn(parlor: Stack, visitors: Callable[..., Visitor], tmp_path: Path) -> None:
    with database(parlor) as engine, writing(engine) as session:
        turns = ("limits: {turn: 2 min", "idle: {warn: 90 s, end: 2 min}\n  limits: {turn: 2 min")
        version = loaded(session, tmp_path, "two-models", ("b: tiny", "b: quartz-thinks"), turns)
        progress = enrolled(session, version)
        record = matches.start(session, progress, go_to(progress, "match 3"))
        move_back(session, record.id, timedelta(seconds=75))
    ticket = tickets.issue(settings_of(parlor), record.id, 0)
    page = visitors(viewport=PHONE).open(f"{parlor.url}/play/{record.id}?ticket={ticket}")
    expect(page.locator("#turn")).not_to_have_class(re.compile("turn-soon"))  # though half of it is over
    expect(page.locator("#turn")).to_have_class("turn turn-soon", timeout=60_000)
    expect(page.locator("#turn-now")).to_have_text("Your time is running out. Your turn.")
    expect(page.locator("#turn-time")).to_have_text(re.compile(r"^(30|2\d) seconds left\.$"))
    assert faults(page) == []


def test_after_a_missed_turn_a_study_asks_and_a_press_goes_on(
    parlor: Stack, visitors: Callable[..., Visitor], tmp_path: Path
) -> None:
    with database(parlor) as engine, writing(engine) as session:
        version = loaded(session, tmp_path, "two-models", ("b: tiny", "b: quartz-thinks"))
        progress = enrolled(session, version)
        record = matches.start(session, progress, go_to(progress, "match 3"))
        move_back(session, record.id, timedelta(seconds=112))  # of two minutes
        token, number = progress.enrolment.token, progress.enrolment.id
    ticket = tickets.issue(settings_of(parlor), record.id, 0)
    page = visitors(viewport=PHONE).open(f"{parlor.url}/play/{record.id}?ticket={ticket}")
    page.wait_for_url(f"**/s/me/{token}", timeout=60_000)
    expect(page.locator("h1")).to_have_text("Are you still there?")
    expect(page.locator("[data-countdown]")).to_have_text(re.compile(r"^[45]:\d\d$"))
    expect(page).to_have_title(re.compile(r"^[45]:\d\d left: Are you still there\?"))
    assert faults(page) == []
    page.get_by_role("button", name="I am here, go on").click()
    expect(page.locator("h1")).to_have_text("Some questions")
    assert faults(page) == []
    with database(parlor) as engine, reading(engine) as session:
        assert session.get_one(Enrolment, number).ending is None
    page.goto(f"{parlor.url}/s/me/{token}/report")
    expect(page.get_by_role("radio")).to_have_count(6)
    assert faults(page) == []
