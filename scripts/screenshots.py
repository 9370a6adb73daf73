"""Photographs every page and state of Parlor, in light, dark, at phone width and in German: `make screenshots`.

    python -m scripts.screenshots [FOLDER] [--only SCENE | --readme]

It starts a Parlor of its own on a temporary home, with a stub in place of language models, plays games in a real
Chromium and writes FOLDER/NAME-LOOK.png. With --readme it makes the two pictures of the README anew instead.
"""

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from app.core.config import ROOT
from tests.another_web import another_web
from tests.browser.admin_alignments import alignment_states, furnish_alignments
from tests.browser.admin_campaigns import campaign_states, furnish_campaigns
from tests.browser.admin_states import Furnished, empty_states, furnish, sign_in, signed_out_states, states
from tests.browser.steps import RESULT, guess, offer, say, see_result, wait_for_answer, wait_for_turn
from tests.browser.visitor import Visitor, running_playwright
from tests.hub_server import HubServer
from tests.participant import Table
from tests.stack import LONG_LEASES, PATIENCE, Stack, new_home
from tests.stub_openai import Messages, Reply, StubServer
from tests.tables import add_model, negotiation, taboo

PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True, "device_scale_factor": 2}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "phone": PHONE,
    "german": {"locale": "de-DE"},
    "german-phone": {**PHONE, "locale": "de-DE"},
}
TABLE = {"counts": (2, 1, 3), "values": ((1, 5, 1), (3, 1, 1))}
SHARING = (
    ("Hello! The hat matters most to me. What would you like?", "Nice to meet you. I like the books best."),
    ("Then take both books and I take the hat. Do we split the balls?", "Sounds fair. Two balls for me, one for you?"),
)
HINTING = (
    ("What do you put on a cake when somebody has a birthday?", "Icing, mostly. And a name, if there is room for it."),
    ("And when the power fails in a storm, what do you look for?", "My phone, to be honest. It is always at hand."),
)
WORD = "candle"
# What the stub says as each model, by the number of its own turn; the model's label is its name.
SPEAKERS: dict[str, tuple[str, ...]] = {
    "Sharer": (*(f"[message] {theirs}" for _, theirs in SHARING), "[propose] (2 books, 0 hats, 2 balls)"),
    "Sayer": (HINTING[0][1], "Oh, you mean a candle."),
    "Hinter": (*(theirs for _, theirs in HINTING), "I have no idea.", "Not a clue.", "Tell me."),
    "Asker": (*(mine for mine, _ in HINTING), "What smells of wax?"),
    "Offerer": ("[message] I like the books best. Let us make our offers.", "[propose] (2 books, 0 hats, 2 balls)"),
}


class ScreenshotSession:
    """A Parlor to photograph, and one visitor who looks at it in one look."""

    def __init__(self, parlor: Stack, furnished: Furnished, visitor: Visitor, look: str, folder: Path) -> None:
        self.parlor = parlor
        self.furnished = furnished
        self.visitor = visitor
        self._look = look
        self._folder = folder
        self.page = visitor.context.new_page()

    def go(self, path: str) -> Page:
        """Open a page of this Parlor."""
        self.page.goto(path if "://" in path else self.parlor.url + path)
        return self.page

    def sit_down(self, table: Table) -> Page:
        """Open a match and wait until it is this person's turn."""
        page = self.go(table.url)
        wait_for_turn(page)
        return page

    def shoot(self, name: str) -> None:
        """Write a picture of the page as it is now: all of it, or what is in sight while a dialog is open."""
        self.page.wait_for_load_state()
        whole = self.page.locator("dialog[open]").count() == 0
        self.page.screenshot(path=self._folder / f"{name}-{self._look}.png", full_page=whole, animations="disabled")

    def share(self, rounds: int = 2, opponent: str = "Sharer") -> Page:
        """A negotiation after so many rounds of talk."""
        page = self.sit_down(negotiation(self.parlor, opponent=opponent, config=TABLE))
        for number, (mine, _) in enumerate(SHARING[:rounds], 1):
            say(page, mine)
            wait_for_answer(page, 2 * number)
        return page

    def hint(self, rounds: int = 2, opponent: str = "Hinter", **config: Any) -> Page:
        """A game of taboo with the word in hand, after so many rounds."""
        page = self.sit_down(taboo(self.parlor, "attacker", WORD, opponent=opponent, config=config))
        for number, (mine, _) in enumerate(HINTING[:rounds], 1):
            say(page, mine)
            wait_for_answer(page, 2 * number)
        return page

    def seek(self) -> Page:
        """A game of taboo without the word, after a round."""
        page = self.sit_down(taboo(self.parlor, "defender", WORD, opponent="Asker"))
        say(page, HINTING[0][1])
        wait_for_answer(page, 3)
        return page


# ---- Scenes ----------------------------------------------------------------------


def plain_pages(session: ScreenshotSession) -> None:
    page = session.go("/")
    session.shoot("home")
    for details in page.locator("details.options").all():
        details.locator("summary").click()
    session.shoot("home-options")
    pages = {
        "rules-negotiation": "/rules/negotiation",
        "rules-taboo": "/rules/taboo",
        "about": "/about",
        "privacy": "/privacy",
        "error-404": "/nowhere",
        "error-403": "/play/AAAAAAAAAAAAAAAAAAAAAA",
    }
    for name, path in pages.items():
        session.go(path)
        session.shoot(name)
    with another_web(session.parlor, {"GUEST_PLAY": "false"}) as server:
        session.go(server)
        session.shoot("home-guests-off")


def negotiation_in_play(session: ScreenshotSession) -> None:
    page = session.sit_down(negotiation(session.parlor, opponent="Sharer", config=TABLE))
    session.shoot("negotiation-first-word")
    page = session.share()
    session.shoot("negotiation-your-turn")
    say(page, "Again [propose] (1 books, 0 hats, 0 balls)")
    expect(page.locator("#message-error")).not_to_be_empty()
    session.shoot("negotiation-refused")
    page.locator("#leave").click()
    session.shoot("negotiation-leave")
    page.keyboard.press("Escape")
    page.locator("#rules-link").click()
    session.shoot("negotiation-rules")
    page.keyboard.press("Escape")
    plan(page, 0, 1, 1)
    session.shoot("negotiation-plan")
    page.locator("#offer [type=submit]").click()
    session.shoot("negotiation-confirm")
    page.locator("#offer-dialog button[value=yes]").click()
    expect(page.locator("#over")).to_be_visible()
    session.shoot("negotiation-over")
    see_result(page)
    session.shoot("result-deal")
    page = session.share(0, "Thinker")
    say(page, SHARING[0][0])
    expect(page.locator("#typing")).not_to_be_empty()
    session.shoot("negotiation-partner-types")
    session.visitor.context.set_offline(True)
    expect(page.locator("#turn.turn-lost")).to_be_visible()
    session.shoot("negotiation-reconnecting")
    session.visitor.context.set_offline(False)


def negotiation_endings(session: ScreenshotSession) -> None:
    page = session.share(1, "Offerer")
    say(page, "All right.")
    expect(page.locator("#composer")).to_be_hidden()
    session.shoot("negotiation-partner-offered")
    offer(page, 2, 1, 1)
    expect(page).to_have_url(RESULT)
    session.shoot("result-no-deal")
    page = session.share(0, "Failing")
    say(page, "Hello!")
    expect(page.locator("#over")).to_be_visible()
    session.shoot("negotiation-aborted")
    see_result(page)
    session.shoot("result-aborted")
    page = session.share(1)
    page.locator("#leave").click()
    page.locator("#leave-dialog [value=yes]").click()
    expect(page).to_have_url(RESULT)
    session.shoot("result-left")


def taboo_with_the_word(session: ScreenshotSession) -> None:
    page = session.hint()
    session.shoot("taboo-attacker")
    say(page, "So you have no candles at home?")
    expect(page.locator("#message-error")).not_to_be_empty()
    session.shoot("taboo-warning")
    page = session.hint(1, "Sayer")
    say(page, HINTING[1][0])
    expect(page.locator("#over")).to_be_visible()
    session.shoot("taboo-over")
    see_result(page)
    session.shoot("result-taboo-won")
    page = session.hint(1, max_turns=2)
    say(page, HINTING[1][0])
    expect(page.locator("#over")).to_be_visible()
    see_result(page)
    session.shoot("result-taboo-tie")


def taboo_without_the_word(session: ScreenshotSession) -> None:
    page = session.seek()
    session.shoot("taboo-defender")
    page.locator("#guess").fill("lantern")
    page.locator("#guess-form [type=submit]").click()
    session.shoot("taboo-guess")
    page.keyboard.press("Escape")
    guess(page, "lantern")
    expect(page).to_have_url(RESULT)
    session.shoot("result-taboo-lost")


def open_game(session: ScreenshotSession) -> None:
    session.hint(1)
    session.go("/")
    session.shoot("home-open-game")


def admin(session: ScreenshotSession) -> None:
    """For experimenters: before anything has happened, before signing in, and everything else."""
    page, parlor = session.page, session.parlor
    for name in empty_states(parlor, page):
        session.shoot(f"admin-{name}")
    for name in signed_out_states(parlor, page):
        session.shoot(f"admin-{name}")
    sign_in(parlor, page)
    for name in states(parlor, page, session.furnished):
        session.shoot(f"admin-{name}")


def campaigns(session: ScreenshotSession) -> None:
    """For experimenters: campaigns, and the lineages of models."""
    page, parlor = session.page, session.parlor
    sign_in(parlor, page)
    for name in campaign_states(parlor, page, furnish_campaigns(parlor)):
        session.shoot(f"admin-{name}")


def alignments(session: ScreenshotSession) -> None:
    """For experimenters: assessments and alignments."""
    page, parlor = session.page, session.parlor
    sign_in(parlor, page)
    for name in alignment_states(parlor, page, furnish_alignments(parlor)):
        session.shoot(f"admin-{name}")


Scene = Callable[[ScreenshotSession], None]
SCENES: tuple[Scene, ...] = (
    plain_pages,
    negotiation_in_play,
    negotiation_endings,
    taboo_with_the_word,
    taboo_without_the_word,
    open_game,
    admin,
    campaigns,
    alignments,
)


def plan(page: Page, book: int, hat: int, ball: int) -> None:
    """Set the steppers and make nothing of it yet; on a phone they have to be unfolded first."""
    if page.locator("#offer details:not([open])").count():
        page.locator("#offer summary").click()
    for kind, count in (("book", book), ("hat", hat), ("ball", ball)):
        page.locator(f"#take-{kind}").fill(str(count))
    page.locator("#message").focus()


# ---- The session --------------------------------------------------------------------


@contextmanager
def a_parlor() -> Iterator[tuple[Stack, Furnished]]:
    """A Parlor with the stub's models to play against, and with models and matches for the admin pages."""
    home = new_home()
    with StubServer() as stub, HubServer().running() as hub:
        parlor = Stack(home, {"READING_WORDS_PER_MINUTE": "0", "GUEST_MATCHES_PER_MINUTE": "0", **LONG_LEASES})
        try:
            parlor.wait_until_ready()
            stub.script("Thinker", Reply("[message] Hm.", delay=60))
            for name, lines in SPEAKERS.items():
                stub.script(name, speaker(lines))
            for name in (*SPEAKERS, "Thinker"):
                add_model(parlor, stub.url, name.lower(), name, name)
            add_model(parlor, stub.url, "failing", "stub-500", "Failing")
            yield parlor, furnish(parlor, stub, hub)
        finally:
            parlor.stop()
            shutil.rmtree(home, ignore_errors=True)


def speaker(lines: tuple[str, ...]) -> Callable[[Messages], str]:
    """A model that says its lines in order, and the last of them ever after."""
    return lambda messages: lines[min(sum(each["role"] == "assistant" for each in messages), len(lines) - 1)]


def photograph(parlor: Stack, furnished: Furnished, browser: Browser, folder: Path, scenes: Sequence[Scene]) -> None:
    """The scenes in every look."""
    folder.mkdir(parents=True, exist_ok=True)
    for look, options in LOOKS.items():
        for scene in scenes:
            if scene in (admin, campaigns, alignments) and "locale" in options:
                continue  # they find their way by English names
            visitor = Visitor(browser, **options)
            scene(ScreenshotSession(parlor, furnished, visitor, look, folder))
            visitor.close()
        print(f"{look}: {len(list(folder.glob(f'*-{look}.png')))} pictures in {folder}")


def photograph_for_readme(parlor: Stack, furnished: Furnished, browser: Browser, folder: Path) -> None:
    """A match of each game in the middle, as the README shows them."""
    folder.mkdir(parents=True, exist_ok=True)
    visitor = Visitor(browser, viewport={"width": 1280, "height": 800})
    session = ScreenshotSession(parlor, furnished, visitor, "light", folder)
    page = session.share()
    plan(page, 0, 1, 1)
    page.screenshot(path=folder / "negotiation.png", animations="disabled")
    page = session.hint()
    page.screenshot(path=folder / "taboo.png", animations="disabled")
    visitor.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.screenshots", description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "screenshots", help="where the pictures go")
    parser.add_argument("--readme", action="store_true", help="make the README's pictures in docs/images instead")
    names = [scene.__name__ for scene in SCENES]
    parser.add_argument("--only", choices=names, help="make the pictures of this scene alone")
    options = parser.parse_args()
    scenes = [scene for scene in SCENES if options.only in (None, scene.__name__)]
    expect.set_options(timeout=1000 * PATIENCE)  # a model that fails is waited for
    with a_parlor() as (parlor, furnished), running_playwright() as chromium:
        browser = chromium(False)
        if options.readme:
            photograph_for_readme(parlor, furnished, browser, ROOT / "docs" / "images")
        else:
            photograph(parlor, furnished, browser, options.folder, scenes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
