"""Requests that change something: each is logged with its author, and done once per Idempotency-Key.

The row of a request comes first in its transaction, so that of two with the same key the second waits for the first,
and then gets its answer.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from flask import Response, request
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.api.operations import holder, json_answer
from app.core.errors import FieldError, Invalid, Verbatim
from app.core.extensions import reading
from app.games.base import JSON
from app.models import ApiRequest
from app.web.form_writes import write

HEADER = "Idempotency-Key"
KEPT = timedelta(days=1)  # how long the answer to a key is kept
_LONGEST_KEY, _LONGEST_PATH = 200, 200


class KeyReused(FieldError):
    """An Idempotency-Key was sent with a different request before."""

    code = "idempotency_key_reused"
    status = 422


class Change(NamedTuple):
    """A change: the answer, its status, and its name in the audit log, such as "round 3"."""

    answer: JSON
    subject: str
    status: int = 200


class ChangeAnswer(NamedTuple):
    """The answer to a request that changes something, and whether the change was made just now."""

    answer: JSON
    status: int
    new: bool

    def response(self) -> Response:
        in_order = {name: self.answer[name] for name in sorted(self.answer)}  # PostgreSQL does not preserve order
        return json_answer(in_order, self.status)


class ChangeRequest:
    """This request, as far as it is remembered. Raises Invalid for an invalid key."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._holder = holder()
        self._method, self._path = request.method, request.path
        self._key = request.headers.get(HEADER)
        if self._key is not None and not (1 <= len(self._key) <= _LONGEST_KEY and self._key.isprintable()):
            raise Invalid(HEADER, expected=f"1 to {_LONGEST_KEY} printable characters", got=self._key)
        asked = json.dumps([self._method, self._path, body], sort_keys=True)
        self._digest = hashlib.sha256(asked.encode()).hexdigest()

    def made_before(self) -> ChangeAnswer | None:
        """The earlier answer to this request; None if it is new. Raises KeyReused."""
        if self._key is None:
            return None
        with reading() as session:
            return self._stored_answer(session, datetime.now(UTC))

    def make(self, work: Callable[[Session], Change]) -> ChangeAnswer:
        """Do what was requested in a transaction of its own, unless it was done before.

        `work` has no access to the request. Raises what it raises, and KeyReused.
        """
        return write(lambda session: self._make_and_log_once(session, work))

    def _make_and_log_once(self, session: Session, work: Callable[[Session], Change]) -> ChangeAnswer:
        now, keyed = datetime.now(UTC), self._key is not None
        if keyed:
            old = update(ApiRequest).where(ApiRequest.key.is_not(None), ApiRequest.at <= now - KEPT)
            session.execute(old.values(key=None, digest=None, status=None, answer=None))
            if (known := self._stored_answer(session, now)) is not None:
                return known
        row = ApiRequest(
            token_id=self._holder.token_id,
            user_name=self._holder.user,
            token_name=self._holder.token,
            at=now,
            method=self._method,
            path=self._path[:_LONGEST_PATH],
            subject="",
            key=self._key,
            digest=self._digest if keyed else None,
        )
        session.add(row)
        session.flush()
        change = work(session)
        row.subject = change.subject
        if keyed:
            row.status, row.answer = change.status, change.answer
        return ChangeAnswer(change.answer, change.status, new=True)

    def _stored_answer(self, session: Session, now: datetime) -> ChangeAnswer | None:
        """The stored answer for the key of this request. Raises KeyReused if that was a different request."""
        same = select(ApiRequest).where(ApiRequest.token_id == self._holder.token_id, ApiRequest.key == self._key)
        found = session.scalar(same.where(ApiRequest.at > now - KEPT))
        if found is None:
            return None
        if found.digest != self._digest:
            remedy = "send another key with another request"
            expected, got = "what was sent with this key before", Verbatim("another address or body")
            raise KeyReused(HEADER, expected=expected, got=got, remedy=remedy)
        return ChangeAnswer(found.answer or {}, found.status or 200, new=False)
