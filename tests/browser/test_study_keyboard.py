"""Studies by keys alone: the whole way through both examples, from the door to the code and the return button."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from app.core.extensions import writing
from tests.browser.keys import Keys
from tests.browser.steps import MATCH, RESULT, lines, wait_for_script
from tests.browser.study_walk import AT_ONCE, MATRIX, SLIDER
from tests.browser.visitor import Visitor
from tests.stack import LONG_LEASES, Stack, running_parlor
from tests.study_pages import door_of
from tests.tables import database
from tests.waves import changed, loaded_study, new_wave, store_study

pytestmark = pytest.mark.keyboard
WIDE = {"viewport": {"width": 1000, "height": 640}, "reduced_motion": "reduce"}  # small enough to be drawn quickly
NARROW = {"viewport": {"width": 360, "height": 640}, "reduced_motion": "reduce"}  # a phone, or a desktop at 300 %
ONE_GAME_EACH = {"within": ["objective"], "between": ["model"], "inside_block": "as written"}  # for each goal
BUTTON = "main form .button-main"
ASKED_FIRST = [
    SLIDER,
    MATRIX,
    {"id": "plays", "choices": ["cards", "chess", "dice"], "ask": "What do you play?"},
    {"id": "age", "number": [18, 110], "ask": "How old are you?", "prefer_not_to_say": True},
    {"id": "often", "choice": ["yes", "no"], "ask": "Do you play often?"},
    {"id": "why", "text": 200, "ask": "Why?", "show_if": "often = yes"},
]


@pytest.fixture(scope="module")
def studies(chromium: Callable[[bool], Browser]) -> Iterator[Stack]:
    """A Parlor with both examples, whose partners answer at once, in fewer games."""
    with running_parlor(**LONG_LEASES) as parlor:
        with database(parlor) as engine, writing(engine) as session:
            for name, asked, plan in (("two-models", ASKED_FIRST, ONE_GAME_EACH), ("taboo-roles", [], {"matches": 1})):
                loaded = loaded_study(name)
                survey = {**loaded.written["survey"], "start": asked}
                store_study(session, changed(loaded, same_for_all=AT_ONCE, survey=survey, plan=plan))
                new_wave(session, of=name)
        yield parlor


def door(parlor: Stack, study: str, person: str) -> str:
    return parlor.url + door_of(person, study=study)


def test_things_are_shared_out_without_a_pointer(studies: Stack, visitors: Callable[..., Visitor]) -> None:
    visitor = visitors(**WIDE)
    visitor.forgive("status of 400")  # a form that is refused
    page = visitor.open(door(studies, "two-models", "ann"))
    keys = Keys(page)
    agree(keys)
    answer_the_questions_at_the_start(keys)
    keys.look_around("instructions")
    answer_quiz(keys, wrong="24")
    keys.look_around("before a game")
    keys.turn(BUTTON)
    share_out(keys, with_a_look=True)
    keys.look_around("after a game")
    keys.turn(BUTTON)
    share_out(keys)
    answer_match(keys)
    answer_block(keys)
    answer_quiz(keys)
    keys.turn(BUTTON)
    share_out(keys)
    answer_match(keys)
    answer_block(keys)
    keys.choose("same", "yes")
    keys.write("[name=how]", "One was quick.")
    keys.choose("ai_help", "never")
    keys.choose("read_this", "green")
    keys.turn(BUTTON)
    come_to_the_code(keys)
    assert keys.faults == []


@pytest.mark.long
def test_a_word_is_played_for_without_a_pointer_in_a_narrow_window(
    studies: Stack, visitors: Callable[..., Visitor]
) -> None:
    visitor = visitors(**NARROW)
    visitor.forgive("status of 400")  # a form that is refused
    page = visitor.open(door(studies, "taboo-roles", "ben"))
    keys = Keys(page)
    agree(keys)
    keys.look_around("instructions")
    keys.turn(BUTTON)
    keys.pick("the attacker")
    keys.pick("once")
    keys.turn(BUTTON)
    roles: set[str] = set()
    for _ in range(3):
        keys.turn(BUTTON)
        roles.add(play_for_a_word(keys, roles))
    assert roles == {"attacker", "defender"}
    keys.look_around("after the last game")
    keys.turn(BUTTON)
    answer_the_questions_at_the_end(keys)
    keys.look_around("a guess about the partners")
    keys.pick("I am not sure")
    keys.turn(BUTTON)
    come_to_the_code(keys)
    assert keys.faults == []


@pytest.mark.long
def test_a_study_is_left_and_its_data_deleted_without_a_pointer(
    studies: Stack, visitors: Callable[..., Visitor]
) -> None:
    page = visitors(**NARROW).open(door(studies, "taboo-roles", "cem"))
    keys = Keys(page)
    keys.turn(BUTTON)
    keys.press("[name=part]", "Space")
    keys.press("[name=training]", "Space")
    keys.turn(BUTTON)
    keys.turn(BUTTON)
    keys.pick("the attacker")
    keys.pick("once")
    keys.turn(BUTTON)
    keys.turn(BUTTON)
    begin(keys)
    try_dialogs(keys)
    keys.press("#leave")
    keys.turn("#leave-dialog a[href$='/leave']")
    keys.look_around("leaving")
    keys.turn("footer a[href$='/report']")
    keys.look_around("report")
    keys.pick("Something else")
    keys.write("#text", "I have to go.")
    keys.turn("[name=then][value=stay]")
    keys.turn("footer a[href$='/leave']")
    keys.turn("form:has([value='no training']) button")
    expect(page.get_by_role("status")).to_contain_text("nothing new is trained")
    keys.turn("form:has([value=delete]) button")
    keys.look_around("asked again")
    expect(page.locator("a:focus")).to_have_text("Keep my data")
    keys.turn("form:has([name=sure]) button")
    expect(page.get_by_role("status")).to_contain_text("Your data are deleted.")
    keys.turn("main a.button-main")
    keys.look_around("done")
    expect(page.locator("h1")).to_have_text("You have left the study.")
    assert keys.faults == []


def agree(keys: Keys) -> None:
    """From the door past the consent."""
    keys.look_around("door")
    keys.turn(BUTTON)
    keys.look_around("consent")
    keys.press(BUTTON)
    expect(keys.page.locator("[name=part]")).to_be_focused()  # the browser asks for the tick
    keys.page.keyboard.press("Space")
    keys.press("[name=training]", "Space")
    keys.turn(BUTTON)


def answer_the_questions_at_the_start(keys: Keys) -> None:
    """Once with nothing answered, once with an age that is none; then as it should be."""
    page = keys.page
    slider = page.locator("input[type=range]")
    keys.look_around("questions")
    keys.press("input[type=range]", "Control")  # which speaks to a screen reader
    keys.turn(BUTTON)
    keys.look_at_refusal("refused questions", "input[type=range]")
    expect(slider).to_have_class("unset")
    page.keyboard.press("ArrowRight")
    expect(slider).not_to_have_class("unset")
    keys.choose("felt.fair", "4")
    keys.choose("felt.kind", "7")
    keys.press("[name=plays][value=cards]", "Space")
    keys.press("[name=plays][value=dice]", "Space")
    keys.write("[name=age]", "7")
    keys.choose("often", "yes")
    keys.write("[name=why]", "For the cards.")
    keys.turn(BUTTON)
    keys.look_at_refusal("refused age", "[name=age]")
    keys.press("[name='age.skip']", "Space")
    keys.turn(BUTTON)


def answer_quiz(keys: Keys, wrong: str | None = None) -> None:
    """From the instructions past the quiz, with or without a wrong answer at first."""
    together = "together" in keys.page.locator(".goal-words").inner_text()
    keys.turn(BUTTON)
    if wrong:
        keys.look_around("quiz")
        keys.pick(wrong)
        keys.turn(BUTTON)
        keys.look_at_refusal("quiz again", "input[type=radio]")
        keys.turn("main form .button-quiet")
        keys.look_around("rules")
        keys.turn("main .button-main")
        keys.pick("11" if together else "3")
    else:
        keys.pick("10" if together else "6")
    keys.turn(BUTTON)


def share_out(keys: Keys, *, with_a_look: bool = False) -> None:
    """A game: words where there is a turn for them, an offer, the result, and back to the study."""
    page = keys.page
    over = page.locator("#over a")
    begin(keys)
    if with_a_look:
        keys.look_around("game")
        try_dialogs(keys)
    if page.locator("#composer").is_visible():
        say(keys, "Shall we begin?")
    turn_or_end(page)
    if over.is_hidden():
        for kind in ("book", "hat"):
            keys.press(f"[data-kind={kind}] [data-step='1']")
        keys.go("#take-ball")
        page.keyboard.press("ArrowUp")
        keys.press("#offer [type=submit]")
        if with_a_look:
            keys.look_around_dialog("offer to be confirmed")
            page.keyboard.press("Escape")
            expect(page.locator("#offer [type=submit]")).to_be_focused()
            page.keyboard.press("Enter")
        keys.press("#offer-dialog [value=yes]")
    see_result(keys, with_a_look=with_a_look)


def play_for_a_word(keys: Keys, seen: set[str]) -> str:
    """A game in either role, which is given back; one that was not seen before is looked at."""
    page = keys.page
    begin(keys)
    role = "attacker" if page.locator("#word").count() else "defender"
    if role not in seen:
        keys.look_around(role)
    if role == "attacker":
        keys.write("#message", page.locator("#word").inner_text())
        page.keyboard.press("Enter")
        expect(page.locator("#message[aria-invalid=true]")).to_be_focused()  # which says that this may lose the game
        expect(page.locator("#message-error")).to_be_in_viewport()
        page.keyboard.press("Enter")
        expect(page.locator("#over a")).to_be_focused()
        keys.press(".skip")
        page.keyboard.press("Tab")
        expect(page.locator("#over a")).to_be_focused()
    else:
        keys.write("#guess", "two words")
        page.keyboard.press("Enter")
        expect(page.locator("#guess[aria-invalid=true]")).to_be_focused()
        expect(page.locator("#guess-error")).to_be_in_viewport()
        page.keyboard.press("Control+A")
        page.keyboard.type("zebra")
        page.keyboard.press("Enter")
        if role not in seen:
            keys.look_around_dialog("guess to be confirmed")
            page.keyboard.press("Escape")
            expect(page.locator("#guess")).to_be_focused()
            page.keyboard.press("Enter")
        keys.press("#guess-dialog [value=yes]")
    see_result(keys, with_a_look=role not in seen)
    return role


def answer_the_questions_at_the_end(keys: Keys) -> None:
    """The questions of the game with words: with nothing answered at first."""
    keys.look_around("questions")
    keys.turn(BUTTON)
    keys.look_at_refusal("refused questions", "[name=partner]")
    keys.choose("partner", "not sure")
    for row, point in (("clever", "1"), ("friendly", "3"), ("odd", "5")):
        keys.choose(f"felt.{row}", point)
    keys.press("input[type=range]", "End")
    keys.write("[name=age]", "44")
    keys.choose("first_check", "4")
    keys.choose("second_check", "apple")
    keys.turn(BUTTON)


def begin(keys: Keys) -> None:
    """In the game that has just come, as soon as it takes keys and it is this person's turn."""
    expect(keys.page).to_have_url(MATCH)
    wait_for_script(keys.page)
    turn_or_end(keys.page)


def turn_or_end(page: Page) -> None:
    """Wait until the game waits for this person, or is over."""
    turn = page.locator("#turn-now").filter(has_text=re.compile("^Your turn"))
    expect(turn.or_(page.locator("#over a").filter(visible=True))).not_to_have_count(0)


def say(keys: Keys, text: str) -> None:
    """Write a message and send it, and wait for an answer."""
    said = lines(keys.page).count()
    keys.write("#message", text)
    keys.page.keyboard.press("Enter")
    expect(keys.page.locator("#log li[data-key], #over a:visible").nth(said + 1)).to_be_attached()


def try_dialogs(keys: Keys) -> None:
    """Open what a game can ask and tell, and go back to where one was."""
    page = keys.page
    for opener, dialog in (("#rules-link", "#rules-dialog"), ("#leave", "#leave-dialog")):
        keys.press(opener)
        expect(page.locator(dialog)).to_be_visible()
        keys.look_around_dialog(dialog)
        page.keyboard.press("Escape")
        expect(page.locator(dialog)).to_be_hidden()
        expect(page.locator(opener)).to_be_focused()


def see_result(keys: Keys, *, with_a_look: bool = False) -> None:
    """To the result, where the focus is on the way there or the game has led there by itself, and on in the study."""
    page = keys.page
    expect(page.locator("#over a:focus, main.result")).to_be_attached()
    if page.locator("main.result").count() == 0:
        keys.turn("#over a")
    expect(page).to_have_url(RESULT)
    if with_a_look:
        expect(page.locator("main")).to_be_focused()  # to be read at once
        keys.look_on("result")
    keys.turn("main .button-main")


def answer_match(keys: Keys) -> None:
    """From the result of a game past the question about its partner."""
    keys.turn(BUTTON)
    keys.choose("trust", "5")
    keys.turn(BUTTON)


def answer_block(keys: Keys) -> None:
    """From the question about the last game of a block past the questions about the block."""
    keys.choose("effort", "6")
    keys.choose("read_it", "2")
    keys.turn(BUTTON)


def come_to_the_code(keys: Keys) -> None:
    """From the page about the study to the last one."""
    page = keys.page
    keys.look_around("debrief")
    keys.press(BUTTON)
    expect(page.locator("[name=data]").first).to_be_focused()  # the browser asks for a choice
    keys.choose("data", "yes")
    keys.choose("training", "no")
    keys.turn(BUTTON)
    keys.look_around("done")
    expect(page.locator("#code")).to_have_text("C7RX94LM")
    keys.go("a.button-main[href*='C7RX94LM']")
    expect(page.locator("a.button-main:focus")).to_have_text("Return to Prolific")
