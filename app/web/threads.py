"""Work that computes for long, in a real thread, so that the event loop goes on and those who play do not wait."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from gevent import get_hub

P = ParamSpec("P")
R = TypeVar("R")


def off_loop(work: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """What `work` returns or raises. It may use nothing of the request, and no session of the one who asks."""

    def done() -> tuple[R | None, Exception | None]:
        try:
            return work(*arguments, **named), None
        except Exception as error:  # handed over rather than raised: the pool would print it as well
            return None, error

    found, error = get_hub().threadpool.apply(done)
    if error is not None:
        raise error
    return found  # type: ignore[no-any-return]  # gevent has no types
