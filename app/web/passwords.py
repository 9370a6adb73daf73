"""Sign-in attempts are counted before anything is hashed, and hashing has a thread of its own.

Each address has a limited number of attempts, and fewer for one name. Nobody can lock a name for others: after many
wrong attempts for it, wherever they came from, each further attempt takes longer.
"""

import contextlib
from collections.abc import Callable
from typing import TypeVar

from gevent import get_hub, sleep
from gevent.hub import Hub
from gevent.threadpool import ThreadPool
from limits import parse
from redis.exceptions import RedisError

from app.core.errors import Phrase, Unavailable
from app.web.extensions import limiter
from app.web.limits import give_back_attempt

BY_ADDRESS, BY_NAME = "30 per 5 minutes", "10 per 5 minutes"  # BY_NAME: for one address and one name
SLOW_SECONDS = 2.0  # added to an attempt
_SLOW_AFTER = parse("10 per 5 minutes")
_FROM_ANYWHERE = "wrong passwords for a name"
_MOST_WAITING = 32

T = TypeVar("T")
_threads: dict[Hub, ThreadPool] = {}
_waiting: list[object] = []


def hashing(work: Callable[..., T], *arguments: object) -> T:
    """What `work(*arguments)` returns, which hashes a password and raises nothing.

    It runs in a real thread, one at a time: it takes a whole core for a tenth of a second. Raises Unavailable if too
    many are already waiting for it.
    """
    if len(_waiting) >= _MOST_WAITING:
        raise Unavailable(Phrase("Too many people are signing in just now. Please try again in a moment."))
    hub, mark = get_hub(), object()
    if hub not in _threads:
        _threads[hub] = ThreadPool(1)
    _waiting.append(mark)
    try:
        found: T = _threads[hub].apply(work, arguments)
        return found
    finally:
        _waiting.remove(mark)


def attempt(name: str) -> None:
    """Count an attempt at the password of a name. Sleeps for a while if many were wrong lately."""
    with contextlib.suppress(RedisError):  # without the broker, only this process's limits count
        if not limiter.limiter.hit(_SLOW_AFTER, _FROM_ANYWHERE, name):
            sleep(SLOW_SECONDS)


def was_right(name: str | None = None) -> None:
    """Undo the counting of this request's attempt, because it was no wrong guess."""
    give_back_attempt()
    with contextlib.suppress(RedisError):
        if name is not None:
            limiter.limiter.hit(_SLOW_AFTER, _FROM_ANYWHERE, name, cost=-1)
