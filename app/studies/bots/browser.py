"""A headless browser: pages, forms and cookies over HTTP; it waits while the server is unavailable."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import aiohttp

from app.studies.bots.pages import Form, Page, read_page

PATIENCE = 120.0  # seconds for an unavailable server to come back
_PAUSE = 0.3
_BUSY = (429, 502, 503, 504)
_AGENT = "Mozilla/5.0 (X11; Linux x86_64) Parlor-Bot"


class PageFailed(Exception):
    """A page could not be loaded: the server was unavailable for too long, or refused."""


class Shown(NamedTuple):
    """A page, its address and status, and the addresses that redirected to it, in order."""

    address: str
    status: int
    page: Page
    led_by: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The path of its address."""
        return urlsplit(self.address).path


class Browser:
    """One browser with its cookies. Use it as an asynchronous context manager."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> "Browser":
        # A server addressed by number has cookies, too, and so has one that people reach only over HTTPS.
        jar = aiohttp.CookieJar(unsafe=True, treat_as_secure_origin=self._server)
        self._session = aiohttp.ClientSession(cookie_jar=jar, headers={"User-Agent": _AGENT})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get(self, path: str) -> Shown:
        """The page at a path, after redirects. Raises PageFailed."""
        return await self._request_page("GET", urljoin(self._server, path), None)

    async def send(self, shown: Shown, form: Form, values: Iterable[tuple[str, str]]) -> Shown:
        """The page that a form leads to. Raises PageFailed."""
        hidden = [(each.name, each.value) for each in form.fields.values() if each.kind == "hidden"]
        address = urljoin(shown.address, form.action) if form.action else shown.address
        return await self._request_page("POST", address, [*hidden, *values])

    async def _request_page(self, method: str, address: str, data: list[tuple[str, str]] | None) -> Shown:
        deadline = asyncio.get_running_loop().time() + PATIENCE
        headers = {} if data is None else {"Referer": address, "Origin": self._server}
        while True:
            try:
                form = None if data is None else aiohttp.FormData(data)
                async with self._session.request(method, address, data=form, headers=headers) as answer:
                    if answer.status not in _BUSY:
                        led_by = tuple(str(each.url) for each in answer.history)
                        return Shown(str(answer.url), answer.status, read_page(await answer.text()), led_by)
                    failure = f"{answer.status} at {urlsplit(address).path}"
            except (aiohttp.ClientError, TimeoutError) as error:
                failure = f"{type(error).__name__} at {urlsplit(address).path}"
            if asyncio.get_running_loop().time() > deadline:
                raise PageFailed(failure)
            await asyncio.sleep(_PAUSE)
