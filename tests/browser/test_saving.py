"""A form that takes its time says so and is sent once; it works without scripts, too."""

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from sqlalchemy import select, text

from app.models import LanguageModel
from tests.browser.admin_states import sign_in
from tests.browser.visitor import Visitor
from tests.stack import PATIENCE, Stack
from tests.tables import database

# Playwright looks at no page that is being left, so the page itself tells what it shows.
_WATCH = """() => new MutationObserver(() => {
  const shown = document.querySelector("form[aria-busy=true] .saving")?.textContent;
  if (shown) window.noted(shown);
}).observe(document.body, { subtree: true, childList: true, characterData: true })"""


def test_a_form_that_is_being_saved_says_so_and_two_presses_send_it_once(
    parlor: Stack, visitors: Callable[..., Visitor]
) -> None:
    visitor = visitors(viewport={"width": 390, "height": 800})
    page = visitor.open(parlor.url)
    sign_in(parlor, page)
    page.goto(parlor.url + "/admin/models/1")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    said: list[str] = []
    page.expose_function("noted", lambda shown: said.append(shown))
    page.evaluate(_WATCH)
    page.locator("input[name=label]").fill("A slow label")
    with database(parlor) as engine, engine.connect() as other:
        other.execute(text("DELETE FROM lease"))  # holds the lock: the form waits
        page.evaluate(
            "() => { const button = document.querySelector('input[name=label]').form.querySelector("
            "'[type=submit]'); button.click(); button.click(); }"
        )
        deadline = time.monotonic() + PATIENCE
        while not said and time.monotonic() < deadline:
            page.wait_for_timeout(50)
        other.rollback()
    expect(page.locator("input[name=label]")).to_have_value("A slow label")
    assert (said[:1], len(sent)) == (["Saving …"], 1)
    with database(parlor) as engine, engine.connect() as connection:
        assert connection.scalar(select(LanguageModel.label).where(LanguageModel.id == 1)) == "A slow label"


@pytest.mark.long
def test_without_scripts_a_form_that_could_not_be_saved_is_sent_again_from_the_page_that_says_so(
    parlor: Stack, visitors: Callable[..., Visitor]
) -> None:
    visitor = visitors(java_script_enabled=False)
    visitor.forgive("503")
    page = visitor.open(parlor.url)
    sign_in(parlor, page)
    page.goto(parlor.url + "/admin/models/1")
    page.locator("input[name=label]").fill("Kept all the same")
    with database(parlor) as engine, engine.connect() as other:
        other.execute(text("DELETE FROM lease"))
        page.locator("form", has=page.locator("input[name=label]")).locator("[type=submit]").first.click()
        expect(page.get_by_text("What you have entered is still here.")).to_be_visible()
        other.rollback()
    page.get_by_role("button", name="Send it again").click()
    expect(page.locator("input[name=label]")).to_have_value("Kept all the same")
