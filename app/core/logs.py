"""Logging of every process: one line per event, including warnings of libraries.

A traceback is printed without the values of its variables, because they may be keys or people's text.
"""

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import structlog
from structlog.typing import EventDict, WrappedLogger

_quiet: list[object] = []  # one per request for silence, for all threads and loggers already in use


def set_up() -> None:
    """Configure structlog and the standard library's logging."""
    print_anything()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    structlog.configure(
        processors=[
            _unless_quiet,
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=lambda *_: _Output(),
        cache_logger_on_first_use=True,
    )


def print_anything() -> None:
    """Escape characters that the terminal's encoding lacks, so that printing them does not fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Output:
    """Prints to stdout. A line that cannot be written is dropped: a full disk must not end the process that logs."""

    def msg(self, message: str) -> None:
        with suppress(OSError):
            print(message, flush=True)

    log = debug = info = warn = warning = err = error = critical = fatal = failure = exception = msg


@contextmanager
def quiet() -> Iterator[None]:
    """Log nothing during the block: the caller prints its own messages, and log lines would get between them."""
    mark = object()
    _quiet.append(mark)
    try:
        yield
    finally:
        _quiet.remove(mark)


def _unless_quiet(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if _quiet:
        raise structlog.DropEvent
    return event
