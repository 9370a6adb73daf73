"""A study in a browser: the whole way on each width, and what scripts add to the pages."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.axe import faults_in_each_look, inspector
from tests.browser.steps import faults
from tests.browser.study_walk import heading, main_button, open_study, walk
from tests.browser.visitor import Visitor
from tests.stack import LONG_LEASES, running_parlor

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


def test_the_whole_way_is_accessible_in_each_look(visitors: Callable[..., Visitor]) -> None:
    found: list[str] = []

    def seen(page: Page, name: str) -> None:
        found.extend(f"{name}: {fault}" for fault in [*faults_in_each_look(page), *faults(page)])

    with running_parlor(**LONG_LEASES) as parlor:
        visitor = inspector(visitors)
        page = visitor.context.new_page()
        walk(page, open_study(parlor), seen)
    assert found == []


def test_what_was_typed_survives_on_a_phone_and_with_keys(visitors: Callable[..., Visitor]) -> None:
    with running_parlor(**LONG_LEASES) as parlor:
        visitor = visitors(**PHONE)
        visitor.forgive("status of 400")  # a form that is refused
        page = visitor.open(open_study(parlor))
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
        page.locator("[name='felt.kind'][value='4']").press("Enter")
        expect(page.locator(".goal-words")).to_be_visible()
        page.get_by_role("link", name="Leave the study").click()
        assert heading(page) == "Stop, or take something back"
        assert faults(page) == []
