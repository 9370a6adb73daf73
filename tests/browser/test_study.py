"""A study in a browser: the whole way on each width, what scripts add to the pages, and that nobody is lost on it."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from app.core.extensions import writing
from app.studies.waves import find_wave, pause
from tests.browser.axe import faults_in_each_look, inspector
from tests.browser.steps import faults
from tests.browser.study_walk import heading, main_button, open_study, walk
from tests.browser.visitor import Visitor
from tests.stack import LONG_LEASES, Stack, running_parlor
from tests.tables import database

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def studies(chromium: Callable[[bool], Browser]) -> Iterator[Stack]:
    """A Parlor for these studies."""
    with running_parlor(**LONG_LEASES) as parlor:
        yield parlor


def test_the_whole_way_is_accessible_in_each_look_and_every_page_is_found_again(
    studies: Stack, visitors: Callable[..., Visitor]
) -> None:
    found: list[str] = []
    visitor, device = inspector(visitors), inspector(visitors)
    device.forgive("status of 403")  # the address of a game alone
    page, elsewhere = visitor.context.new_page(), device.context.new_page()
    way = ""

    def look(page: Page, name: str) -> None:
        found.extend(f"{name}: {fault}" for fault in [*faults_in_each_look(page), *faults(page)])

    def seen(page: Page, name: str) -> None:
        nonlocal way
        look(page, name)
        shown, here = state(page), page.url
        page.reload()
        assert state(page) == shown
        if name == "door":
            return
        if name == "game":
            page.locator("#leave").click()
            look(page, "leaving a game")
            page.keyboard.press("Escape")
            elsewhere.goto(here)
            look(elsewhere, "a game elsewhere")
            expect(elsewhere.get_by_role("main")).to_contain_text("Open your private link in this browser.")
        else:
            way = here
        elsewhere.goto(way)  # another device with the private link
        assert state(elsewhere) == shown
        page.go_back()  # to what the browser takes for the page before
        page.goto(way)
        assert state(page) == shown

    walk(page, open_study(studies), seen)
    for path in ("leave", "report", "agreed"):
        page.goto(f"{way}/{path}")
        look(page, path)
    assert found == []


def state(page: Page) -> tuple[str, str | None]:
    """The page that is shown: its heading, and the step that its form is for."""
    step = page.locator("main [name=step]")
    return heading(page), step.first.get_attribute("value") if step.count() else None


@pytest.mark.parametrize("wide", [True, False])
def test_a_matrix_says_what_its_numbers_and_its_last_button_mean(
    studies: Stack, visitors: Callable[..., Visitor], wide: bool
) -> None:
    page = visitors(**({} if wide else PHONE)).open(open_study(studies, "wide" if wide else "narrow"))
    main_button(page).click()
    page.locator("[name=part]").check()
    main_button(page).click()
    # Over all lines where there is room, else with each of them.
    places = page.locator(".matrix-head" if wide else "#felt .rating")
    expect(places).to_have_count(1 if wide else 2)
    for told in places.all():
        for words in ("1 = not at all", "completely = 7", "I prefer not to say"):
            box = told.get_by_text(words).bounding_box()
            assert box is not None
            assert box["width"] > 30, words  # what is for screen readers alone is a dot
    page.get_by_role("radiogroup", name="It was kind.").get_by_label("I prefer not to say").check()
    assert faults(page) == []


def test_what_was_typed_survives_a_refusal_a_lost_connection_and_a_restart(
    studies: Stack, visitors: Callable[..., Visitor]
) -> None:
    visitor = visitors(**PHONE)
    visitor.forgive("status of 400")  # a form that is refused
    page = visitor.open(open_study(studies, "phone"))
    main_button(page).click()
    page.get_by_role("button", name="Copy the link").first.wait_for()
    main_button(page).click()
    expect(page.locator("[name=part]")).to_be_focused()  # the browser asks for the tick
    page.keyboard.press("Space")
    page.locator("[name=part]").press("Enter")
    slider = page.locator("input[type=range]")
    expect(page.locator(".slider output")).to_have_text("not answered yet")
    main_button(page).click()
    expect(page.locator("#refused")).to_be_focused()
    slider.press("ArrowRight")
    page.locator("[name='felt.fair'][value='3']").check()
    page.reload()
    expect(page.locator(".slider output")).to_have_text("51")
    expect(page.locator("[name='felt.fair'][value='3']")).to_be_checked()
    page.locator("[name='felt.kind'][value='4']").check()
    visitor.context.set_offline(True)
    main_button(page).click()
    expect(page.locator("#offline")).to_be_visible()
    studies.kill("web")
    visitor.context.set_offline(False)
    expect(page.locator("#offline")).to_be_hidden()
    expect(page.locator("[name='felt.kind'][value='4']")).to_be_checked()
    page.locator("[name='felt.kind'][value='4']").press("Enter")
    expect(page.locator(".goal-words")).to_be_visible()
    page.get_by_role("link", name="Leave the study").click()
    assert heading(page) == "Stop, or withdraw consent"
    assert faults(page) == []


def test_who_agrees_while_the_wave_is_paused_is_shown_why_nothing_happens(
    studies: Stack, visitors: Callable[..., Visitor]
) -> None:
    visitor = visitors(**PHONE)
    visitor.forgive("status of 409")
    page = visitor.open(open_study(studies, "paused"))
    main_button(page).click()
    page.locator("[name=part]").check()
    with database(studies) as engine, writing(engine) as session:
        pause(session, find_wave(session, "two-models:paused"))
    main_button(page).click()
    told = page.get_by_role("alert").filter(has_text="This study is paused.")
    expect(told).to_be_focused()
    expect(told).to_be_in_viewport()
    expect(page.locator("[name=part]")).to_be_checked()
