"""Clocks, sound, and what two people see of each other's connection."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from app.matches.clocks import Clocks
from tests.browser.steps import faults, say, wait_for_turn
from tests.browser.visitor import Visitor
from tests.stack import Stack
from tests.tables import taboo, two_people

WORD = {"word": "lemon"}


def test_two_people_see_each_others_connection_lost_and_found(parlor: Stack, visitors: Callable[..., Visitor]) -> None:
    first, second = two_people(parlor, "taboo", WORD)
    one, two = visitors(), visitors(viewport={"width": 390, "height": 844})
    page = one.open(first.url)
    other = two.open(second.url)
    expect(other.locator("#turn-now")).to_have_text("Your partner’s turn.")
    other.goto(parlor.url)  # gone, and not for a moment
    expect(page.locator("#presence")).to_have_text("Your partner has lost the connection. Their seat is kept.")
    wait_for_turn(page)
    assert faults(page) == []
    other.goto(second.url)
    expect(page.locator("#presence")).to_have_text("Your partner is back.")
    say(page, "It is yellow.")
    wait_for_turn(other)
    expect(page.locator("#presence")).to_be_empty()


def test_the_clock_counts_down_from_what_the_server_says_is_left(parlor: Stack, visitor: Visitor) -> None:
    first, _ = two_people(parlor, "taboo", WORD, Clocks(turn=90))
    visitor.context.clock.set_system_time("2031-01-01T00:00:00Z")  # a machine whose own time is years ahead
    page = visitor.open(first.url)
    clock = page.locator("#clock")
    expect(clock).to_have_text(re.compile(r"^1:[0-3]\d left"))
    shown = clock.inner_text()
    expect(clock).not_to_have_text(shown)
    say(page, "It is yellow.")
    expect(page.locator("#turn-now")).to_have_text("Your partner’s turn.")
    expect(clock).to_have_text(re.compile(r"^1:[23]\d left"))  # the partner's clock, from the beginning


def test_a_clock_that_runs_out_ends_the_game_on_the_page(parlor: Stack, visitor: Visitor) -> None:
    first, _ = two_people(parlor, "taboo", WORD, Clocks(match=3))
    page = visitor.open(first.url)
    expect(page.locator("#clock")).to_have_text(re.compile(r"^0:0\d left in the game"), use_inner_text=True)
    expect(page.locator("#turn-now")).to_have_text("This game is over.")
    expect(page.locator("#turn-more")).to_have_text("The time ran out, so nobody scores.")
    expect(page.locator("#clock")).to_be_hidden()
    page.get_by_role("link", name="See the result").click()
    expect(page.locator("main")).to_contain_text("The time ran out, so nobody scores.")


def tones(page: Page) -> int:
    """How many tones the page has played."""
    return int(page.evaluate("window.tones"))


def test_a_sound_is_heard_at_ones_turn_once_it_is_switched_on(parlor: Stack, visitors: Callable[..., Visitor]) -> None:
    one = visitors()
    one.context.add_init_script(
        "window.tones = 0; const start = OscillatorNode.prototype.start;"
        "OscillatorNode.prototype.start = function (...when) { window.tones += 1; start.apply(this, when); };"
    )
    page = one.open(taboo(parlor, "attacker").url)
    switch = page.get_by_role("button", name="Sound")
    wait_for_turn(page)
    expect(switch).to_have_attribute("aria-pressed", "false")
    say(page, "It is yellow.")
    expect(page.locator("#log li[data-key]")).to_have_count(2)
    assert tones(page) == 0
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "true")
    assert tones(page) == 2
    page.reload()
    expect(switch).to_have_attribute("aria-pressed", "true")  # this browser remembers
    wait_for_turn(page)
    assert tones(page) == 0
    say(page, "It is sour.")
    expect(page.locator("#log li[data-key]")).to_have_count(4)
    assert tones(page) == 2
