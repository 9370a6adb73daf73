"""Long computations in a real thread, so that the event loop keeps running and players do not wait."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar

from gevent import get_hub
from sqlalchemy import URL, Engine
from sqlalchemy.pool import NullPool

from app.core.extensions import open_engine, reading

P = ParamSpec("P")
R = TypeVar("R")


def off_loop(work: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """What `work` returns or raises. It may use nothing of the request, and no session of its caller."""

    def done() -> tuple[R | None, Exception | None]:
        try:
            return work(*arguments, **named), None
        except Exception as error:  # returned rather than raised: the pool would also print it
            return None, error

    found, error = get_hub().threadpool.apply(done)
    if error is not None:
        raise error
    return found  # type: ignore[no-any-return]  # gevent has no types


def in_worker_thread(engine: Engine, work: Any, *arguments: Any) -> Any:
    """What `work(session, *arguments)` returns, done in a real thread on a connection of its own, while others play."""

    def read(own: Engine) -> Any:
        with reading(own) as session:
            return work(session, *arguments)

    return in_thread(engine, read)


def in_thread(engine: Engine, work: Callable[[Engine], Any]) -> Any:
    """What `work` returns, done in a real thread with another engine for the same database."""

    return off_loop(lambda: work(_engine_of_threads(engine.url)))


@lru_cache(maxsize=8)
def _engine_of_threads(url: URL) -> Engine:
    """An engine that keeps no connections, but keeps its compiled statements."""
    return open_engine(url, poolclass=NullPool)
