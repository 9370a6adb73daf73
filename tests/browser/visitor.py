"""A visitor with a browser of their own, who notices whatever goes wrong on a page."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, WebError, WebSocket, sync_playwright

from tests.stack import PATIENCE

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
]


def chromium_path(*, whole: bool = False) -> str | None:
    """Where Chromium is installed on this machine: its shell without windows, which does the same with a quarter of
    the work, or the `whole` of it, which is for tests that go through a page by keys: in the shell a page now and then
    loses the focus for good. Either does where the other is missing.
    """
    names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
    if whole:
        names.append(names.pop(0))
    return next(filter(None, map(shutil.which, names)), None)


@contextmanager
def running_playwright() -> Iterator[Callable[[bool], Browser]]:
    """Starts a headless Chromium, the whole one or not, when it is first asked for; ends them with the block."""
    with sync_playwright() as playwright:
        running: dict[str | None, Browser] = {}

        def browser(whole: bool) -> Browser:
            path = chromium_path(whole=whole)
            if path not in running:
                running[path] = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
            return running[path]

        yield browser
        for each in running.values():
            each.close()


class Visitor:
    """One browser profile with its tabs. `frames` are the texts of all WebSocket frames, sent and received."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        options.setdefault("viewport", {"width": 1280, "height": 900})
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(1000 * PATIENCE)
        self.frames: list[str] = []
        self._complaints: list[str] = []
        self._forgiven: list[str] = []
        self.context.on("console", self._console)
        self.context.on("weberror", self._web_error)
        self.context.on("request", self._request)
        self.context.on("page", lambda page: page.on("websocket", self._websocket))

    def open(self, url: str) -> Page:
        """A new tab on that address."""
        page = self.context.new_page()
        page.goto(url)
        return page

    def forgive(self, pattern: str) -> None:
        """A complaint that belongs to what the test does, as a regular expression."""
        self._forgiven.append(pattern)

    @property
    def complaints(self) -> list[str]:
        """What went wrong on any page, without what is forgiven."""
        return [each for each in self._complaints if not any(re.search(known, each) for known in self._forgiven)]

    def close(self) -> None:
        self.context.close()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):  # a violation of the content security policy is an error, too
            self._complaints.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _web_error(self, error: WebError) -> None:
        self._complaints.append(f"uncaught: {error.error}")

    def _request(self, request: Request) -> None:
        if not re.match(r"(http|ws)://127\.0\.0\.1:\d+/", request.url):
            self._complaints.append(f"a request to elsewhere: {request.url}")

    def _websocket(self, socket: WebSocket) -> None:
        for event in ("framesent", "framereceived"):
            socket.on(event, lambda frame: self.frames.append(str(frame)))
