"""Refresh, second tab, back button, lost lines, killed servers: always the same match, nothing lost, nothing twice."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import func, select

from app.models import MatchRow
from tests.browser.conftest import LABELS, MODELS
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
    wait_for_turn,
)
from tests.browser.visitor import Visitor
from tests.stack import TURNS_ALONE, Stack
from tests.tables import ASKED, database, moves_of, negotiation, taboo

NO_LINE = r"ERR_INTERNET_DISCONNECTED|ERR_CONNECTION_|WebSocket connection to .* failed"


def matches(parlor: Stack) -> int:
    """How many matches there are."""
    with database(parlor) as engine, engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(MatchRow)) or 0


def test_a_refresh_keeps_the_conversation_the_draft_and_the_planned_offer(parlor: Stack, visitor: Visitor) -> None:
    table = negotiation(parlor)
    page = visitor.open(table.url)
    say(page, ASKED)
    wait_for_answer(page, 2)
    before = texts(page)
    page.locator("#take-book").fill("1")
    page.locator("#message").fill("half a tho")
    for _ in range(2):
        page.reload()
        wait_for_turn(page)
        assert texts(page) == before
        expect(page.locator("#message")).to_have_value("half a tho")
        expect(page.locator("#take-book")).to_have_value("1")
    assert len(moves_of(parlor, table.match)) == 2


def test_a_refresh_while_a_move_is_on_its_way_plays_it_once(parlor: Stack, visitor: Visitor) -> None:
    table = negotiation(parlor)
    page = visitor.open(table.url)
    wait_for_turn(page)
    say(page, ASKED)
    page.reload()
    wait_for_answer(page, 2)
    assert texts(page)[0] == ASKED
    assert len(moves_of(parlor, table.match)) == 2


def test_two_tabs_of_one_seat_follow_each_other(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(negotiation(parlor).url)
    wait_for_turn(page)
    other = visitor.open(page.url)
    wait_for_turn(other)
    say(page, ASKED)
    for tab in (page, other):
        wait_for_answer(tab, 2)
    assert texts(page) == texts(other)
    offer(other, 1, 0, 0)
    for tab in (page, other):
        expect(tab.locator("#turn-now")).to_have_text("It’s a deal.")
        expect(lines(tab)).to_have_count(4)
        see_result(tab)


def test_the_partners_seat_is_not_in_the_address(parlor: Stack, visitors: Callable[..., Visitor]) -> None:
    page = visitors().open(negotiation(parlor).url)
    stranger = visitors()
    stranger.forgive("403")
    shown = stranger.open(page.url)
    expect(shown.get_by_role("heading", level=1)).to_have_text("This is not yours to open.")


def test_the_back_button_lands_in_the_same_match(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(negotiation(parlor).url)
    address = page.url
    say(page, ASKED)
    wait_for_answer(page, 2)
    before = texts(page)
    page.get_by_role("link", name="Parlor").click()
    expect(page.get_by_role("link", name="Continue your game")).to_be_visible()
    page.go_back()
    expect(page).to_have_url(address)
    wait_for_answer(page, 2)
    assert texts(page) == before
    offer(page, 1, 0, 0)
    see_result(page)
    page.go_back()
    expect(page).to_have_url(RESULT)


def test_the_home_page_offers_to_go_on_with_an_open_match(parlor: Stack, visitor: Visitor) -> None:
    page = visitor.open(taboo(parlor, "attacker").url)
    address = page.url
    page.goto(parlor.url)
    page.get_by_role("link", name="Continue your game (Adversarial Taboo)").click()
    expect(page).to_have_url(address)


def test_a_link_with_a_ticket_opens_the_same_match_again(parlor: Stack, visitor: Visitor) -> None:
    table = taboo(parlor, "defender")
    page = visitor.open(table.url)
    wait_for_answer(page, 1)
    again = visitor.open(table.url)
    assert again.url == page.url
    wait_for_answer(again, 1)


def test_a_double_click_starts_one_match(parlor: Stack, home_page: Page) -> None:
    before = matches(parlor)
    home_page.get_by_role("button", name="Play Adversarial Taboo").dblclick()
    expect(home_page).to_have_url(MATCH)
    wait_for_turn(home_page)
    assert matches(parlor) == before + 1


def test_a_double_click_on_send_sends_once(parlor: Stack, visitor: Visitor) -> None:
    table = negotiation(parlor)
    page = visitor.open(table.url)
    wait_for_turn(page)
    page.locator("#message").fill(ASKED)
    page.get_by_role("button", name="Send").dblclick()
    wait_for_answer(page, 2)
    assert len(moves_of(parlor, table.match)) == 2


def test_a_message_written_without_a_line_is_sent_once_when_it_is_back(parlor: Stack, visitor: Visitor) -> None:
    visitor.forgive(NO_LINE)
    table = negotiation(parlor)
    page = visitor.open(table.url)
    wait_for_turn(page)
    visitor.context.set_offline(True)
    expect(page.locator("#turn-now")).to_have_text("Connection lost. Trying again.")
    say(page, ASKED)
    expect(page.locator("#log")).to_contain_text("Not sent yet.")
    page.get_by_role("button", name="Send again").click()
    expect(page.locator("#log")).to_contain_text("Not sent yet.")
    visitor.context.set_offline(False)
    wait_for_answer(page, 2)
    assert page.locator("#log", has_text="Not sent yet.").count() == 0
    assert texts(page)[0] == ASKED
    assert len(moves_of(parlor, table.match)) == 2


def test_a_page_whose_script_does_not_come_says_so_and_tries_again(parlor: Stack, visitor: Visitor) -> None:
    visitor.forgive("ERR_FAILED")
    broken = "**/static/js/games/*.js*"
    visitor.context.route(broken, lambda route: route.abort())
    page = visitor.open(negotiation(parlor).url)
    expect(page.locator("#turn-now")).to_have_text("Connection lost. Trying again.")
    visitor.context.unroute(broken)
    wait_for_turn(page)
    say(page, ASKED)
    wait_for_answer(page, 2)


def test_a_message_that_is_sent_while_the_server_dies_is_played_once(parlor: Stack, visitor: Visitor) -> None:
    visitor.forgive(NO_LINE)
    table = taboo(parlor, "defender")
    page = visitor.open(table.url)
    wait_for_answer(page, 1)
    page.locator("#message").fill("Please go on.")
    parlor.kill("web")
    page.locator("#message").press("Enter")
    wait_for_answer(page, 3)
    assert texts(page)[1] == "Please go on."
    assert len(moves_of(parlor, table.match)) == 3
    guess(page, "lemon")
    expect(page).to_have_url(RESULT)


def test_what_happened_while_the_line_was_lost_is_shown_when_it_is_back(parlor: Stack, visitor: Visitor) -> None:
    visitor.forgive(NO_LINE)
    table = negotiation(parlor)
    page = visitor.open(table.url)
    wait_for_turn(page)
    other = visitor.open(page.url)
    wait_for_turn(other)
    session = visitor.context.new_cdp_session(page)
    session.send("Network.enable")
    lost = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    session.send("Network.emulateNetworkConditions", lost)
    say(other, ASKED)
    wait_for_answer(other, 2)
    session.send(
        "Network.emulateNetworkConditions", {**lost, "offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
    )
    wait_for_answer(page, 2)
    assert texts(page) == texts(other)


def test_the_partner_is_seen_typing_where_answers_take_their_time(
    stack: Callable[..., Stack], visitor: Visitor
) -> None:
    parlor = stack({"READING_WORDS_PER_MINUTE": "1200", "LONGEST_DELAY": "1.5", **TURNS_ALONE})
    table = negotiation(parlor)
    page = visitor.open(table.url)
    wait_for_turn(page)
    say(page, ASKED)
    expect(page.locator("#turn-now")).to_have_text("Your partner’s turn.")
    expect(page.locator("#typing")).to_have_text("Your partner is typing")
    wait_for_answer(page, 2)
    expect(page.locator("#typing")).to_have_text("")
    offer(page, 1, 0, 0)
    expect(page.locator("#turn-now")).to_have_text("It’s a deal.")


@pytest.mark.parametrize("model", ["quartz-denied", "quartz-broken"])
def test_a_model_that_fails_ends_the_match_kindly(parlor: Stack, visitor: Visitor, model: str) -> None:
    for table in (negotiation(parlor, opponent=LABELS[model]), taboo(parlor, "attacker", opponent=LABELS[model])):
        page = visitor.open(table.url)
        wait_for_turn(page)
        say(page, "Good morning!")
        expect(page.locator("#turn-now")).to_have_text("Something went wrong on our side.")
        pages = [page.content()]
        see_result(page)
        expect(page.get_by_role("heading", level=1)).to_have_text("Something went wrong on our side.")
        expect(page.locator(".result-head")).to_contain_text("It was not your doing.")
        pages.append(page.content())
        for shown in [*pages, *visitor.frames]:
            assert not re.search(
                rf"quartz|{MODELS[model][0]}|{LABELS[model]}|Traceback|127\.0\.0\.1:\d+/v1|Error\b", shown
            )
    assert len(visitor.frames) > 6
