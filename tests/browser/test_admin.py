"""The admin pages in a real browser: signing in, trying a model, replaying a match, and access for everyone."""

import re
import threading
from collections.abc import Callable, Iterator
from itertools import chain

import pytest
from playwright.sync_api import Page, expect

from app.publication.bundle import MANIFEST
from tests.browser.admin_jobs import job_states
from tests.browser.admin_rounds import dataset_states, round_states
from tests.browser.admin_states import (
    Furnished,
    answered_states,
    empty_states,
    furnish,
    match_and_model_states,
    sign_in,
    signed_out_states,
)
from tests.browser.axe import faults_in_each_look, inspector
from tests.browser.conftest import LABELS
from tests.browser.steps import RESULT, faults, say, wait_for_answer, wait_for_turn
from tests.browser.visitor import Visitor
from tests.hub_server import HubServer
from tests.stack import Stack
from tests.stub_openai import StubServer
from tests.tables import negotiation


@pytest.fixture
def admin(parlor: Stack, visitor: Visitor) -> Page:
    """A tab in which an experimenter has signed in by a link."""
    page = visitor.context.new_page()
    sign_in(parlor, page)
    return page


ROWS = "new Set([...document.querySelectorAll('.admin-nav li')].map((each) => each.offsetTop)).size"


@pytest.mark.parametrize("language", ["English", "Deutsch"])
def test_the_navigation_takes_one_row_of_a_small_desktop(parlor: Stack, admin: Page, language: str) -> None:
    admin.set_viewport_size({"width": 1280, "height": 720})
    admin.get_by_role("button", name=language).click()
    for path in ("/admin/", "/admin/rehearsals"):
        admin.goto(parlor.url + path)
        expect(admin.locator("html")).to_have_attribute("lang", "de" if language == "Deutsch" else "en")
        assert admin.evaluate(ROWS) == 1, path
        assert faults(admin) == []


@pytest.fixture
def played(parlor: Stack, visitor: Visitor) -> str:
    """A match in which a person has said something and a model has answered."""
    table = negotiation(parlor, opponent=LABELS["quartz-talks"])
    page = visitor.open(table.url)
    wait_for_turn(page)
    say(page, "Hello!")
    wait_for_answer(page, 2)
    page.close()
    return table.match


def test_a_password_is_set_and_signs_in(parlor: Stack, admin: Page) -> None:
    admin.get_by_role("link", name="Account").click()
    for label in ("New password", "Repeat the new password"):
        admin.get_by_label(label, exact=True).fill("quite a long password")
    admin.get_by_role("button", name="Set this password").click()
    expect(admin.get_by_role("status")).to_contain_text("The new password is set.")
    admin.get_by_role("button", name="Sign out").click()
    admin.goto(parlor.url + "/admin/matches")
    admin.get_by_label("Name").fill("admin")
    admin.get_by_label("Password").fill("quite a long password")
    admin.get_by_label("Password").press("Enter")
    expect(admin).to_have_url(re.compile("/admin/matches$"))


def test_a_model_is_added_and_its_test_call_appears_by_itself(parlor: Stack, admin: Page, stub: StubServer) -> None:
    admin.goto(parlor.url + "/admin/models/new")
    for field, value in {"name": "quartz-new", "model": "stub-negotiator", "base_url": stub.url, "key_env": ""}.items():
        admin.locator(f"#{field}").fill(value)
    admin.get_by_role("button", name="Add it and make a test call").click()
    expect(admin.get_by_role("status")).to_contain_text("It answers with a legal move.")
    people = admin.get_by_role("switch", name="quartz-new: offered to people")
    for state in ("true", "false"):  # the test call has freed the switch, without another load of the page
        people.click()
        expect(people).to_have_attribute("aria-checked", state)


def test_a_pull_that_is_refused_keeps_what_was_typed_and_leads_to_the_field(
    parlor: Stack, hub: HubServer, admin: Page
) -> None:
    hub.hold = threading.Event()
    hub.add("models", "lab/broken", {MANIFEST: b"{}"})
    admin.goto(parlor.url + "/admin/models")
    admin.get_by_role("link", name="Pull a model").click()
    place = admin.get_by_label("Repository or folder")
    place.fill("lab/broken")
    admin.get_by_label("Name", exact=True).fill("theirs")
    admin.get_by_role("button", name="Pull it").click()
    expect(admin.get_by_role("button", name="Cancel the pull")).to_be_visible()
    hub.hold.set()
    expect(admin.locator("#refused")).to_contain_text("a manifest of a push")
    expect(place).to_have_value("lab/broken")
    expect(place).to_be_focused()
    expect(admin.get_by_label("Name", exact=True)).to_have_value("theirs")


def test_what_was_typed_for_a_pull_stays_while_another_goes_on_and_after_it(
    parlor: Stack, hub: HubServer, admin: Page, visitor: Visitor
) -> None:
    visitor.forgive("409")
    hub.hold = threading.Event()
    hub.add("models", "lab/first", {MANIFEST: b"{}"})
    second = visitor.open(parlor.url + "/admin/models/pull")
    admin.goto(parlor.url + "/admin/models/pull")
    for page, name in ((admin, "lab/first"), (second, "lab/second")):
        page.get_by_label("Repository or folder").fill(name)
        page.get_by_role("button", name="Pull it").click()
        expect(page.get_by_role("heading", name="Pulling lab/first")).to_be_visible()
    expect(second.locator("#refused")).to_contain_text("no other pull at the same time")
    hub.hold.set()
    expect(second.get_by_role("heading", name="Pulling lab/first")).not_to_be_visible()
    expect(second.get_by_role("alert").last).to_contain_text("a manifest of a push")
    expect(second.get_by_label("Repository or folder")).to_have_value("lab/second")


@pytest.mark.keyboard
def test_the_overview_is_kept_fresh_and_takes_no_focus_away(parlor: Stack, admin: Page, visitor: Visitor) -> None:
    visitor.forgive("ERR_INTERNET_DISCONNECTED")
    admin.clock.install()
    admin.reload()
    live, notice = admin.locator("#live-list"), admin.locator("#fresh-notice")
    first = live.get_by_role("link", name=negotiation(parlor).match[:8])
    admin.clock.fast_forward(5000)
    first.focus()
    second = live.get_by_role("link", name=negotiation(parlor).match[:8])
    admin.clock.fast_forward(5000)
    expect(second).to_be_visible()
    expect(first).to_be_focused()
    visitor.context.set_offline(True)
    admin.clock.fast_forward(5000)
    expect(notice).to_contain_text("Parlor is not responding.")
    visitor.context.set_offline(False)
    admin.clock.fast_forward(5000)
    expect(notice).to_be_empty()
    expect(first).to_be_focused()
    visitor.context.clear_cookies()
    admin.clock.fast_forward(5000)
    expect(notice).to_contain_text("You have been signed out.")


@pytest.mark.keyboard
def test_a_match_is_replayed_with_the_keyboard(parlor: Stack, admin: Page, played: str) -> None:
    admin.goto(f"{parlor.url}/admin/matches/{played}")
    where = admin.locator("#replay-where")
    expect(where).to_have_text("Event 3 of 3")
    expect(admin.locator("#replay-generation")).to_contain_text("Hello!")
    admin.locator("body").press("ArrowLeft")
    expect(where).to_have_text("Event 2 of 3")
    expect(admin.locator("#replay-generation")).to_contain_text("No model was called")
    expect(admin.locator("#replay-events [aria-current=step]")).to_contain_text("Hello!")
    admin.get_by_role("link", name="Previous").press("Enter")
    expect(where).to_have_text("Event 1 of 3")
    expect(admin.get_by_role("link", name="Previous")).to_be_focused()
    admin.locator("#at").press("ArrowRight")
    expect(where).to_have_text("Event 2 of 3")
    expect(admin.locator("#at")).to_have_attribute("aria-valuetext", "Event 2 of 3, First seat, message")
    admin.get_by_label("Pace").press("ArrowRight")  # it belongs to the field
    admin.wait_for_timeout(100)
    expect(where).to_have_text("Event 2 of 3")
    admin.reload()
    expect(where).to_have_text("Event 2 of 3")


@pytest.mark.keyboard
def test_a_match_plays_by_itself_until_it_is_paused_or_over(parlor: Stack, admin: Page, played: str) -> None:
    admin.clock.install()
    admin.goto(f"{parlor.url}/admin/matches/{played}?at=3")
    where, play = admin.locator("#replay-where"), admin.locator("#replay-play")
    play.press("Enter")
    expect(where).to_have_text("Event 1 of 3")  # from the beginning
    expect(play).to_have_text("Pause")
    admin.clock.run_for(2000)
    expect(where).to_have_text("Event 2 of 3")
    play.press("Enter")
    expect(play).to_have_text("Play")
    admin.clock.run_for(10_000)
    expect(where).to_have_text("Event 2 of 3")
    admin.get_by_label("Pace").select_option("fast")
    play.click()
    admin.clock.run_for(800)
    expect(where).to_have_text("Event 3 of 3")
    expect(play).to_have_text("Play")
    expect(play).to_be_focused()


def test_a_match_that_goes_on_is_followed_from_its_last_event(
    parlor: Stack, admin: Page, played: str, visitor: Visitor
) -> None:
    admin.clock.install()
    admin.goto(f"{parlor.url}/admin/matches/{played}")
    where = admin.locator("#replay-where")
    expect(where).to_have_text("Event 3 of 3")
    expect(admin.locator(".head")).to_contain_text("Accepted moves: 2.")
    player = visitor.open(f"{parlor.url}/play/{played}")
    say(player, "And what would you like?")
    wait_for_answer(player, 4)
    admin.clock.run_for(3000)
    expect(where).to_have_text("Event 5 of 5")
    expect(admin.locator(".head")).to_contain_text("Accepted moves: 4.")
    admin.locator("body").press("ArrowLeft")
    expect(where).to_have_text("Event 4 of 5")
    player.get_by_role("button", name="Leave").click()
    player.get_by_role("button", name="Leave the game").click()
    expect(player).to_have_url(RESULT)
    admin.clock.run_for(3000)
    expect(admin.locator(".head .tag")).to_have_text("resigned")
    expect(where).to_have_text("Event 4 of 7")
    expect(admin.locator("#replay-events > li")).to_have_count(7)


def test_without_javascript_and_without_motion_a_match_is_replayed_by_links(
    parlor: Stack, admin: Page, played: str, visitors: Callable[..., Visitor]
) -> None:
    plain = visitors(java_script_enabled=False, storage_state=admin.context.storage_state())
    page = plain.open(f"{parlor.url}/admin/matches/{played}?at=2")
    expect(page.get_by_role("button", name="Play")).to_be_hidden()
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#replay-where")).to_have_text("Event 3 of 3")
    page.get_by_role("link", name="Event 1", exact=True).click()
    expect(page.locator("#replay-where")).to_have_text("Event 1 of 3")
    scrolls = "getComputedStyle(document.querySelector('.events-window')).scrollBehavior"
    still = visitors(reduced_motion="reduce", storage_state=admin.context.storage_state())
    assert still.open(page.url).evaluate(scrolls) == "auto"


@pytest.fixture(scope="module")
def furnished(parlor: Stack, stub: StubServer, hub: HubServer) -> Furnished:
    """Models and matches of all kinds."""
    return furnish(parlor, stub, hub)


# States that have no colours but those of pages seen already.
ALIKE = (
    "-refused",
    "-empty",
    "-unfolded",
    "-waiting",
    "-cancelled",
    "-interrupted",
    "-import",
    "-one",
    "-none",
    "-begins",
)
WALKS: dict[str, Callable[[Stack, Page, Furnished], Iterator[str]]] = {
    "before": lambda parlor, page, _: chain(empty_states(parlor, page), signed_out_states(parlor, page)),
    "matches and models": match_and_model_states,
    "rounds": lambda parlor, page, furnished: round_states(parlor, page, furnished.rounds),
    "datasets": lambda parlor, page, furnished: dataset_states(parlor, page, furnished.rounds, furnished.datasets),
    "jobs": lambda parlor, page, furnished: job_states(parlor, page, furnished.jobs, furnished.datasets),
    "answers": answered_states,
}


@pytest.mark.parametrize("walk", WALKS)
def test_axe_finds_nothing_on_any_admin_page_in_any_state(
    parlor: Stack, furnished: Furnished, visitors: Callable[..., Visitor], walk: str
) -> None:
    visitor = inspector(visitors)
    for refusal in ("40[0149]", 'The specified value "never"'):
        visitor.forgive(refusal)
    page = visitor.context.new_page()
    if walk != "before":
        sign_in(parlor, page)
    found = {
        name: faults_in_each_look(page, colours=not name.endswith(ALIKE))
        for name in WALKS[walk](parlor, page, furnished)
    }
    assert len(found) > 3
    assert {name: each for name, each in found.items() if each} == {}
