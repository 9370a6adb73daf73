"""Requests that change something: each is noted with who made it, and done once where it has an Idempotency-Key.

The row of a request comes first in its transaction, so that of two with one key the second waits for the first, and
then has its answer.
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
KEPT = timedelta(days=1)  # how long the answer to a key is known
_LONGEST_KEY, _LONGEST_PATH = 200, 200


class KeyReused(FieldError):
    """An Idempotency-Key came with something else than before."""

    code = "idempotency_key_reused"
    status = 422


class Change(NamedTuple):
    """What was changed: the answer, with its status, and what the audit log calls it, such as "round 3"."""

    answer: JSON
    subject: str
    status: int = 200


class ChangeAnswer(NamedTuple):
    """The answer to a request that changes something, and whether that was done now and not before."""

    answer: JSON
    status: int
    new: bool

    def response(self) -> Response:
        in_order = {name: self.answer[name] for name in sorted(self.answer)}  # which PostgreSQL does not keep
        return json_answer(in_order, self.status)


class ChangeRequest:
    """This request, as far as it is remembered. Raises Invalid for a key that cannot be."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._holder = holder()
        self._method, self._path = request.method, request.path
        self._key = request.headers.get(HEADER)
        if self._key is not None and not (1 <= len(self._key) <= _LONGEST_KEY and self._key.isprintable()):
            raise Invalid(HEADER, expected=f"1 to {_LONGEST_KEY} printable characters", got=self._key)
        asked = json.dumps([self._method, self._path, body], sort_keys=True)
        self._digest = hashlib.sha256(asked.encode()).hexdigest()

    def made_before(self) -> ChangeAnswer | None:
        """The answer that this request had before; None if it is new. Raises KeyReused."""
        if self._key is None:
            return None
        with reading() as session:
            return self._known(session, datetime.now(UTC))

    def make(self, work: Callable[[Session], Change]) -> ChangeAnswer:
        """Do what was asked for in a transaction of its own, unless that was done before.

        `work` has no request. Raises what it raises, and KeyReused.
        """
        return write(lambda session: self._once(session, work))

    def _once(self, session: Session, work: Callable[[Session], Change]) -> ChangeAnswer:
        now, keyed = datetime.now(UTC), self._key is not None
        if keyed:
            old = update(ApiRequest).where(ApiRequest.key.is_not(None), ApiRequest.at <= now - KEPT)
            session.execute(old.values(key=None, digest=None, status=None, answer=None))
            if (known := self._known(session, now)) is not None:
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

    def _known(self, session: Session, now: datetime) -> ChangeAnswer | None:
        """What was remembered with the key of this request. Raises KeyReused where that was something else."""
        same = select(ApiRequest).where(ApiRequest.token_id == self._holder.token_id, ApiRequest.key == self._key)
        found = session.scalar(same.where(ApiRequest.at > now - KEPT))
        if found is None:
            return None
        if found.digest != self._digest:
            remedy = "send another key with another request"
            expected, got = "what was sent with this key before", Verbatim("another address or body")
            raise KeyReused(HEADER, expected=expected, got=got, remedy=remedy)
        return ChangeAnswer(found.answer or {}, found.status or 200, new=False)
