"""A browser without a window or scripts, for tests over real HTTP: cookies, forms, and where a redirect leads."""

import http.cookiejar
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from typing import IO, Any, NamedTuple

from flask import Flask
from werkzeug.serving import make_server


class HttpAnswer(NamedTuple):
    """What came back. `location` is where a redirect leads, which is not followed."""

    status_code: int
    text: str
    location: str | None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


class HttpAgent:
    """One browser with its cookies. An address without a host is of the server; it is called as a test client is."""

    def __init__(self, server: str) -> None:
        self._server = server
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(jar, _NoRedirect)

    def get(self, address: str, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """The page at an address."""
        return self._open(address, None, headers)

    def post(
        self, address: str, data: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        """What a form leads to."""
        return self._open(address, urllib.parse.urlencode(data or {}, doseq=True).encode(), headers)

    def _open(self, address: str, data: bytes | None, headers: Mapping[str, str] | None) -> HttpAnswer:
        url = urllib.parse.urljoin(self._server, address)
        request = urllib.request.Request(url, data, dict(headers or {}))  # noqa: S310 - an address of the test's own
        try:
            with self._opener.open(request) as response:
                return HttpAnswer(response.status, response.read().decode(), None)
        except urllib.error.HTTPError as error:
            with error:
                return HttpAnswer(error.code, error.read().decode(), error.headers.get("Location"))


@contextmanager
def served(app: Flask) -> Iterator[str]:
    """Serve an app over HTTP while the block lasts; its address."""
    server = make_server("127.0.0.1", 0, app)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
