"""Requests to one Parlor, repeated where that is safe; failures are raised as the client's errors."""

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx

from parlor_client.errors import NotReachable, Refused, ServerTooOld, one_line
from parlor_client.version import OLDEST_SERVER, __version__

API = "/api/v1"
_DESCRIPTION = f"{API}/openapi.json"
_BUSY = (408, 429, 502, 503, 504)  # statuses of a server that is busy, away or restarting
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0  # seconds between two attempts, doubled each time
# A stream of events sends something every 15 seconds; any other answer begins sooner.
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)


class ServerDescription(NamedTuple):
    """A server's description: its version, and the list column that holds a job's number, by kind."""

    version: str
    job_columns: Mapping[str, str]


class Connection:
    """A Parlor at an address, accessed with a token.

    patience: seconds for which a request is repeated while the server is busy or away. Raises NotReachable for an
    invalid address, and Refused without a token.
    """

    def __init__(self, url: str, token: str, patience: float) -> None:
        self.url = _checked_url(url)
        if not (token.isascii() and token.isprintable() and token.strip()):
            raise Refused(401, {
                "code": "not_signed_in",
                "message": f"token: expected one that begins with parlor_, got {'none' if not token else 'other text'}",
                "field": "token",
                "remedy": "make one on the account page or with flask token create, and give it or set PARLOR_TOKEN",
            })  # fmt: skip
        self.patience = patience
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {token.strip()}", "User-Agent": f"parlor-client/{__version__}"},
            timeout=_TIMEOUT,
        )
        self._description: ServerDescription | None = None

    def close(self) -> None:
        """Close the connections to the server."""
        self._client.close()

    def description(self) -> ServerDescription:
        """The server's description, requested once, before anything else. Raises NotReachable, ServerTooOld."""
        if self._description is None:
            response = self._send_until_answered("GET", _DESCRIPTION, patience=0.0)
            self._description = _checked_description(self.url, response)
        return self._description

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """The JSON at an address below `/api/v1`. Raises Refused, NotReachable."""
        self.description()
        given = {name: value for name, value in (params or {}).items() if value is not None}
        return self._json_of_response(self._send_until_answered("GET", API + path, params=given))

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Perform an action once, however often the request is sent. Raises Refused, NotReachable."""
        self.description()
        headers = {"Idempotency-Key": secrets.token_urlsafe(18)}
        return self._json_of_response(
            self._send_until_answered("POST", API + path, json=dict(body or {}), headers=headers)
        )

    @contextmanager
    def stream(
        self, path: str, params: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[httpx.Response]:
        """A response that is read as it arrives, requested once. Raises ConnectionLost, Refused, NotReachable."""
        self.description()
        given = {name: value for name, value in (params or {}).items() if value is not None}
        try:
            with self._client.stream("GET", self.url + API + path, params=given, headers=headers) as response:
                if response.status_code >= 400:
                    response.read()
                if response.status_code in _BUSY:
                    raise ConnectionLost(self._unexpected_answer_message(response), _retry_after(response))
                if response.status_code >= 300:
                    raise self._error(response)
                yield response
        except httpx.HTTPError as error:
            raise ConnectionLost(f"{self.url}: {_of_transport(error)}") from None

    def _send_until_answered(
        self, method: str, path: str, *, patience: float | None = None, **request: Any
    ) -> httpx.Response:
        """Send a request until it is answered. Raises NotReachable or Refused when patience runs out."""
        deadline = time.monotonic() + (self.patience if patience is None else patience)
        pause = _FIRST_PAUSE
        while True:
            wait, failure = pause, None
            try:
                response = self._client.request(method, self.url + path, **request)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                failure = NotReachable(f"{self.url}: expected Parlor, got {_of_transport(error)}; is it running?")
            else:
                if response.status_code not in _BUSY:
                    return response
                wait = max(pause, _retry_after(response))
            if time.monotonic() + wait > deadline:
                raise failure or self._error(response) from None
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _json_of_response(self, response: httpx.Response) -> Any:
        if response.status_code >= 300:
            raise self._error(response)
        try:
            return response.json()
        except ValueError:
            raise NotReachable(self._unexpected_answer_message(response)) from None

    def _error(self, response: httpx.Response) -> Refused | NotReachable:
        """The error for a response that refuses a request."""
        try:
            error = response.json()["error"]
            if isinstance(error, dict):
                return Refused(response.status_code, error)
        except (ValueError, KeyError, TypeError):
            pass
        return NotReachable(self._unexpected_answer_message(response))

    def _unexpected_answer_message(self, response: httpx.Response) -> str:
        return f"{self.url}: expected an answer of Parlor's API, got {_of_answer(response)}"


class ConnectionLost(Exception):
    """A streamed response broke off, or could not begin yet; never leaves the client.

    retry_after: seconds.
    """

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def wait_to_ask_again(error: ConnectionLost, deadline: float, what: str) -> None:
    """Wait until a broken-off response may be requested again.

    Raises NotReachable, saying `what`, if that is too late.
    """
    pause = max(1.0, error.retry_after)
    if time.monotonic() + pause > deadline:
        raise NotReachable(f"{error}; {what}") from None
    time.sleep(pause)


def lines_of(response: httpx.Response) -> Iterator[str]:
    """The lines of a response, each with its newline: httpx would also split them at other characters."""
    rest = b""
    for piece in response.iter_bytes():
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode("utf-8") + "\n"
    if rest:
        yield rest.decode("utf-8")


def _checked_url(url: str) -> str:
    if not url.startswith(("http://", "https://")) or not url.partition("://")[2].strip("/"):
        got = url or "none"
        remedy = f"; write http://{url}" if url and "://" not in url else ""
        raise NotReachable(f"url: expected an address such as http://127.0.0.1:8000, got {one_line(got)}{remedy}")
    return url.rstrip("/")


def _checked_description(url: str, response: httpx.Response) -> ServerDescription:
    try:
        found = response.json()
        version = found["info"]["version"] if found["info"]["title"] == "Parlor" else None
    except (ValueError, KeyError, TypeError):
        version = None
    if not isinstance(version, str):
        remedy = "give the address of Parlor itself, without a page behind it"
        raise NotReachable(f"{url}: expected Parlor's API at {_DESCRIPTION}, got {_of_answer(response)}; {remedy}")
    if _as_numbers(version) < _as_numbers(OLDEST_SERVER):
        remedy = f"upgrade the server, or install the client of Parlor {version}"
        raise ServerTooOld(
            f"{url}: expected Parlor {OLDEST_SERVER} or later for client {__version__}, got {version}; {remedy}"
        )
    return ServerDescription(version, dict(_job_columns(found["paths"])))


def _job_columns(paths: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The kinds of jobs, which are what can be followed, each with the column that has a job's number."""
    for path in paths:
        if path.endswith("/{number}/events"):
            kind = path.split("/")[1]
            one = paths[f"/{kind}/{{number}}"]["get"]["responses"]["200"]
            yield kind, one["content"]["application/json"]["schema"]["required"][0]


def _as_numbers(version: str) -> tuple[int, ...]:
    """A version in comparable form: for 0.3.0rc1, the digits before the letters."""
    parts = (part[: len(part) - len(part.lstrip("0123456789"))] for part in version.split("."))
    return tuple(int(part or 0) for part in parts)


def _of_transport(error: Exception) -> str:
    """A description of a failed connection."""
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    return one_line(error) or type(error).__name__


def _of_answer(response: httpx.Response) -> str:
    """A description of a response that is not one of Parlor's."""
    if response.is_redirect:
        return f"{response.status_code}, a redirect to {one_line(response.headers.get('Location', 'nowhere'))}"
    kind = response.headers.get("Content-Type", "").partition(";")[0] or "no type"
    try:
        if isinstance(found := response.json(), dict) and isinstance(error := found.get("error"), dict):
            return f"{response.status_code}: {one_line(error.get('message'))}"
    except (ValueError, httpx.ResponseNotRead):
        pass
    return f"{response.status_code} with {kind}"


def _retry_after(response: httpx.Response) -> float:
    """The seconds that a response asks to wait; 0 if it does not say."""
    given = response.headers.get("Retry-After", "")
    return float(given) if given.isdigit() else 0.0
