"""The whole way through the example of two models, as a person goes it in a browser."""

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from app.core.extensions import writing
from tests.browser.steps import MATCH, RESULT, offer, say, see_result
from tests.stack import Stack
from tests.study_pages import door_of
from tests.tables import database
from tests.waves import changed, loaded_study, new_wave, store_study

AT_ONCE = {"reply_after": {"seconds_per_word": 0, "least": 0, "most": 0}}
SLIDER = {"id": "hard", "slider": {"ends": ["easy", "hard"]}, "ask": "How hard was it?", "prefer_not_to_say": True}
MATRIX = {
    "id": "felt",
    "matrix": {
        "rows": {"fair": "It was fair.", "kind": "It was kind."},
        "scale": 7,
        "ends": ["not at all", "completely"],
    },
    "ask": "Well?",
    "prefer_not_to_say": True,
}


def open_study(parlor: Stack, wave: str = "main") -> str:
    """Open a wave of the example; the link of its first person."""
    with database(parlor) as engine, writing(engine) as session:
        loaded = loaded_study()
        survey = dict(loaded.written["survey"])
        survey["start"] = [SLIDER, MATRIX]
        store_study(session, changed(loaded, same_for_all=AT_ONCE, survey=survey))
        new_wave(session, wave=wave)
    return parlor.url + door_of("ann", wave)


def main_button(page: Page) -> Locator:
    """The one action of a page that shows; the question whether somebody is still there is hidden until it is due."""
    return page.locator("main form .button-main:visible").first


def heading(page: Page) -> str:
    return page.locator("h1").inner_text()


def walk(page: Page, door: str, seen: Callable[[Page, str], None]) -> None:
    """From the door to the last page. `seen` is called on each kind of page."""
    page.goto(door)
    seen(page, "door")
    main_button(page).click()
    page.wait_for_url("**/s/me/*")
    seen(page, "consent")
    page.locator("[name=part]").check()
    main_button(page).click()
    rate(page, seen)
    instructions_and_quiz(page, seen)
    play(page, "Start the practice game", seen)
    seen(page, "practice")
    for number in (1, 2):
        play(page, f"Start game {number}")
        seen(page, f"after game {number}")
        answer_match(page)
    answer_block(page)
    instructions_and_quiz(page)
    for number in (3, 4):
        play(page, f"Start game {number}")
        answer_match(page)
    answer_block(page)
    seen(page, "survey")
    page.get_by_label("no", exact=True).check()
    page.get_by_label("never").check()
    page.get_by_label("green").check()
    main_button(page).click()
    expect(page.locator("[name=data]")).to_have_count(2)
    seen(page, "debrief")
    page.get_by_label("Yes, keep them").check()
    page.get_by_label("No, they may not").check()
    main_button(page).click()
    expect(page.locator("#code")).to_have_text("C7RX94LM")
    seen(page, "done")


def rate(page: Page, seen: Callable[[Page, str], None]) -> None:
    """The questions before the first game."""
    slider = page.locator("input[type=range]")
    expect(slider).to_have_class("unset")
    seen(page, "survey start")
    slider.press("ArrowRight")
    expect(slider).not_to_have_class("unset")
    for row in ("fair", "kind"):
        page.locator(f"[name='felt.{row}'][value='4']").check()
    main_button(page).click()


def instructions_and_quiz(page: Page, seen: Callable[[Page, str], None] | None = None) -> None:
    """Read the goal, and answer the quiz by it; the first time wrongly at first."""
    goal = page.locator(".goal-words").inner_text()
    if seen:
        seen(page, "instructions")
    main_button(page).click()
    together = "together" in goal
    if seen:
        seen(page, "quiz")
        page.get_by_label("24", exact=True).check()
        main_button(page).click()
        expect(page.locator("#refused")).to_be_focused()
        seen(page, "quiz again")
        page.get_by_label("11" if together else "3", exact=True).check()
    else:
        page.get_by_label("10" if together else "6", exact=True).check()
    main_button(page).click()


def answer_match(page: Page) -> None:
    """From the result of a game past the question about its partner."""
    main_button(page).click()
    page.locator("[name=trust][value='5']").check()
    main_button(page).click()


def answer_block(page: Page) -> None:
    """The questions after a block."""
    page.locator("[name=effort][value='6']").check()
    page.locator("[name=read_it][value='2']").check()
    main_button(page).click()


def play(
    page: Page, button: str, seen: Callable[[Page, str], None] | None = None, words: str = "Shall we begin?"
) -> None:
    """Play the game that the button starts, with these words, and come back to the study."""
    if seen:
        seen(page, "ready")
    page.get_by_role("button", name=button).click()
    page.wait_for_url(MATCH)
    if seen:
        seen(page, "game")
    turn, over = page.locator("#turn-now"), page.locator("#over a")
    said = False
    while True:
        expect(turn.filter(has_text=re.compile("^Your turn")).or_(over.filter(visible=True))).not_to_have_count(0)
        if over.is_visible():
            break
        if said or "make your offer" in turn.inner_text():
            offer(page, 1, 1, 1)  # which the partner answers, or has waited for: the game is over
            break
        before = page.locator("#log li[data-key]").count()
        say(page, words)
        said = True
        expect(page.locator("#log li[data-key]")).not_to_have_count(before)
    see_result(page)
    expect(page).to_have_url(RESULT)
    page.get_by_role("link", name="Continue").click()
    page.wait_for_url("**/s/me/*")
