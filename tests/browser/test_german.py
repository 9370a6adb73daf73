"""Whole matches in German on a phone, with nothing of our own left in English."""

import re
from collections.abc import Callable, Iterator
from functools import cache

import pytest
from playwright.sync_api import Page, expect

from app.web.translations import read_catalog
from tests.browser.axe import inspector, violations
from tests.browser.conftest import LABELS
from tests.browser.steps import (
    MATCH,
    RESULT,
    faults,
    guess,
    offer,
    say,
    see_result,
    sideways,
    wait_for_answer,
    wait_for_turn,
)
from tests.browser.test_access import PHONE
from tests.browser.visitor import Visitor
from tests.stack import Stack
from tests.tables import ASKED, negotiation, taboo

NAMES = {"Parlor", "English", "Deutsch", "×", *LABELS.values()}
# What a reader sees or hears, element by element; what is marked as English is meant to be.
SHOWN = """() => {
  const english = (el) => el.closest('[lang]').lang === 'en';
  const seen = (el) => el.checkVisibility({ visibilityProperty: true }) && !el.closest('script, style, noscript, code');
  const found = [document.title];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const el = walker.currentNode.parentElement;
    if (seen(el) && !english(el)) found.push(walker.currentNode.textContent);
  }
  const said = ['aria-label', 'placeholder', 'title', 'alt', 'aria-valuetext'];
  for (const el of document.querySelectorAll('body *')) {
    if (seen(el)) found.push(...said.map((name) => el.getAttribute(name) ?? ''));
  }
  return found;
}"""


@cache
def german() -> re.Pattern[str]:
    """Any run of translated texts, each whole or, around what is set in bold, in its pieces."""
    known = {"Parlor"}
    for message in read_catalog("de"):
        for text in [message.string] if isinstance(message.string, str) else message.string or ():
            if message.id:
                pieces = re.split(r"%\(\w+\)s", text.removesuffix("."))  # as the title of a tab has it
                known |= {re.escape(piece.strip()) for piece in pieces if len(piece.strip()) > 3}
                known.add(r"[^.!?]{1,60}?".join(map(re.escape, pieces)))
    alternatives = "|".join(sorted(known, key=len, reverse=True))
    return re.compile(rf"(?:(?:{alternatives})[\s:.,]*)+")


def not_german(page: Page) -> list[str]:
    """What is shown that no translation knows."""
    shown = {re.sub(r"\s+", " ", text).strip(": ()") for text in page.evaluate(SHOWN)}
    words = {text for text in shown if re.search(r"[^\W\d_]{2}", text)} - NAMES
    return sorted(text for text in words if not german().fullmatch(text))


@pytest.fixture
def look(parlor: Stack, visitors: Callable[..., Visitor]) -> Iterator[Callable[[Page, str], None]]:
    """Looks at a page, in German, for words, layout and what axe-core finds; all that was found is told at the end."""
    found: dict[str, list[str]] = {}

    def look_at(page: Page, name: str) -> None:
        found[name] = [
            *(f"not German: {text}" for text in not_german(page)),
            *violations(page),
            *faults(page),
            *(["scrolls sideways"] if sideways(page) else []),
        ]
        assert page.evaluate("document.documentElement.lang") == "de"

    yield look_at
    assert {name: each for name, each in found.items() if each} == {}


@pytest.fixture
def phone(visitors: Callable[..., Visitor]) -> Visitor:
    """A visitor whose phone speaks German."""
    return inspector(visitors, **PHONE, locale="de-DE")


Look = Callable[[Page, str], None]


def test_the_pages_around_the_games_are_german(parlor: Stack, phone: Visitor, look: Look) -> None:
    phone.forgive("404")
    page = phone.open(parlor.url)
    look(page, "home")
    for details in page.locator("details.options").all():
        details.locator("summary").click()
    look(page, "home with options")
    for path in ("/rules/negotiation", "/rules/taboo", "/about", "/privacy", "/nowhere", "/sign-in", "/enter/none"):
        page.goto(parlor.url + path)
        look(page, path)


def test_a_negotiation_is_played_in_german(parlor: Stack, phone: Visitor, look: Look) -> None:
    page = phone.open(negotiation(parlor).url)
    expect(page).to_have_title("Du bist dran: Deal or No Deal")
    wait_for_turn(page)
    look(page, "my turn")
    page.locator("#message").press("Enter")
    expect(page.locator("#message-error")).to_have_text("Bitte schreib erst etwas.")
    say(page, "\x07")
    expect(page.locator("#message-error")).to_contain_text("Darin ist ein Zeichen, das sich nicht anzeigen lässt.")
    look(page, "refused")
    page.locator("#message").fill("")
    say(page, ASKED)
    wait_for_answer(page, 2)
    page.locator("#offer-sum").scroll_into_view_if_needed()
    worth = page.locator("#offer-sum").bounding_box()
    assert worth is not None
    page.mouse.click(worth["x"] + worth["width"] / 2, worth["y"] + worth["height"] / 2)
    page.get_by_role("button", name="Ein Buch mehr").click()
    look(page, "in conversation")
    page.locator("#leave").click()
    look(page, "leaving")
    page.keyboard.press("Escape")
    page.locator("#rules-link").click()
    look(page, "rules")
    page.keyboard.press("Escape")
    page.locator("#offer [type=submit]").click()
    expect(page.locator("#offer-words")).to_have_text(
        "Du möchtest 1\u00a0Buch, für dich 10\u00a0Punkte wert. Deinem Gegenüber bleibt: 2\u00a0Hüte und 2\u00a0Bälle."
        " Ein Angebot ist endgültig.",
        use_inner_text=True,
    )
    look(page, "asked")
    page.locator("#offer-dialog [value=yes]").click()
    expect(page.locator("#turn-now")).to_have_text("Abgemacht.")
    see_result(page)
    look(page, "result")


def test_a_game_of_taboo_is_played_in_german_from_either_side(parlor: Stack, phone: Visitor, look: Look) -> None:
    page = phone.open(taboo(parlor, "attacker", "grandmother").url)
    wait_for_turn(page)
    look(page, "with the word")
    say(page, "Your grandmothers, how are they?")
    expect(page.locator("#message-error")).to_contain_text("Darin scheint „grandmothers“ vorzukommen.")
    look(page, "warned")
    page.locator("#message").fill("")
    say(page, "Hello there, who is coming for dinner?")
    wait_for_answer(page, 2)
    look(page, "in conversation")
    page.goto(taboo(parlor, "defender").url)
    wait_for_turn(page)
    look(page, "without the word")
    page.locator("#guess-form [type=submit]").click()
    expect(page.locator("#guess-error")).to_have_text("Bitte schreib erst ein Wort hinein.")
    page.locator("#guess").fill("lantern")
    page.locator("#guess-form [type=submit]").click()
    look(page, "asked")
    page.keyboard.press("Escape")
    guess(page, "lemon")
    expect(page).to_have_url(RESULT)
    expect(page.get_by_role("heading", level=1)).to_have_text("Du hast gewonnen.")
    look(page, "result")


def test_offers_that_do_not_fit_and_a_game_that_is_left_are_told_in_german(
    parlor: Stack, phone: Visitor, look: Look
) -> None:
    page = phone.open(negotiation(parlor, config={"objective": "comp"}).url)
    say(page, ASKED)
    wait_for_answer(page, 2)
    offer(page, 1, 1, 1)
    see_result(page)
    look(page, "no deal")
    page.goto(negotiation(parlor, opponent=LABELS["quartz-thinks"]).url)
    say(page, ASKED)
    expect(page.locator("#typing")).to_have_text("Dein Gegenüber schreibt")
    look(page, "partner’s turn")
    page.locator("#leave").click()
    page.locator("#leave-dialog [value=yes]").click()
    expect(page).to_have_url(RESULT)
    look(page, "left")


def test_the_language_is_switched_in_the_middle_of_a_match_and_nothing_is_lost(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(negotiation(parlor).url)
    say(page, ASKED)
    wait_for_answer(page, 2)
    page.locator("#message").fill("Half a sentence")
    address = page.url
    page.get_by_role("button", name="Deutsch").click()
    expect(page.locator("html")).to_have_attribute("lang", "de")
    assert page.url == address
    assert MATCH.search(address)
    wait_for_turn(page)
    expect(page.locator("#message")).to_have_value("Half a sentence")
    expect(page.locator("#log li[data-key='0'] .who")).to_contain_text("Du")
    offer(page, 1, 0, 0)
    expect(page.locator("#turn-now")).to_have_text("Abgemacht.")


def test_the_switch_works_without_scripts(parlor: Stack, visitors: Callable[..., Visitor]) -> None:
    page = visitors(java_script_enabled=False).open(parlor.url + "/rules/taboo")
    page.get_by_role("button", name="Deutsch").click()
    expect(page).to_have_url(parlor.url + "/rules/taboo")
    expect(page.get_by_role("heading", level=1)).to_have_text("So spielt man Tabu-Duell")
    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("How to play Adversarial Taboo")
