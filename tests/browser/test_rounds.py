"""Rounds in a real browser: launched from the page, played by the workers, and followed without loading it again."""

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import update

from app.core.config import Settings
from app.core.extensions import writing
from app.models import RoundRow
from app.rounds import lifecycle
from app.rounds.spec import RoundSpec
from tests.browser.admin_states import sign_in
from tests.browser.visitor import Visitor
from tests.stack import Stack
from tests.tables import database

DONE = re.compile("done")
PAGE = re.compile(r"/admin/rounds/(\d+)$")


@pytest.fixture
def admin(parlor: Stack, visitor: Visitor) -> Page:
    """A tab in which an experimenter has signed in by a link."""
    page = visitor.context.new_page()
    sign_in(parlor, page)
    return page


def launch(parlor: Stack, page: Page, matches: int, game: str = "negotiation", **fields: str) -> int:
    """Start a round of the scripted player from the form; gives its number."""
    page.goto(f"{parlor.url}/admin/rounds/new?game={game}")
    page.get_by_label("Matches", exact=True).fill(str(matches))
    for label, text in fields.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Start").click()
    if matches > Settings.model_fields["CONFIRM_MATCHES"].default:
        expect(page.get_by_role("alert")).to_contain_text("Press Start again to confirm")
        page.get_by_role("button", name="Start").click()
    expect(page).to_have_url(PAGE)
    found = PAGE.search(page.url)
    assert found
    return int(found[1])


def over(page: Page) -> int:
    """How many matches the page says are over."""
    return int(page.locator("#progress [data-figure=finished]").inner_text().replace(",", ""))


def stay(page: Page) -> None:
    """Leave a mark that is gone when the page is loaded again."""
    page.evaluate("window.here = true")


def stayed(page: Page) -> bool:
    return bool(page.evaluate("window.here === true"))


def test_a_round_is_launched_followed_and_downloaded(parlor: Stack, admin: Page, tmp_path: Path) -> None:
    number = launch(parlor, admin, 1500, Name="From the page", Seed="41")
    stay(admin)
    bar = admin.locator("#live progress")
    expect(bar).not_to_have_js_property("value", 0)
    seen = bar.evaluate("(bar) => bar.value")
    admin.wait_for_function("(seen) => document.querySelector('#live progress')?.value > seen", arg=seen)
    expect(admin.locator("#head .tag")).to_have_text(DONE)
    expect(admin.locator("#progress")).to_have_count(0)
    expect(admin.get_by_role("button", name="Cancel")).to_have_count(0)
    expect(admin.locator(".verdict")).to_contain_text("n = 1,500")
    expect(admin.locator("#tiles .tile")).to_have_count(8)
    expect(admin.locator("#first-charts figure[data-state=drawn]").first).to_be_visible()
    assert stayed(admin)
    with admin.expect_download() as saved:
        admin.get_by_role("button", name="Save as SVG").first.click()
    assert saved.value.suggested_filename.endswith(".svg")
    with admin.expect_download() as saved:
        admin.get_by_role("link", name="Save as CSV").first.click()
    assert saved.value.suggested_filename == f"score-{number}.csv"
    assert saved.value.path().read_text().splitlines()[0] == "low,high,number,player"
    admin.get_by_role("link", name="Log", exact=True).click()
    expect(admin.locator("#progress")).to_have_text("1,500 of 1,500 matches")
    admin.get_by_role("link", name="Settings").click()
    with admin.expect_download() as downloaded:
        admin.get_by_role("link", name="matches.csv", exact=True).click()
    file = tmp_path / "matches.csv"
    downloaded.value.save_as(file)
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["index"] for row in rows] == [str(index) for index in range(1500)]
    assert {row["round_id"] for row in rows} == {str(number)}
    admin.get_by_role("link", name="Transcripts").click()
    admin.locator("#transcripts tbody a").last.click()
    expect(admin.get_by_role("heading", level=1)).to_contain_text("Match ")
    expect(admin.locator(".head")).to_contain_text(f"Round {number}.")
    admin.get_by_role("link", name="Previous match").click()
    expect(admin.get_by_role("link", name="Next match")).to_be_visible()


@pytest.mark.parametrize("tab", ["summary", "charts", "transcripts", "settings", "log"])
def test_every_tab_of_a_round_follows_it_as_it_is_played(parlor: Stack, admin: Page, standing: int, tab: str) -> None:
    admin.goto(f"{parlor.url}/admin/rounds/{standing}?tab={tab}")
    stay(admin)
    change(parlor, standing, finished=20)
    expect(admin.locator("#progress")).to_have_text("20 of 80 matches")
    change(parlor, standing, status="failed", error="the key was refused")
    expect(admin.locator("#head .tag")).to_have_text("failed")
    expect(admin.locator("#live")).to_contain_text("the key was refused")
    expect(admin.get_by_role("button", name="Resume")).to_be_visible()
    expect(admin.locator("#tabs [aria-current]")).to_contain_text(tab, ignore_case=True)
    assert stayed(admin)


def test_a_round_is_cancelled_and_played_on(parlor: Stack, admin: Page) -> None:
    launch(parlor, admin, 40_000, "taboo")
    expect(admin.locator("#progress [data-figure=finished]")).not_to_have_text("0")
    admin.get_by_role("button", name="Cancel").click()
    expect(admin.locator("#head .tag")).to_have_text("cancelled")
    played = over(admin)
    assert 0 < played < 40_000
    admin.get_by_role("button", name="Resume").click()
    admin.wait_for_function("(seen) => document.querySelector('#live progress')?.value > seen", arg=played)
    admin.get_by_role("button", name="Cancel").click()
    expect(admin.locator("#head .tag")).to_have_text("cancelled")
    admin.get_by_role("link", name="Duplicate").click()
    expect(admin.get_by_label("Matches", exact=True)).to_have_value("40000")
    expect(admin.get_by_label(re.compile(r"As in scripted and scripted \(round \d+\)"))).to_be_checked()


@pytest.fixture
def standing(parlor: Stack) -> int:
    """A round that seems to be played and that nobody touches."""
    with database(parlor) as engine, writing(engine) as session:
        row = lifecycle.create(
            session, RoundSpec(game="negotiation", models=("scripted",), matches=80, seed=1), queued=False
        )
        return row.id


def change(parlor: Stack, number: int, **values: object) -> None:
    with database(parlor) as engine, writing(engine) as session:
        session.execute(update(RoundRow).where(RoundRow.id == number).values(**values))


def test_a_page_that_was_cut_off_says_so_and_catches_up(
    parlor: Stack, admin: Page, visitor: Visitor, standing: int
) -> None:
    for complaint in ("ERR_INTERNET_DISCONNECTED", "WebSocket"):
        visitor.forgive(complaint)
    admin.goto(f"{parlor.url}/admin/rounds/{standing}")
    stay(admin)
    change(parlor, standing, finished=8, moves=50, error="answers 429: tries again in 20 s")
    expect(admin.locator("#progress")).to_have_text("8 of 80 matches")
    expect(admin.locator("#live .note").first).to_contain_text("answers 429")
    visitor.context.set_offline(True)
    expect(admin.locator("#fresh-notice")).to_contain_text("Parlor is not responding.")
    change(parlor, standing, finished=44, error=None)
    visitor.context.set_offline(False)
    expect(admin.locator("#progress")).to_have_text("44 of 80 matches")
    expect(admin.locator("#fresh-notice")).to_be_empty()
    expect(admin.locator("#said")).to_have_text("50 percent of the matches are over.")
    expect(admin.get_by_text("answers 429")).to_be_hidden()
    assert stayed(admin)


def test_the_list_moves_by_itself_and_compares_what_is_ticked(parlor: Stack, admin: Page, standing: int) -> None:
    admin.goto(f"{parlor.url}/admin/rounds")
    row = admin.locator(f"#line-{standing}")
    expect(row.locator("progress")).to_have_js_property("value", 0)
    change(parlor, standing, finished=20)
    expect(row).to_contain_text("20 of 80")
    with database(parlor) as engine, writing(engine) as session:
        other = lifecycle.create(
            session, RoundSpec(game="negotiation", models=("scripted",), matches=8, seed=1), queued=False
        ).id
    admin.reload()
    for number in (standing, other):
        admin.get_by_label(f"Compare scripted and scripted (round {number})", exact=True).check()
    admin.get_by_role("button", name="Compare the ticked ones").click()
    expect(admin.get_by_role("heading", level=1)).to_have_text("Rounds side by side")


def test_the_form_shows_what_belongs_to_what_was_chosen_and_estimates_by_itself(
    parlor: Stack, admin: Page, visitor: Visitor
) -> None:
    admin.goto(f"{parlor.url}/admin/rounds/new")
    expect(admin.locator("#expected")).to_contain_text("cost nothing")
    expect(admin.get_by_label("λ", exact=True)).to_be_hidden()
    admin.get_by_label("Objective").select_option("lambda")
    expect(admin.get_by_label("λ", exact=True)).to_be_visible()
    admin.get_by_label("Matches", exact=True).fill("0")
    expect(admin.locator("#expected")).to_contain_text("Matches: expected a whole number from 1")
    admin.get_by_label("Matches", exact=True).fill("250")
    admin.get_by_label("First seat").select_option("quartz-talks")
    expect(admin.locator("#expected")).to_contain_text("quartz-talks")
    expect(admin.locator("#expected")).to_contain_text("250")
    admin.get_by_text("A file of mine").click()
    admin.get_by_label("File", exact=True).set_input_files(
        {"name": "mine.txt", "mimeType": "text/plain", "buffer": b"1 4 2 2 1 2\n"}
    )
    expect(admin.locator("#expected")).to_contain_text("mine.txt, line 1: expected a second line for seat 1")


def test_without_javascript_a_round_is_launched_and_shown(
    parlor: Stack, admin: Page, visitors: Callable[..., Visitor]
) -> None:
    plain = visitors(java_script_enabled=False, storage_state=admin.context.storage_state())
    plain.forgive("400")
    page = plain.open(f"{parlor.url}/admin/rounds/new")
    page.get_by_label("Matches", exact=True).fill("2000000")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("Matches: expected a whole number")
    page.get_by_label("Matches", exact=True).fill("20000")  # for it shall still be played when the page is looked at
    page.get_by_role("button", name="Estimate").click()
    expect(page.locator("#expected")).to_contain_text("cost nothing")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("more than 2,000 matches")  # it asks before so many
    page.get_by_role("button", name="Start").click()
    expect(page).to_have_url(PAGE)
    expect(page.locator("#progress")).to_contain_text("of 20,000 matches")
    assert "This page shows the round as it was when you opened it." in page.content()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#head .tag")).to_have_text(re.compile("cancelling|cancelled"))
