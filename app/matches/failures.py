"""Recent failures, for experimenters: aborted matches, model calls that got no answer, failed test calls.

None of these is the fault of a person who plays. Failures in the matches of a round are on that round's pages.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from app.jobs import states
from app.matches.events import Aborted, from_json
from app.matches.filter import PEOPLES
from app.models import EventRow, GenerationRow, LanguageModel, MatchRow, ModelRequest, SeatRow

LATELY = timedelta(days=7)  # how long ago a match or a test call may have begun
CALLS = 2000  # the number of latest calls that are searched, however old they are
MOST = 100  # failures read of each kind


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """One failure, with the model and the match it concerns, if any."""

    at: datetime
    kind: str  # match | call | test
    fault: str  # model | us, as in the event that ends a match
    detail: str
    match_id: str | None
    model_id: int | None
    model: str | None


def last_failures(session: Session, now: datetime) -> list[ModelFailure]:
    """The latest failures, at most MOST of each kind, newest first."""
    found = [*_broken_off(session, now), *_unanswered(session), *_failed_tests(session, now)]
    return sorted(found, key=lambda failure: failure.at, reverse=True)


def _broken_off(session: Session, now: datetime) -> list[ModelFailure]:
    latest = (
        select(MatchRow.id)
        .where(MatchRow.started_at >= now - LATELY, MatchRow.reason == "aborted", MatchRow.source.in_(PEOPLES))
        .order_by(MatchRow.started_at.desc())
        .limit(MOST)
    )
    rows = session.execute(
        select(EventRow.at, EventRow.body, MatchRow.id, LanguageModel.id.label("model_id"), LanguageModel.name)
        .join(EventRow, (EventRow.match_id == MatchRow.id) & (EventRow.kind == "aborted"))
        .outerjoin(SeatRow, (SeatRow.match_id == MatchRow.id) & (SeatRow.seat == EventRow.seat))
        .outerjoin(LanguageModel, LanguageModel.id == SeatRow.language_model_id)
        .where(MatchRow.id.in_(latest))
        .order_by(MatchRow.started_at.desc())
    )
    failures = []
    for row in rows:
        event = from_json(row.body)
        if isinstance(event, Aborted):
            failures.append(ModelFailure(row.at, "match", event.fault, event.detail, row.id, row.model_id, row.name))
    return failures


def _unanswered(session: Session) -> list[ModelFailure]:
    """Calls without an answer in matches that went on; where one aborted its match, the match is already listed."""
    latest = (session.scalar(select(func.max(GenerationRow.id))) or 0) - CALLS
    rows = session.execute(
        select(
            GenerationRow.at, GenerationRow.error, GenerationRow.match_id, GenerationRow.model, LanguageModel.id,
            LanguageModel.name,
        )
        .join(MatchRow, MatchRow.id == GenerationRow.match_id)
        .outerjoin(LanguageModel, LanguageModel.id == GenerationRow.language_model_id)
        .where(GenerationRow.id > latest, GenerationRow.error.is_not(None))
        .where(or_(MatchRow.reason.is_(None), MatchRow.reason != "aborted"))
        .where(func.coalesce(MatchRow.source, "").in_(PEOPLES))  # searches the latest calls, not the index of sources
        .order_by(GenerationRow.id.desc())
        .limit(MOST)
    )  # fmt: skip
    return [
        ModelFailure(row.at, "call", "model", row.error, row.match_id, row.id, row.name or row.model) for row in rows
    ]


def _failed_tests(session: Session, now: datetime) -> list[ModelFailure]:
    rows = session.execute(
        select(ModelRequest.ended_at, ModelRequest.error, LanguageModel.id, LanguageModel.name)
        .join(LanguageModel, LanguageModel.test_request_id == ModelRequest.id)
        .where(ModelRequest.status == states.FAILED, ModelRequest.ended_at >= now - LATELY)
    )
    return [
        ModelFailure(row.ended_at, "test", "model", row.error or "", None, row.id, row.name)
        for row in rows
        if row.ended_at is not None
    ]
