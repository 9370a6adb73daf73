"""The public keys by which a recruiter signs links: fetched when needed, cached, and refreshed.

One fetch runs at a time, in a real thread: players do not wait for it, nor does a second visitor whose key is known.
"""

import threading
import time
import urllib.request
from collections.abc import Mapping
from email.message import Message
from http.client import HTTPException
from typing import IO

import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from gevent import Timeout

from app import __version__
from app.studies.access_token import NotSigned, read_keys
from app.web.threads import off_loop

log = structlog.get_logger()
FRESH = 3600.0  # seconds after which keys are fetched again
LAST = 86400.0  # seconds for which keys are valid while none can be fetched
AGAIN = 60.0  # seconds between two fetches for unknown keys
SOON = 10.0  # seconds after a failed fetch
PATIENCE = 5.0  # seconds for the recruiter to answer
_MOST_BYTES = 256_000


class SigningKeys:
    """The keys at an address."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._keys: Mapping[str, RSAPublicKey] = {}
        self._got = self._next = self._next_unknown = -LAST
        self._failed = False
        self._fetching = threading.Lock()

    def find(self, name: str) -> RSAPublicKey:
        """The key with that id. Raises NotSigned: `invalid` for a missing one, `unknown` if the keys could not be
        fetched.
        """
        now = time.monotonic()
        if now - self._got < FRESH and name in self._keys:
            return self._keys[name]
        kept = self._cached_key(name, now)
        if self._fetching.acquire(blocking=kept is None):
            try:
                self._refresh(name)
            finally:
                self._fetching.release()
        found = self._cached_key(name, time.monotonic())
        if found is None:
            raise NotSigned("unknown" if self._failed else "invalid")
        return found

    def _cached_key(self, name: str, now: float) -> RSAPublicKey | None:
        return self._keys.get(name) if now - self._got < LAST else None

    def _refresh(self, name: str) -> None:
        """Fetch the keys if they are old or lack this one, but not immediately after another attempt."""
        now = time.monotonic()
        is_old, is_known = now - self._got >= FRESH, name in self._keys
        if now < self._next or not (is_old or (not is_known and now >= self._next_unknown)):
            return
        if not is_old:
            self._next_unknown = now + AGAIN
        try:
            with Timeout(2 * PATIENCE, TimeoutError(f"no answer in {2 * PATIENCE:g} s")):
                self._keys = off_loop(lambda: read_keys(_fetch(self._url)))
            self._got, self._failed = time.monotonic(), False
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            self._failed, self._next = True, time.monotonic() + SOON
            log.warning("keys of the recruiter could not be had", url=self._url, error=str(error)[:200])


def signing_keys(url: str) -> SigningKeys:
    """The keys at an address, cached in this process."""
    return _at.setdefault(url, SigningKeys(url))


_at: dict[str, SigningKeys] = {}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, _req: urllib.request.Request, _fp: IO[bytes], _code: int, _msg: str, _headers: Message, _newurl: str
    ) -> None:
        """Accept keys only from the address of the setting."""


_opener = urllib.request.build_opener(_NoRedirect)


def _fetch(url: str) -> bytes:
    """What is at an address. Raises OSError, HTTPException and ValueError."""
    headers = {"Accept": "application/json", "User-Agent": f"Parlor/{__version__}"}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the setting takes no other scheme than http(s)
    until = time.monotonic() + PATIENCE
    content = b""
    with _opener.open(request, timeout=PATIENCE) as response:
        while part := response.read1(65536):
            content += part
            if len(content) > _MOST_BYTES:
                raise ValueError(f"expected a key set of at most {_MOST_BYTES} bytes, got more")
            if time.monotonic() > until:
                raise TimeoutError(f"expected all of it in {PATIENCE:g} s")
    return content
