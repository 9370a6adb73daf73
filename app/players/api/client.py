"""Chat completions over HTTP, for hundreds of matches on one event loop.

A self-play round makes a hundred thousand of these calls, and their CPU cost limits how many can be under way: the
OpenAI SDK spends ten times as long on building and checking objects as a plain aiohttp request takes. So this module
makes this call and nothing more: one session per loop and address, bytes in, JSON out, and a retry loop by the SDK's
rules with full jitter. A failure is returned as a value, not raised: aiohttp's exceptions lead to the request and its
key.
"""

import asyncio
import email.utils
import json
import math
import random
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorError,
    ClientError,
    ClientHttpProxyError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    TCPConnector,
)

from app import __version__
from app.core.config import load_settings
from app.core.errors import Invalid
from app.core.failures import Outcome
from app.games.base import JSON
from app.players.api.addresses import check_host, open_socket
from app.players.api.answers import error_in, read_body, read_usage
from app.players.api.connection_errors import broken_connection
from app.players.api.limits import RateLimits
from app.players.api.server_errors import read_error
from training.addresses import ForbiddenAddress, proxy_of

CONNECT_SECONDS = 10.0  # a server that is up accepts sooner, however long the answer takes
MOST_ANSWER = 8_000_000  # bytes, unpacked; the longest answers have some ten thousand
LONGEST_PAUSE = 120.0  # seconds; a server that wants more is not asked again by this call
_FIRST_PAUSE, _LAST_PAUSE = 0.5, 8.0  # seconds, at most, before the first and before late retries
_IDLE_SECONDS = 60.0  # for which a connection is kept for the next request
_HEADERS = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": f"Parlor/{__version__}"}


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request that can be sent repeatedly. `tokens` is the most it may cost, `timeout` applies to each attempt."""

    body: bytes
    headers: Mapping[str, str] = field(repr=False)  # contain the key
    tokens: int
    timeout: ClientTimeout
    retries: int


class Endpoint(NamedTuple):
    """A server's endpoint: its path, and the list that its answer has."""

    path: str
    listed: str
    what: str


CHAT = Endpoint("/chat/completions", "choices", "a chat completion")
EMBEDDINGS = Endpoint("/embeddings", "data", "embeddings")


class ChatResponse(NamedTuple):
    """An answer as the server sent it: an object with its endpoint's list, such as `choices`."""

    body: JSON
    retries: int
    latency: float  # seconds from the first request on, retries included


class ChatFailure(NamedTuple):
    """Why there is no response. `what` may quote the server, and with it the key.

    `field` is the request's field that the server refuses, if it names one.
    """

    what: str
    outcome: Outcome
    retries: int = 0
    latency: float = 0.0
    field: str | None = None


class _FailedAttempt(NamedTuple):
    """An attempt without a response."""

    what: str
    outcome: Outcome
    again: bool
    wait: float | None = None  # seconds, as the server demands
    for_all: bool = False  # the server means every request to the model
    used: int | None = None  # tokens
    field: str | None = None


class ChatClient:
    """The client of one address, for one event loop. It opens as many connections as the limits of its models allow."""

    def __init__(self, base_url: str, rng: random.Random | None = None, endpoint: Endpoint = CHAT) -> None:
        self._endpoint = endpoint
        self._url = f"{base_url}{endpoint.path}"
        self._rng = rng or random.Random()
        self._limits: dict[object, RateLimits] = {}
        # A generator, because the end of a loop closes those that are open: asyncio.run does so, and whoever runs a
        # loop differently calls loop.shutdown_asyncgens().
        self._life = open_sessions(base_url)
        self._session: ClientSession | None = None
        self._refused_because = _refused_address(base_url)

    def limits(self, model: object, in_flight: int, tokens_per_minute: int | None) -> RateLimits:
        """The limits that all players of a model share."""
        limits = self._limits.get(model)
        if limits is None:
            limits = self._limits[model] = RateLimits(in_flight, tokens_per_minute)
        limits.narrow(in_flight, tokens_per_minute)
        return limits

    async def complete(self, call: ChatRequest, limits: RateLimits) -> ChatResponse | ChatFailure:
        """Send a request until it is answered, refused, or out of retries."""
        if self._refused_because is not None:
            return ChatFailure(self._refused_because, "denied")
        session = self._session
        if session is None:
            session = self._session = await anext(self._life)
        began, retries = None, 0
        while True:
            await limits.enter(call.tokens)
            used = None
            try:
                began = began or time.perf_counter()
                found = await self._attempt(session, call)
                if not isinstance(found, _FailedAttempt):
                    used = _total_tokens_used(found)
                    return ChatResponse(found, retries, time.perf_counter() - began)
                used = found.used
                if found.for_all and found.wait is not None:
                    limits.hold(min(found.wait, LONGEST_PAUSE))  # before the next one takes its place
            finally:
                limits.leave(call.tokens, used)
            if not found.again or retries >= call.retries:
                return ChatFailure(found.what, found.outcome, retries, time.perf_counter() - began, found.field)
            if not found.for_all:  # otherwise the limits make it wait, with all others
                await asyncio.sleep(pause(retries, self._rng) if found.wait is None else found.wait)
            retries += 1

    async def _attempt(self, session: ClientSession, call: ChatRequest) -> JSON | _FailedAttempt:
        try:
            async with session.post(
                self._url, data=call.body, headers=call.headers, timeout=call.timeout, allow_redirects=False
            ) as response:
                raw = await read_bytes(response)
                status, headers = response.status, response.headers
        except ConnectionTimeoutError:
            return _FailedAttempt(
                f"expected a connection within {call.timeout.sock_connect:g} s, got none", "busy", True
            )
        except TimeoutError:
            return _FailedAttempt(f"expected an answer within {call.timeout.total:g} s, got none", "busy", True)
        except ClientConnectorCertificateError as error:
            return _FailedAttempt(broken_connection(error), "denied", False, used=0)
        except ClientConnectorError as error:
            if isinstance(error.os_error, ForbiddenAddress):
                return _FailedAttempt(str(error.os_error), "denied", False, used=0)
            return _FailedAttempt(broken_connection(error), "busy", True)
        except ClientHttpProxyError as error:
            refused = read_error(error.status, None)
            what = f"expected a way through the proxy, got HTTP {error.status}"
            return _FailedAttempt(what, refused.outcome, refused.again, used=0)
        except (ClientError, OSError) as error:
            return _FailedAttempt(broken_connection(error), "busy", True)
        if raw is None:
            what = f"expected an answer of at most {MOST_ANSWER // 1_000_000} MB, got a longer one"
            return _FailedAttempt(what, "denied", False)
        return (
            _parse_response_body(raw, self._endpoint)
            if 200 <= status < 300
            else _failure_of_status(raw, status, headers)
        )


def pause(retries: int, rng: random.Random) -> float:
    """Seconds before the next attempt: random, from zero to a bound that doubles with each attempt (full jitter).

    Source: M. Brooker, “Exponential Backoff And Jitter”, AWS Architecture Blog, 2015.
    """
    return rng.uniform(0, min(_LAST_PAUSE, _FIRST_PAUSE * 2.0 ** min(retries, 10)))


def ordered_pause(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that a server asks to wait, at the time `now`; None if it does not, or in no known format."""
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            seconds = float(text) / divisor
        except ValueError:
            if name == "retry-after" and (date := email.utils.parsedate_tz(text)):
                try:
                    seconds = email.utils.mktime_tz(date) - now
                except (ValueError, OverflowError):
                    continue
            else:
                continue
        if math.isfinite(seconds) and seconds > 0:
            return seconds
    return None


# ---- Sessions ------------------------------------------------------------------

# Open connections belong to an event loop.
_clients: dict[tuple[asyncio.AbstractEventLoop, str, Endpoint], ChatClient] = {}


def client(base_url: str, endpoint: Endpoint = CHAT) -> ChatClient:
    """The client of the running loop for an address."""
    loop = asyncio.get_running_loop()
    found = _clients.get((loop, base_url, endpoint))
    if found is None:
        for known in list(_clients):
            if known[0].is_closed():
                _clients.pop(known, None)
        found = _clients[loop, base_url, endpoint] = ChatClient(base_url, endpoint=endpoint)
    return found


async def open_sessions(base_url: str) -> AsyncGenerator[ClientSession]:
    """A session for an address that refuses forbidden addresses; it is closed with the generator."""
    proxy = proxy_of(base_url)
    # A proxy is the operator's own, and resolves names itself.
    checked = None if proxy else open_socket
    connector = TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS, ttl_dns_cache=300, socket_factory=checked)
    async with ClientSession(
        connector=connector, headers=_HEADERS, cookie_jar=DummyCookieJar(), proxy=proxy
    ) as session:
        yield session


def _refused_address(base_url: str) -> str | None:
    """Why this process's settings forbid requests to an address; None if they allow them."""
    try:
        check_host(base_url, load_settings().api_hosts)
    except Invalid as error:
        return error.message
    return None


# ---- What an attempt brought --------------------------------------------------------


async def read_bytes(response: ClientResponse) -> bytes | None:
    """The response's body, unpacked; None if it is too long, in which case the rest is left unread."""
    pieces, length = [], 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        length += len(piece)
        if length > MOST_ANSWER:
            return None
    return b"".join(pieces)


def _parse_response_body(raw: bytes, endpoint: Endpoint) -> JSON | _FailedAttempt:
    body = read_body(raw)
    if body is None:
        got = raw[:120].decode(errors="replace")
        return _FailedAttempt(f"expected {endpoint.what}, got {got!r}", "busy", True)
    listed = body.get(endpoint.listed)
    if (error := error_in(body)) is None and isinstance(listed, list):
        what = f"expected {endpoint.what} with {endpoint.listed}, got none of them"
        return body if listed else _FailedAttempt(what, "no_answer", True, used=_total_tokens_used(body))
    found = read_error(200, body if error is None else error)
    what = f"expected {endpoint.what} with {endpoint.listed}, got {found.message}"
    return _FailedAttempt(what, found.outcome, found.again, field=found.field)


def _failure_of_status(raw: bytes, status: int, headers: Mapping[str, str]) -> _FailedAttempt:
    if 300 <= status < 400:
        try:
            host = urlsplit(headers.get("location", "")).hostname
        except ValueError:
            host = None
        elsewhere = f" that leads to {host}" if host else ""
        what = f"expected an answer, got a redirect (HTTP {status}){elsewhere}, and none is followed"
        return _FailedAttempt(f"{what}; add the model with the address where it is", "denied", False, used=0)
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        body = raw.decode(errors="replace")
    found = read_error(status, body)
    again = found.again
    wait = ordered_pause(headers, time.time())
    if wait is not None and wait > LONGEST_PAUSE:
        again = False
    elif (said := headers.get("x-should-retry")) in ("true", "false"):
        again = said == "true"
    for_all = status in (429, 503) and wait is not None and found.outcome == "busy"
    what = f"expected an answer, got HTTP {status}: {found.message}"
    return _FailedAttempt(what, found.outcome, again, wait, for_all, used=0, field=found.field)


def _total_tokens_used(body: JSON) -> int | None:
    usage = read_usage(body)
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    return usage.prompt_tokens + usage.completion_tokens
