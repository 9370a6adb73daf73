"""Whole matches of both games, from the first word to the result page."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LABELS
from tests.browser.steps import (
    MATCH,
    RESULT,
    guess,
    lines,
    offer,
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

PARTNER = LABELS["quartz-hints"]


def points(page: Page) -> list[str]:
    """The figures on the result page: mine, the partner's."""
    return page.locator(".share .counter").all_inner_texts()


def test_a_negotiation_is_talked_through_to_a_deal(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(negotiation(parlor).url)
    assert MATCH.search(page.url)
    assert "ticket" not in page.url
    expect(page).to_have_title("Your turn: Deal or No Deal")
    assert page.locator(".item .counter").all_inner_texts() == ["10", "0", "0"]
    assert page.locator(".item h3").all_inner_texts() == ["1\u00a0book", "2\u00a0hats", "2\u00a0balls"]
    say(page, ASKED)
    wait_for_answer(page, 2)
    assert texts(page)[0] == ASKED
    page.get_by_role("button", name="One book more").click()
    expect(page.locator("#offer-sum .counter")).to_have_text("10")
    offer(page, 1, 0, 0)
    expect(page.locator("#turn-now")).to_have_text("It’s a deal.")
    see_result(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("It’s a deal.")
    assert points(page) == ["10", "10"]
    shares = page.locator(".share p.soft").all_inner_texts()
    assert shares == ["1\u00a0book", "2\u00a0hats and 2\u00a0balls"]
    said = page.locator(".log-whole .text").all_inner_texts()
    assert said[0] == ASKED
    assert said[2:] == [
        "You made your offer: 1\u00a0book for you.",
        "Your partner made an offer: 2\u00a0hats and 2\u00a0balls for them.",
    ]


def test_what_would_show_nothing_or_turn_the_text_is_shown_as_a_mark(parlor: Stack, visitor: Visitor) -> None:
    table = negotiation(parlor)
    page = visitor.open(table.url)
    sent = "I \u202etake\u202c the b\u200book \N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
    marked = "I \ufffdtake\ufffd the b\ufffdook \N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
    say(page, sent)
    wait_for_answer(page, 2)
    assert texts(page)[0] == marked
    page.reload()
    wait_for_answer(page, 2)
    assert texts(page)[0] == marked
    assert moves_of(parlor, table.match)[0] == f"[message] {sent}"


def test_an_offer_that_is_put_off_and_asked_about_again_at_once_is_made_once(parlor: Stack, visitor: Visitor) -> None:
    table = negotiation(parlor)
    page = visitor.open(table.url)
    say(page, ASKED)
    wait_for_answer(page, 2)
    page.locator("#take-book").fill("1")
    page.evaluate(  # the event of the first closing comes when the dialog is open again
        """() => {
          const [form, dialog] = ["offer", "offer-dialog"].map((id) => document.getElementById(id));
          form.requestSubmit();
          dialog.close();
          form.requestSubmit();
        }"""
    )
    page.locator("#offer-dialog").get_by_role("button", name="Make this offer").click()
    expect(page.locator("#turn-now")).to_have_text("It’s a deal.")
    assert len(moves_of(parlor, table.match)) == 4


def test_offers_that_do_not_fit_are_no_deal(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(negotiation(parlor).url)
    say(page, ASKED)
    wait_for_answer(page, 2)
    offer(page, 1, 2, 2)
    see_result(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("No deal.")
    assert points(page) == ["0", "0"]
    expect(page.locator(".result-goal")).to_contain_text("Asked for by both of you together")


def test_an_offer_of_the_partner_stays_hidden_and_is_answered(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(negotiation(parlor, opponent=LABELS["quartz-talks"]).url)
    say(page, "Who begins?")
    wait_for_answer(page, 2)
    say(page, "Then make your offer.")
    expect(page.locator("#turn-now")).to_have_text("Your turn: make your offer.")
    expect(page.locator("#composer")).to_be_hidden()
    assert texts(page)[-1].startswith("Your partner has made an offer. It stays hidden")
    offer(page, 0, 2, 2)
    expect(page).to_have_url(RESULT)
    expect(page.get_by_role("heading", level=1)).to_have_text("It’s a deal.")
    assert points(page) == ["0", "0"]


def test_a_partner_who_begins_does_so_without_being_asked(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(negotiation(parlor, first="partner").url)
    wait_for_answer(page, 1)
    expect(page.locator("#log .who").first).to_contain_text("Partner")


@pytest.mark.parametrize(
    ("word", "headline", "more"),
    [("lemon", "You win.", "You found the word."), ("pencil", "Your partner wins.", "Your guess was wrong.")],
)
def test_a_guess_ends_taboo(parlor: Stack, visitor: Visitor, word: str, headline: str, more: str) -> None:
    page = visitor.open(taboo(parlor, "defender").url)
    wait_for_answer(page, 1)
    assert "lemon" not in page.content()
    say(page, "Please go on.")
    wait_for_answer(page, 3)
    expect(page.locator("#turns-left")).to_have_text("4 of your 5 turns left")
    guess(page, word)
    expect(page).to_have_url(RESULT)
    expect(page.get_by_role("heading", level=1)).to_have_text(headline)
    expect(page.locator(".result-head")).to_contain_text(more)
    expect(page.locator(".word-card .word")).to_have_text("lemon")


def test_a_seeker_who_says_the_word_in_passing_loses(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(taboo(parlor, "defender").url)
    wait_for_answer(page, 1)
    say(page, "Do you want lemons?")
    expect(page.locator("#turn-now")).to_have_text("Your partner wins.")
    expect(page.locator("#turn-more")).to_have_text("You said the word.")
    see_result(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Your partner wins.")


def test_a_holder_who_says_the_word_is_warned_and_then_loses(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(taboo(parlor, "attacker").url)
    expect(page.locator("#word")).to_have_text("lemon")
    say(page, "Lemons are sour.")
    expect(page.locator("#message-error")).to_contain_text("lemons")
    expect(page.locator("#message")).to_have_value("Lemons are sour.")
    assert lines(page).count() == 0
    page.locator("#message").press("Enter")
    expect(page.locator("#turn-now")).to_have_text("You said the word.")
    see_result(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("You said the word.")


def test_a_holder_who_guesses_is_told_that_only_the_partner_may(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(taboo(parlor, "attacker").url)
    say(page, "I know the word! It is pear!")
    expect(page.locator("#message-error")).to_contain_text("Only your partner may guess.")
    page.locator("#message").press("Enter")
    expect(page).to_have_url(RESULT)
    expect(page.get_by_role("heading", level=1)).to_have_text("You made a guess.")
    expect(page.locator(".result-head")).to_contain_text("Only your partner may, so the game is over.")


@pytest.mark.parametrize("role", ["attacker", "defender"])
def test_the_board_of_taboo_that_is_over_shows_the_word_and_no_task(parlor: Stack, visitor: Visitor, role: str) -> None:
    page = visitor.open(taboo(parlor, role).url)
    wait_for_turn(page)
    say(page, "A lemon is sour.")
    if role == "attacker":  # who is warned first
        page.locator("#message").press("Enter")
    expect(page.locator("#over")).to_be_visible()
    expect(page.locator("#board-title")).to_have_text("The word is out.")
    expect(page.locator("#word-card")).to_contain_text("The word was")
    expect(page.locator("#word-card .word")).to_have_text("lemon")
    expect(page.locator("#turns-left")).to_be_hidden()
    assert "your" not in page.locator(".board").inner_text().lower()


def test_a_holder_wins_when_the_partner_says_the_word(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(taboo(parlor, "attacker", opponent=LABELS["quartz-says-it"]).url)
    say(page, "What is yellow and sour?")
    expect(page.locator("#turn-now")).to_have_text("You win.")
    expect(page.locator("#over")).to_be_visible()
    see_result(page)
    expect(page.locator(".result-head")).to_contain_text("Your partner said the word.")


def test_taboo_without_a_winner_is_a_tie(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(taboo(parlor, "attacker", opponent=PARTNER, config={"max_turns": 2}).url)
    say(page, "Good morning.")
    wait_for_answer(page, 2)
    say(page, "Good evening.")
    expect(page.locator("#turn-now")).to_have_text("It’s a tie.")
    expect(page.locator("#board-title")).to_have_text("The word is out.")


def test_the_home_page_starts_a_negotiation_with_the_chosen_goal(home_page: Page) -> None:
    box = home_page.locator(".box", has_text="Deal or No Deal")
    box.locator("summary", has_text="Options").click()
    box.get_by_label("Your goal").select_option("coop")
    partners = box.get_by_label("Partner").locator("option").all_inner_texts()
    assert partners[0] == "House partner: a scripted program"
    told = {f"{label}: a language model" for label in LABELS.values()}
    assert told <= set(partners)  # and what other tests have trained meanwhile
    expect(box.get_by_label("Partner")).to_have_value("House partner")
    box.get_by_role("button", name="Play Deal or No Deal").click()
    expect(home_page).to_have_url(MATCH)
    wait_for_turn(home_page)
    expect(home_page.locator(".board-head")).to_contain_text("as many points as you can together")


@pytest.mark.parametrize(("side", "board"), [("attacker", "Make your partner say it"), ("defender", "Find the word")])
def test_the_home_page_starts_taboo_on_the_chosen_side(home_page: Page, side: str, board: str) -> None:
    box = home_page.locator(".box", has_text="Adversarial Taboo")
    box.locator("summary", has_text="Options").click()
    box.get_by_label("Your side").select_option(side)
    box.get_by_role("button", name="Play Adversarial Taboo").click()
    expect(home_page).to_have_url(MATCH)
    expect(home_page.locator("#board-title")).to_contain_text(board)
    wait_for_turn(home_page)


def test_play_again_starts_another_match(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(taboo(parlor, "defender").url)
    first = page.url
    guess(page, "lemon")
    expect(page).to_have_url(RESULT)
    page.get_by_role("button", name="Play again").click()
    expect(page).to_have_url(MATCH)
    assert page.url != first
    wait_for_turn(page)


def test_whoever_leaves_is_asked_first(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(negotiation(parlor).url)
    page.get_by_role("button", name="Leave").click()
    page.get_by_role("button", name="Keep playing").click()
    wait_for_turn(page)
    page.get_by_role("button", name="Leave").click()
    visits: list[str] = []
    page.on("request", lambda request: visits.append(request.url) if request.is_navigation_request() else None)
    page.get_by_role("button", name="Leave the game").click()
    expect(page).to_have_url(RESULT)
    page.wait_for_load_state("networkidle")
    assert len(visits) == 1
    expect(page.get_by_role("heading", level=1)).to_have_text("This game is over.")
    page.get_by_role("link", name="Back to the games").click()
    assert re.search(r":\d+/$", page.url)


def test_whoever_leaves_taboo_is_told_the_word(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(taboo(parlor, "defender").url)
    page.get_by_role("button", name="Leave").click()
    page.get_by_role("button", name="Leave the game").click()
    expect(page).to_have_url(RESULT)
    expect(page.locator(".word-card .word")).to_have_text("lemon")


def test_an_offer_that_was_left_unanswered_is_shown_at_the_end(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(negotiation(parlor, opponent=LABELS["quartz-talks"]).url)
    other = visitor.open(page.url)
    say(page, "Who begins?")
    wait_for_answer(page, 2)
    say(page, "Then make your offer.")
    expect(page.locator("#turn-now")).to_have_text("Your turn: make your offer.")
    page.get_by_role("button", name="Leave").click()
    page.get_by_role("button", name="Leave the game").click()
    expect(page).to_have_url(RESULT)
    expect(page.locator(".log-whole .text").last).to_have_text(re.compile("^Your partner made an offer: .* for them.$"))
    expect(other.locator("#log .text").last).to_have_text(re.compile("^Your partner made an offer: .* for them.$"))


def test_the_rules_open_beside_the_match(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(negotiation(parlor).url)
    wait_for_script(page)  # without it, the link leads to the rules as a page of their own
    page.get_by_role("link", name="Rules").click()
    expect(page.get_by_role("dialog")).to_contain_text("How to play Deal or No Deal")
    page.keyboard.press("Escape")
    expect(page.locator("#rules-dialog")).to_be_hidden()
    wait_for_turn(page)
