"""The pictures of docs/studies.md: its first walk, step by step, in a real Chromium.

    python -m scripts.study_guide [FOLDER]

It starts a Parlor as `make run` does; `make screenshots` makes these pictures, too. A step that no longer leads where
the page says ends it with an error.
"""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from app.core.config import ROOT
from tests.browser.study_walk import answer_block, answer_match, instructions_and_quiz, main_button, play
from tests.browser.visitor import Visitor, running_playwright
from tests.stack import Stack, running_parlor

IMAGES = ROOT / "docs" / "images"
SIZE = {"width": 1100, "height": 760}
STUDY, TITLE = "sharing", "Sharing things"
# What has to be changed in the example before people come, as the page lists it.
CHANGES = {
    "study: two-models-copy": f"study: {STUDY}",
    "name: Write your name here": "name: Ada Byron",
    "mail: you@example.edu": "mail: ada.byron@parlor.test",
    "controller: Write your university here": "controller: University of Example",
}
PATIENCE = 120_000  # milliseconds for a reply, as a small model takes on a busy machine
Shoot = Callable[[Page, str], None]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.study_guide", description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=IMAGES, help="where the pictures go [docs/images]")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=PATIENCE)
    with running_parlor(SMALL_MODELS="true") as parlor, running_playwright() as chromium:
        guide(parlor, chromium(False), folder)
    return 0


def guide(parlor: Stack, browser: Browser, folder: Path) -> None:
    """All steps, with a picture of those that the page shows."""

    def shoot(page: Page, name: str) -> None:
        page.evaluate("document.activeElement?.blur(); scrollTo(0, 0)")
        page.screenshot(path=folder / f"study-{name}.png", animations="disabled")

    experimenter, person = (Visitor(browser, viewport=SIZE) for _ in range(2))
    page = experimenter.context.new_page()
    sign_in(parlor, page)
    write_study(page, shoot)
    link = open_wave(page, shoot)
    take_part(person.open(link), shoot)
    watch(page, shoot)
    pay(page, shoot)
    take_data(page)
    for visitor in (experimenter, person):
        expected(visitor.complaints == [], "pages without complaints", visitor.complaints)
        visitor.close()


def expected(holds: bool, what: str, got: object) -> None:
    """Raises ValueError if something does not hold that the page says."""
    if not holds:
        raise ValueError(f"expected {what}, got {got}")


def sign_in(parlor: Stack, page: Page) -> None:
    """Follow the second address that `make run` prints."""
    found = re.search(r"http://\S+/enter/\S+", parlor.output())
    page.goto(found[0] if found else "")
    page.get_by_role("button", name="Sign in").click()


def write_study(page: Page, shoot: Shoot) -> None:
    """Begin with an example, change what has to be changed, and save it."""
    page.get_by_role("navigation", name="Admin").get_by_role("link", name="Studies").click()
    shoot(page, "start")
    page.get_by_role("link", name="Start from it two-models").click()
    text = page.locator("#yaml")
    written = text.input_value()
    text.fill(written.replace("minutes: 25", "minutes: many"))
    expect(page.locator("#checked .bad")).to_contain_text("minutes")
    page.locator(".yaml").evaluate("file => { file.scrollTop = 0; }")
    shoot(page, "editor")
    for old, new in CHANGES.items():
        expected(old in written, f"{old} in the example", written)
        written = written.replace(old, new)
    text.fill(written)
    expect(page.locator("#checked .bad")).to_have_count(0)
    page.get_by_role("button", name="Save as version 1").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLE)
    shoot(page, "arms")
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Preview").first.click(modifiers=["ControlOrMeta"])
    expect(opened.value.get_by_role("heading", level=1)).to_be_visible()
    opened.value.close()
    page.get_by_role("link", name="All texts, to be printed").click()
    expect(page.get_by_role("heading", name="Debrief").first).to_be_visible()
    page.go_back()


def open_wave(page: Page, shoot: Shoot) -> str:
    """Open a wave with a link of one's own; the link."""
    page.get_by_role("link", name="Open a wave").click()
    page.get_by_label("A link that you send").check()
    page.get_by_label("Places").fill("10")
    shoot(page, "wave-form")
    page.get_by_role("button", name="Open the wave").click()
    return page.get_by_label("Send this link").input_value()


def take_part(page: Page, shoot: Shoot) -> None:
    """Go through the study, from the link to the last page."""
    main_button(page).click()
    page.wait_for_url("**/s/me/*")
    shoot(page, "consent")
    page.locator("[name=part]").check()
    main_button(page).click()

    def seen(page: Page, name: str) -> None:
        if name == "instructions":
            shoot(page, "instructions")

    instructions_and_quiz(page, seen)
    play(page, "Start the practice game")
    for number in (1, 2):
        play(page, f"Start game {number}")
        answer_match(page)
    answer_block(page)
    instructions_and_quiz(page)
    for number in (3, 4):
        play(page, f"Start game {number}")
        answer_match(page)
    answer_block(page)
    for label in ("no", "never", "green"):
        page.get_by_label(label, exact=True).check()
    main_button(page).click()
    page.get_by_label("Yes, keep them").check()
    page.get_by_label("No, they may not").check()
    main_button(page).click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def watch(page: Page, shoot: Shoot) -> None:
    """The page of the wave, which keeps itself fresh; then nobody new may come."""
    expect(page.get_by_role("table", name=re.compile("^People of this wave"))).to_contain_text("completed")
    shoot(page, "wave")
    page.get_by_role("button", name="Close", exact=True).click()
    page.get_by_role("button", name="Close the wave").click()
    expect(page.locator("#state")).to_have_text("closed")


def pay(page: Page, shoot: Shoot) -> None:
    """Draft what is owed, download the file, and mark how far it is."""
    page.get_by_role("link", name="Pay", exact=True).click()
    page.get_by_role("button", name="Draft a batch").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download batch 1").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    expected(len(lines) == 2, "a header and one person", lines)
    shoot(page, "pay")
    page.get_by_role("button", name="Mark as uploaded").click()
    page.get_by_role("button", name="Mark as confirmed").click()
    expect(page.get_by_role("table", name="Batches of this wave, the latest first")).to_contain_text("confirmed")


def take_data(page: Page) -> None:
    """Freeze the wave, and download its data."""
    page.get_by_role("link", name="Wave main").click()
    page.get_by_role("button", name="Freeze", exact=True).click()
    page.get_by_role("button", name="Freeze the wave").click()
    expect(page.locator("#state")).to_have_text("frozen")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the data").click()
    name = download.value.suggested_filename
    expected(name == f"{STUDY}-main.zip", f"{STUDY}-main.zip", name)


if __name__ == "__main__":
    sys.exit(main())
