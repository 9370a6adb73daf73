"""Test calls for tests: the latest request, and results that no model has given."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from app.core.extensions import reading, writing
from app.model_calls import request_lifecycle
from app.model_calls.test_call import request_test
from app.models import GenerationRow, LanguageModel, ModelRequest


def latest(engine: Engine) -> int:
    """The number of the request that was made last."""
    with reading(engine) as session:
        number = session.scalar(select(func.max(ModelRequest.id)))
    assert number is not None
    return number


def ask_for_test(engine: Engine, model_id: int) -> int:
    """A test call that waits for a worker."""
    with writing(engine) as session:
        return request_test(session, session.get_one(LanguageModel, model_id)).id


def keep_result(engine: Engine, model_id: int, ago: timedelta = timedelta(), **result: Any) -> None:
    """A test call that came to `result` some time ago."""
    number = ask_for_test(engine, model_id)
    with writing(engine) as session:
        request_lifecycle.take(session, number, "test", 60)
        request_lifecycle.finish(session, number, "test", {"game": "taboo", **result}, ())
        session.get_one(ModelRequest, number).ended_at = datetime.now(UTC) - ago


def generation_of(session: Session, number: int) -> GenerationRow | None:
    """The call that was made for a request; None if none came about."""
    return session.scalar(select(GenerationRow).where(GenerationRow.request_id == number))
