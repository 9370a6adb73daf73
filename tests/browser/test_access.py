"""For everybody: keyboard alone, a small phone, dark mode, 200 % zoom, and what axe-core finds."""

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from app.matches.clocks import Clocks
from tests.browser.axe import LOOKS, inspector, violations
from tests.browser.conftest import LABELS
from tests.browser.steps import (
    MATCH,
    RESULT,
    faults,
    guess,
    lines,
    offer,
    say,
    see_result,
    sideways,
    tab_to,
    wait_for_answer,
    wait_for_turn,
)
from tests.browser.test_resilience import NO_LINE
from tests.browser.visitor import Visitor
from tests.stack import Stack
from tests.tables import ASKED, negotiation, taboo, two_people

PHONE = {"viewport": {"width": 360, "height": 640}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
ZOOM = {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2}  # what 200 % leaves of 1280 × 900
THINKS = LABELS["quartz-thinks"]


def states(parlor: Stack, visitor: Visitor) -> Iterator[tuple[str, Page]]:
    """Every page, and the match and result pages in their states, one after another in one tab."""
    visitor.forgive("404")
    page = visitor.open(parlor.url)
    yield "home", page
    for details in page.locator("details.options").all():
        details.locator("summary").click()
    yield "home with options", page
    for path in ("/rules/negotiation", "/rules/taboo", "/about", "/privacy", "/nowhere"):
        page.goto(parlor.url + path)
        yield path, page
    for game, table in (
        ("negotiation", negotiation(parlor)),
        ("taboo attacker", taboo(parlor, "attacker", "grandmother")),
        ("taboo defender", taboo(parlor, "defender")),
    ):
        page.goto(table.url)
        wait_for_turn(page)
        yield f"{game}, my turn", page
        say(page, "Hello there, what would you like to begin with?")
        wait_for_answer(page, 3 if "defender" in game else 2)
        yield f"{game}, in conversation", page
        page.get_by_role("button", name="Leave").click()
        yield f"{game}, leaving", page
        page.keyboard.press("Escape")
        page.get_by_role("link", name="Rules").click()
        yield f"{game}, rules", page
        page.keyboard.press("Escape")
    guess(page, "lemon")
    expect(page).to_have_url(RESULT)
    yield "result of taboo", page
    page.goto(negotiation(parlor).url)
    say(page, ASKED)
    wait_for_answer(page, 2)
    offer(page, 1, 0, 0)
    expect(page.locator("#over")).to_be_visible()
    yield "negotiation, over", page
    see_result(page)
    yield "result of negotiation", page
    for game, table in (
        ("negotiation", negotiation(parlor, opponent=THINKS)),
        ("taboo", taboo(parlor, "attacker", opponent=THINKS)),
    ):
        page.goto(table.url)
        say(page, "Hello!")
        expect(page.locator("#typing")).to_contain_text("typing")
        yield f"{game}, partner’s turn", page
    page.goto(parlor.url)
    yield "home with open games", page


def rarer_states(parlor: Stack, visitor: Visitor) -> Iterator[tuple[str, Page]]:
    """What takes a clock, a loss or a question to be seen."""
    visitor.forgive(NO_LINE)
    table, _ = two_people(parlor, "taboo", {"word": "lemon"}, Clocks(turn=62))
    page = visitor.open(table.url)
    expect(page.locator("#presence")).to_contain_text("lost the connection")
    expect(page.locator("#turn-time")).to_have_text("60 seconds left.")
    yield "partner lost, a minute left", page
    visitor.context.set_offline(True)
    say(page, "It is yellow.")
    expect(page.locator("#turn-now")).to_contain_text("Connection lost")
    expect(page.locator("#log")).to_contain_text("Not sent yet")
    yield "connection lost, a message unsent", page
    visitor.context.set_offline(False)
    page.goto(taboo(parlor, "defender").url)
    wait_for_turn(page)
    page.locator("#guess").fill("apple")
    page.locator("#guess-form").get_by_role("button", name="Use my one guess").click()
    yield "taboo, a guess to be confirmed", page
    page.goto(negotiation(parlor).url)
    say(page, ASKED)
    wait_for_answer(page, 2)
    page.locator("#offer").get_by_role("button", name="Make this offer").click()
    yield "negotiation, an offer to be confirmed", page
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Leave").click()
    page.get_by_role("button", name="Leave the game").click()
    expect(page).to_have_url(RESULT)
    yield "result of a game that was left", page


GAP = """() => {
  const [box, button] = ['.choice', 'button'].map((part) => document.querySelector(`form.box-start > ${part}`));
  return button.getBoundingClientRect().top - box.getBoundingClientRect().bottom;
}"""


@pytest.mark.parametrize("width", [390, 1280])
def test_the_question_about_training_stands_apart_from_the_button(home_page: Page, width: int) -> None:
    home_page.set_viewport_size({"width": width, "height": 800})
    assert home_page.evaluate(GAP) >= 8


@pytest.mark.parametrize("look", ["desktop", "phone", "zoom"])
def test_nothing_overlaps_or_scrolls_sideways_and_axe_finds_nothing(
    parlor: Stack, visitors: Callable[..., Visitor], look: str
) -> None:
    # The phone's owner likes it dark; what does not depend on colours and widths is looked for on the desktop alone.
    # Zoomed in, a page has the colours and the structure that it has there.
    options = {"desktop": {}, "phone": {**PHONE, "color_scheme": "dark"}, "zoom": ZOOM}[look]
    visitor = inspector(visitors, **options)
    found = {}
    rarer = rarer_states(parlor, visitor) if look == "desktop" else ()  # they have no colours of their own
    for name, page in chain(states(parlor, visitor), rarer):
        found[name] = faults(page) + ([f"scrolls sideways by {by}"] if (by := sideways(page)) else [])
        if look != "zoom":
            found[name] += violations(page, LOOKS if look == "phone" else None)
    assert {name: each for name, each in found.items() if each} == {}


def test_dark_mode_is_dark(parlor: Stack, visitors: Callable[..., Visitor]) -> None:
    shades = []
    for scheme in ("light", "dark"):
        page = visitors(color_scheme=scheme).open(parlor.url)
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        shades.append(sum(map(int, re.findall(r"\d+", background)[:3])))
    assert shades[0] > 600
    assert shades[1] < 150


@pytest.mark.parametrize("options", [PHONE, ZOOM], ids=["phone", "zoom"])
def test_a_whole_match_of_each_game_is_played(
    parlor: Stack, visitors: Callable[..., Visitor], options: dict[str, Any]
) -> None:
    visitor = visitors(**options)
    page = visitor.open(negotiation(parlor).url)
    say(page, ASKED)
    wait_for_answer(page, 2)
    offer(page, 1, 0, 0)
    see_result(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("It’s a deal.")
    page = visitor.open(taboo(parlor, "defender").url)
    wait_for_answer(page, 1)
    say(page, "Please go on.")
    wait_for_answer(page, 3)
    guess(page, "lemon")
    expect(page).to_have_url(RESULT)
    expect(page.get_by_role("heading", level=1)).to_have_text("You win.")


def test_the_composer_is_in_sight_on_a_phone_whatever_is_said(parlor: Stack, visitors: Callable[..., Visitor]) -> None:
    page = visitors(**PHONE).open(negotiation(parlor, opponent=LABELS["quartz-chats"]).url)
    for ply in range(2, 9, 2):
        say(page, "I want all of it, and I will say so at length. " * 5)
        wait_for_answer(page, ply)
    expect(page.locator("#message")).to_be_in_viewport(ratio=1)
    expect(page.locator("#log li").last).to_be_in_viewport()


def test_the_reason_why_a_guess_is_refused_is_in_sight_on_a_phone(
    parlor: Stack, visitors: Callable[..., Visitor]
) -> None:
    page = visitors(**PHONE).open(taboo(parlor, "defender").url)
    wait_for_answer(page, 1)
    page.locator("#guess").fill("two words")
    page.locator("#guess").press("Enter")
    expect(page.locator("#guess-error")).to_contain_text("one word")
    expect(page.locator("#guess-error")).to_be_in_viewport(ratio=1)


def press(page: Page, selector: str, key: str = "Enter") -> None:
    """Go there with Tab and press a key."""
    tab_to(page, selector)
    page.keyboard.press(key)


@pytest.mark.keyboard
def test_a_negotiation_is_played_with_the_keyboard_alone(home_page: Page) -> None:
    page = home_page
    press(page, "form[action$='/start/negotiation'] > [type=submit]")
    expect(page).to_have_url(MATCH)
    wait_for_turn(page)
    tab_to(page, "#message")
    said = lines(page).count()  # the partner may have begun
    page.keyboard.type("Hello! Let us share.")
    page.keyboard.press("Enter")
    wait_for_answer(page, said + 2)
    press(page, "[data-kind=book] [data-step='1']")
    tab_to(page, "#take-hat")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#take-hat")).to_have_value("1")
    press(page, "#offer [type=submit]")
    expect(page.locator("#offer-dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#offer-dialog")).to_be_hidden()
    press(page, "#offer [type=submit]")
    press(page, "#offer-dialog button[value=yes]")
    expect(page.locator("#over")).to_be_visible()
    press(page, "#over a")
    expect(page).to_have_url(RESULT)


@pytest.mark.keyboard
def test_taboo_is_played_with_the_keyboard_alone(home_page: Page) -> None:
    page = home_page
    press(page, ".box:has([action$='/start/taboo']) summary")
    tab_to(page, "#taboo-role")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#taboo-role")).to_have_value("defender")
    for _ in range(10):  # back to the button, which comes before the options
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.matches(\"form[action$='/start/taboo'] > [type=submit]\")"):
            break
    page.keyboard.press("Enter")
    expect(page).to_have_url(MATCH)
    wait_for_answer(page, 1)
    tab_to(page, "#message")
    page.keyboard.type("Tell me more.")
    page.keyboard.press("Enter")
    wait_for_answer(page, 3)
    tab_to(page, "#guess")
    page.keyboard.type("elephant")
    page.keyboard.press("Enter")
    press(page, "#guess-dialog button[value=yes]")
    expect(page).to_have_url(RESULT)


@pytest.mark.keyboard
def test_the_skip_link_leads_to_the_message(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(negotiation(parlor).url)
    wait_for_turn(page)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_be_focused()
