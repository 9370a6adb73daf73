"""One bot that takes part in a study, with one of the habits of people (`notes.py`)."""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from app.studies.bots.browser import Browser, PageFailed, Shown
from app.studies.bots.notes import BotNotes
from app.studies.bots.pages import Form, FormField
from app.studies.bots.seat import BotSeat, SeatLost

_MOST_PAGES = 400
_TURN_SECONDS = 180.0
_TRIES = 5
_LATE = 2.0  # seconds after the last moment at which an answer counts
_PRIVATE_LINK = "/s/me/"  # the beginning of a private link's path
Answers = Callable[[str], Mapping[str, str]]  # by the private token: right answers for the current page, by field


class Bot:
    """A bot. It enters by `link`, which identifies it, and plays like the game's scripted player."""

    def __init__(self, server: str, link: str, number: int, habit: str, seed: int, answers: Answers) -> None:
        self.notes = BotNotes(number, habit)
        self._server, self._link, self._answers = server, link, answers
        self._rng = random.Random(f"{seed}/{number}")
        self._browsers: list[Browser] = []
        self._turn = 0
        self._stop_at = self._rng.randint(2, 7)
        self._has_left = False
        self._refused = 0  # consecutive times
        self._old: tuple[Shown, Form, list[tuple[str, str]]] | None = None

    async def run(self) -> BotNotes:
        """Take part from the first page to the last. What goes wrong is in the notes."""
        two = self.notes.habit == "two browsers"
        async with Browser(self._server) as first, Browser(self._server) as second:
            self._browsers = [first, second] if two else [first]
            try:
                await self._enter_study()
                await self._walk()
            except (PageFailed, SeatLost, TimeoutError) as error:
                self.notes.surprises.append(f"{type(error).__name__}: {error}")
        return self.notes

    @property
    def _browser(self) -> Browser:
        """The browser to use now; a bot with two browsers alternates between them."""
        return self._browsers[self._turn % len(self._browsers)]

    async def _enter_study(self) -> None:
        for browser in self._browsers:
            if self.notes.token is not None:  # the recruitment link works only in the first browser
                shown = await browser.get(f"{_PRIVATE_LINK}{self.notes.token}")
                if self._token(shown) != self.notes.token:
                    self.notes.surprises.append("became another person in the second browser")
                continue
            shown = await browser.get(self._link)
            form = next((each for each in shown.page.forms if each.method == "post"), None)
            if form is None:
                raise PageFailed(f"no way in at {shown.path}, status {shown.status}")
            shown = await browser.send(shown, form, [("touch", "")])
            self.notes.token = self._token(shown)

    @staticmethod
    def _token(shown: Shown) -> str:
        """The token of the private link, which redirects to the match during a match. Raises PageFailed."""
        paths = [urlsplit(each).path for each in (*shown.led_by, shown.address)]
        token = next((path.removeprefix(_PRIVATE_LINK) for path in paths if path.startswith(_PRIVATE_LINK)), None)
        if token is None:
            raise PageFailed(f"no private link before {shown.path}, status {shown.status}")
        return token

    async def _walk(self) -> None:
        link = f"{_PRIVATE_LINK}{self.notes.token}"
        for _ in range(_MOST_PAGES):
            self._turn += 1
            shown = await self._browser.get(link)
            if shown.page.data.get("match"):
                await self._play(shown)
                continue
            form = shown.page.form_with("step")
            if form is None:
                self._arrive(shown)
                return
            step = form.fields["step"].value
            if not self.notes.steps or self.notes.steps[-1] != step:
                self.notes.steps.append(step)
            if self.notes.habit == "withdraws" and len(self.notes.steps) >= self._stop_at and not step.startswith("de"):
                await self._withdraw_from_study(link)
                continue
            if "here" in form.fields and not await self._is_here(shown):
                continue
            await self._answer_step(shown, form, step)
        self.notes.surprises.append(f"came to no end within {_MOST_PAGES} pages; the last was {self.notes.steps[-1:]}")

    async def _is_here(self, shown: Shown) -> bool:
        """Whether the bot confirms that it is still there after a match in which it went silent: every second bot
        does.
        """
        left = shown.page.data.get("left")
        if left is None or self.notes.number % 2:
            return True
        await asyncio.sleep(float(left) + _LATE)
        return False

    def _arrive(self, shown: Shown) -> None:
        self.notes.arrived = shown.status == 200
        self.notes.code = shown.page.outputs.get("code") or None
        if shown.status != 200:
            self.notes.surprises.append(f"status {shown.status} at {shown.path}")

    async def _withdraw_from_study(self, link: str) -> None:
        self._stop_at = _MOST_PAGES
        shown = await self._browser.get(f"{link}/leave")
        form = next((each for each in shown.page.forms if self._act_of_form(each) == "stop"), None)
        if form is None:
            self.notes.surprises.append("found no button to stop")
        else:
            await self._browser.send(shown, form, [])

    @staticmethod
    def _act_of_form(form: Form) -> str:
        return form.fields["act"].value if "act" in form.fields else ""

    async def _answer_step(self, shown: Shown, form: Form, step: str) -> None:
        habit = self.notes.habit
        if habit == "refreshes":
            shown = await self._browser.get(shown.path)
        await self._come_back(shown)
        values = self._form_values(form, self._answers(self.notes.token or ""), wrong=habit == "fails the quiz")
        if step == "consent" and habit == "declines":
            values = [("answer", "no")]
        if habit == "double-clicks":
            sent, _ = await asyncio.gather(*(self._browser.send(shown, form, values) for _ in range(2)))
        else:
            sent = await self._browser.send(shown, form, values)
        self._refused = self._refused + 1 if sent.status >= 400 else 0
        if self._refused:
            self.notes.surprises.append(f"status {sent.status} after {step}")
        if self._refused == _TRIES:
            raise PageFailed(f"{step} was refused {_TRIES} times")
        if habit == "sends old forms" and self._old is not None:
            await self._browser.send(*self._old)
        self._old = shown, form, values

    async def _come_back(self, shown: Shown) -> None:
        """Press the button at the end of each survey elsewhere, which bots do not visit."""
        for path in shown.page.returns:
            back = await self._browser.get(path)
            if (form := next((each for each in back.page.forms if each.method == "post"), None)) is not None:
                await self._browser.send(back, form, [])

    def _form_values(self, form: Form, right: Mapping[str, str], *, wrong: bool) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for each in form.fields.values():
            if each.kind == "hidden" or each.name.endswith(".skip"):
                continue
            known = right.get(each.name)
            if known is not None and wrong and len(each.options) > 1:
                found.append((each.name, next(option for option in each.options if option != known)))
            elif known is not None:
                found.append((each.name, known))
            else:
                found += [(each.name, value) for value in self._filled_in(each)]
        return found

    def _filled_in(self, asked: FormField) -> list[str]:
        if asked.kind == "checkbox":
            return asked.options[:1]
        options = [option for option in asked.options if option != "skip"]
        if options:
            return [self._rng.choice(options)]
        return ["I said what I thought of first."[: asked.longest or None]] if asked.kind == "textarea" else ["40"]

    async def _play(self, shown: Shown) -> None:
        """Play a match from its current state to the end; a bot that leaves returns to it with the next page."""
        data, habit = shown.page.data, self.notes.habit
        async with BotSeat(self._server, data["match"], data["ticket"]) as seat:
            while await seat.wait_for_turn(_TURN_SECONDS):
                if habit == "goes silent" and self.notes.matches:
                    await seat.wait_for_end(_TURN_SECONDS)
                    break
                await self._make_move(seat)
                if habit == "leaves and comes back" and not self._has_left:
                    self._has_left = True
                    return
            outcome = seat.view["outcome"]
            if outcome is not None and "utility" in outcome:
                self.notes.utilities[data["match"]] = outcome["utility"]
        self.notes.matches += 1

    async def _make_move(self, seat: BotSeat) -> None:
        habit = self.notes.habit
        timing: dict[str, Any] = {"first_input": 400, "typing": 900, "sent": 1500, "keys": 20, "typed": 20}
        if habit == "pastes":
            timing |= {"keys": 1, "typed": 0, "pastes": 1, "pasted": 20}
        for _ in range(_TRIES):
            answer = await seat.move(seat.chosen(self._rng), timing, twice=habit == "double-clicks")
            if answer.get("ok"):
                self.notes.moves += 1
                return
            if answer["error"]["code"] in ("over", "stale", "not_your_turn"):
                return
            if answer["error"]["code"] != "illegal_move":
                self.notes.surprises.append(f"a move was refused: {answer['error']['code']}")
                return
        self.notes.surprises.append("the scripted player found no move that the rules take")
