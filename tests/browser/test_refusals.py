"""What is refused says why and keeps the words; what looks like code is shown as text."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.another_web import another_web
from tests.browser.conftest import LABELS
from tests.browser.steps import (
    faults,
    lines,
    say,
    see_result,
    texts,
    wait_for_answer,
    wait_for_script,
    wait_for_turn,
)
from tests.browser.visitor import Visitor
from tests.stack import Stack
from tests.tables import ASKED, moves_of, negotiation, taboo

CODE = [
    "<img src=x onerror=\"document.title='broken into'\">",
    "<script>document.title='broken into'</script>",
    "=1+1",
    '=HYPERLINK("http://elsewhere.example","here")',
    "{{ 7*7 }} ${7*7} </textarea><!-- &lt;b&gt; -->",
    "'; DROP TABLE event; --",
]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("many words " * 500, "shorter"),
        ("ring \x07 the bell", "U+0007"),
    ],
)
@pytest.mark.keyboard
def test_a_refused_message_comes_back_with_its_reason(parlor: Stack, visitor: Visitor, text: str, reason: str) -> None:
    page = visitor.open(negotiation(parlor).url)
    wait_for_turn(page)
    say(page, text)
    expect(page.locator("#message-error")).to_contain_text(reason)
    expect(page.locator("#message")).to_have_value(text.strip())
    expect(page.locator("#message")).to_be_focused()
    expect(page.locator("#message")).to_have_attribute("aria-invalid", "true")
    assert lines(page).count() == 0
    say(page, ASKED)
    wait_for_answer(page, 2)
    expect(page.locator("#message-error")).to_have_text("")


@pytest.mark.parametrize("text", ["", "     ", "\n\n\t "])
def test_a_message_of_nothing_is_not_sent(parlor: Stack, visitor: Visitor, text: str) -> None:
    page = visitor.open(taboo(parlor, "attacker").url)
    wait_for_turn(page)
    say(page, text)
    expect(page.locator("#message-error")).to_have_text("Please write something first.")
    assert not any('"move"' in frame for frame in visitor.frames)


def test_an_invisible_message_is_refused_by_the_rules(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(taboo(parlor, "attacker").url)
    wait_for_turn(page)
    say(page, "\u200b\u200b")
    expect(page.locator("#message-error")).to_contain_text("empty")


def test_an_offer_before_the_first_word_waits(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(negotiation(parlor).url)
    wait_for_turn(page)
    expect(page.locator("#offer-hint")).to_contain_text("Say something first")
    page.locator("#offer [type=submit]").click(force=True)
    expect(page.locator("#offer-dialog")).to_be_hidden()


@pytest.mark.parametrize(("typed", "kept"), [("7", "2"), ("-3", "0"), ("1.5", "1"), ("", "0")])
def test_an_offer_cannot_ask_for_what_is_not_there(parlor: Stack, visitor: Visitor, typed: str, kept: str) -> None:
    page = visitor.open(negotiation(parlor).url)
    wait_for_turn(page)
    page.locator("#take-hat").fill(typed)
    page.locator("#take-hat").blur()
    expect(page.locator("#take-hat")).to_have_value(kept)


def test_a_guess_of_nothing_is_not_made(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(taboo(parlor, "defender").url)
    wait_for_answer(page, 1)
    page.locator("#guess-form [type=submit]").click()
    expect(page.locator("#guess-error")).to_have_text("Please write your guess first.")
    expect(page.locator("#guess-dialog")).to_be_hidden()


@pytest.mark.parametrize("typed", ["two words", "; drop", "lemon; drop", "l3mon", "?!", "<b>lemon</b>", "a lemon"])
@pytest.mark.keyboard
def test_a_guess_is_one_word(parlor: Stack, visitor: Visitor, typed: str) -> None:
    page = visitor.open(taboo(parlor, "defender").url)
    wait_for_answer(page, 1)
    page.locator("#guess").fill(typed)
    page.locator("#guess").press("Enter")
    expect(page.locator("#guess-error")).to_have_text(re.compile("^(Your guess is one word|Please write your guess)"))
    expect(page.locator("#guess-dialog")).to_be_hidden()
    expect(page.locator("#guess")).to_be_focused()
    expect(page.locator("#guess")).to_have_value(typed)


@pytest.mark.parametrize(
    ("typed", "asked"), [(" “lemon” ", "lemon"), ("'lemon'.", "lemon"), ("jack-o’-lantern", "jack-o’-lantern")]
)
def test_a_guess_may_stand_in_quotes(parlor: Stack, visitor: Visitor, typed: str, asked: str) -> None:
    page = visitor.open(taboo(parlor, "defender").url)
    wait_for_answer(page, 1)
    page.locator("#guess").fill(typed)
    page.locator("#guess").press("Enter")
    expect(page.locator("#guess-words")).to_contain_text(f"Your guess is “{asked}”.")


@pytest.mark.parametrize("typed", ["[message]", "Deal? [END] Or not?", "[message] [Message] hello", "[eNd]"])
def test_marks_of_the_games_language_are_words_in_a_message(parlor: Stack, visitor: Visitor, typed: str) -> None:
    table = negotiation(parlor)
    page = visitor.open(table.url)
    wait_for_turn(page)
    say(page, typed)
    wait_for_answer(page, 2)
    assert texts(page)[0] == typed
    shown = typed.replace("[", "［").replace("]", "］")
    assert moves_of(parlor, table.match)[0] == f"[message] {shown}"
    page.reload()
    wait_for_turn(page)
    assert texts(page)[0] == typed


def test_an_offer_in_the_message_box_is_led_to_the_offer(parlor: Stack, visitor: Visitor) -> None:
    typed = "[propose] (1 books, 0 hats, 0 balls)"
    page = visitor.open(negotiation(parlor).url)
    wait_for_turn(page)
    say(page, typed)
    expect(page.locator("#message-error")).to_contain_text("An offer is made with “Your offer”")
    expect(page.locator("#message")).to_have_value(typed)
    assert lines(page).count() == 0
    page.locator("#message").press("Enter")  # sent again it is said, and no offer
    wait_for_answer(page, 2)
    assert texts(page)[0] == typed


def test_the_reason_to_wait_goes_on_with_what_happens(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(negotiation(parlor, opponent=LABELS["quartz-thinks"]).url)
    wait_for_turn(page)
    wait_for_script(page)
    page.evaluate("document.querySelector('#message').value = 'Hello!'")
    page.evaluate(  # twice before any answer can come
        "for (const _ of [1, 2]) document.querySelector('#composer').requestSubmit()"
    )
    expect(page.locator("#message-hint")).to_have_text(re.compile("^It is your partner’s turn"))
    expect(page.locator("#typing")).to_contain_text("typing")
    expect(page.locator("#message-hint")).to_have_text(re.compile("^It is your partner’s turn"))


def test_what_looks_like_code_is_shown_as_text_everywhere(parlor: Stack, visitor: Visitor) -> None:
    table = taboo(parlor, "attacker", opponent=LABELS["quartz-hints"], config={"max_turns": len(CODE)})
    page = visitor.open(table.url)
    wait_for_turn(page)
    for number, text in enumerate(CODE, 1):
        say(page, text)
        expect(lines(page)).to_have_count(2 * number)
    check_is_text(page)
    see_result(page)
    check_is_text(page)
    assert moves_of(parlor, table.match)[::2] == CODE


def check_is_text(page: Page) -> None:
    assert page.locator("li.by-you .text").all_inner_texts() == CODE
    assert page.locator(".log img, .log script").count() == 0
    assert "broken into" not in page.title()


def test_a_long_word_stays_inside_the_page(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(negotiation(parlor).url)
    wait_for_turn(page)
    say(page, "a" * 600 + " 😀" * 50 + " \u202eright to left\u202c مرحبا")
    wait_for_answer(page, 2)
    assert texts(page)[0].startswith("aaaa")
    assert faults(page) == []


def test_unknown_pages_say_so(parlor: Stack, visitor: Visitor) -> None:
    visitor.forgive("404|403")
    for path, headline in (
        ("/nowhere", "This page is not here."),
        ("/rules/chess", "This page is not here."),
        ("/play/AAAAAAAAAAAAAAAAAAAAAA", "This is not yours to open."),
        ("/play/AAAAAAAAAAAAAAAAAAAAAA?ticket=forged", "This is not yours to open."),
    ):
        page = visitor.open(parlor.url + path)
        expect(page.get_by_role("heading", level=1)).to_have_text(headline)
        expect(page.get_by_role("link", name="Go to the start")).to_be_visible()
        assert "Traceback" not in page.content()
        page.close()


def test_where_guest_play_is_off_the_home_page_explains_and_nothing_starts(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(parlor.url)
    token = page.locator("input[name=csrf_token]").first.get_attribute("value") or ""
    with another_web(parlor, {"GUEST_PLAY": "false"}) as server:
        page.goto(server)
        expect(page.locator(".note")).to_contain_text("Only invited guests can play.")
        assert page.locator("main form").count() == 0
        page.get_by_role("link", name="Read the rules (Adversarial Taboo)").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("How to play Adversarial Taboo")
        # One cookie serves both ports, so the token of the open house is good for the closed one.
        answer = page.request.post(f"{server}/start/taboo", form={"csrf_token": token}, headers={"Referer": server})
        assert answer.status == 403
        assert "by invitation" in answer.text()
        assert page.request.post(f"{server}/api/matches", data={"game": "taboo"}).status == 403


def test_a_form_without_its_token_is_refused(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(parlor.url)
    answer = page.request.post(f"{parlor.url}/start/taboo", form={"key": "x"})
    assert answer.status == 400
    assert "The page was open for too long" in answer.text()
