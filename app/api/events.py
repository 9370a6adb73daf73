"""A job followed by server-sent events: its figures whenever they change, until it is over or interrupted.

Each event holds all figures. A program that reconnects names the last event it received, and gets the changes since.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import structlog
from flask import Response, request
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from app.accounts import tokens
from app.accounts.tokens import READ
from app.api.jobs import every
from app.api.operations import KIND, holder, operation, secret
from app.core.errors import AppError
from app.core.extensions import db, is_away, reading, reason_of
from app.core.validation import Schema
from app.games.base import JSON
from app.jobs import states
from app.jobs.kind import JobKind
from app.web.watched import watched_kinds

EVERY = 1.0  # seconds between checks
HEARTBEAT = 15.0  # seconds without an event after which a comment shows that the connection is alive
LONGEST = 900.0  # seconds after which a stream ends and programs reconnect
RETRY = 2000  # milliseconds after which they reconnect
ALONE = 5.0  # seconds without a worker until a job counts as interrupted: a worker may be between two parts of it
MOST = 20  # streams open at once with one token
LAST = "Last-Event-ID"
_EVENT_STREAM = "text/event-stream"
EVENT: Schema = {  # of each event of a stream
    "type": "object",
    "required": ["id", "event", "data"],
    "properties": {
        "id": {"type": "string"},
        "event": {"type": "string", "enum": ["status", "progress"]},
        "data": {"type": "string", "description": "The figures as a JSON object; all have status, done and of."},
    },
}
_FOR_PAGES = "at"  # the figure that tells pages that there is more to show
_open: Counter[int] = Counter()
log = structlog.get_logger()


class TooManyStreams(AppError):
    """A token has too many streams open at once."""

    code = "too_many"
    status = 429


class _Look(NamedTuple):
    """The figures of a job, and their hash."""

    figures: JSON
    digest: str

    @property
    def over(self) -> bool:
        return self.status in (states.DONE, states.FAILED, states.CANCELLED)

    @property
    def interrupted(self) -> bool:
        return self.status == states.INTERRUPTED

    @property
    def status(self) -> str:
        return str(self.figures["status"])

    def event(self, name: str) -> str:
        data = json.dumps(self.figures, ensure_ascii=False, separators=(",", ":"))
        return f"id: {self.digest}\nevent: {name}\ndata: {data}\n\n"


@operation(
    "GET",
    f"/{KIND}/<int:number>/events",
    scope=READ,
    kinds=every,
    headers=(LAST,),
    empty="It is over or interrupted, and nothing is new.",
    answer=EVENT,
    answer_type=_EVENT_STREAM,
)
def follow_job(kind: JobKind[Any], number: int) -> Response:
    """Follow a job by server-sent events until it is over or interrupted.

    `status` is sent at once and whenever the status changes, `progress` when another figure changes; both have all
    figures. A line that begins with a colon is sent when nothing has changed for a while. The last event has the status
    `done`, `failed`, `cancelled`, or `interrupted` when nothing has worked on the job for five seconds and no worker
    will: it continues once it is resumed. With the id of the last event as Last-Event-ID, what is already known is left
    out; 204 means that the job is over or interrupted and nothing is new.
    """
    look = _looking(db.engine, kind, number)
    first, last = look(), request.headers.get(LAST)
    if (first.over or first.interrupted) and first.digest == last:
        return Response(status=204)
    token = holder().token_id
    if _open[token] >= MOST:
        raise TooManyStreams(f"expected at most {MOST} streams at once with a token, got more; end some of them")
    stream = _server_sent_events(look, first, last, _is_valid(db.engine, secret()))
    response = Response(_counted(stream, token), mimetype=_EVENT_STREAM)
    response.headers["X-Accel-Buffering"] = "no"  # for nginx, which would otherwise buffer events
    return response


def _looking(engine: Engine, kind: JobKind[Any], number: int) -> Callable[[], _Look]:
    """A function that reads the figures of a job, as on open pages."""
    [watched] = [each for each in watched_kinds() if each.kind is kind]

    def look() -> _Look:
        with reading(engine) as session:
            row = kind.get(session, number)
            done, of = kind.progress_of(session, [row])[number]
            found = watched.figures(session, [row], time.monotonic())[number]
            own = {name: value for name, value in found.items() if name != _FOR_PAGES}
            figures = {"status": kind.state_of(session, row), "done": done, "of": of, **own}
        digest = hashlib.sha256(json.dumps(figures, sort_keys=True).encode()).hexdigest()[:16]
        return _Look(figures, digest)

    return look


def _is_valid(engine: Engine, token: str) -> Callable[[], bool]:
    """A function that says whether a token is still valid."""

    def valid() -> bool:
        try:
            with reading(engine) as session:
                tokens.holder_of(session, token, datetime.now(UTC))
        except tokens.BadToken:
            return False
        return True

    return valid


def _counted(stream: Iterator[str], token: int) -> Iterator[str]:
    """The stream, counted while it is open."""
    _open[token] += 1
    try:
        yield from stream
    finally:
        _open[token] -= 1


def _server_sent_events(
    look: Callable[[], _Look], now: _Look, last: str | None, valid: Callable[[], bool]
) -> Iterator[str]:
    """The events from the first look on; by then the request has ended."""
    began = said = time.monotonic()
    told, status = last, ""  # the last event, and the last status seen
    left_at: float | None = None  # when the job was first seen interrupted
    yield f"retry: {RETRY}\n\n"
    while True:
        at = time.monotonic()
        left_at = (left_at or at) if now.interrupted else None
        certain = left_at is None or at - left_at >= ALONE
        if certain and now.digest != told:
            yield now.event("progress" if now.status == status else "status")
            told, said = now.digest, at
        elif at - said >= HEARTBEAT:
            yield ": nothing new\n\n"
            said = at
        if now.over or (now.interrupted and certain) or at - began >= LONGEST:
            return
        status = now.status if certain else status
        time.sleep(EVERY)
        try:
            if not valid():
                return
            now = look()
        except SQLAlchemyError as error:
            if not is_away(error):
                raise
            log.warning("the database is away", error=reason_of(error))
