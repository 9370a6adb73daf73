"""The states of a request: waiting, running under a lease, done or failed. Nothing here commits."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, Phrase
from app.games.base import JSON
from app.jobs import leases, states
from app.jobs.holding import hold
from app.matches.store import generation_columns
from app.models import GenerationRow, LanguageModel, ModelRequest
from app.players.api.server_findings import PROBE_SECONDS
from app.players.base import ChatSampling, Generation
from app.registry import CHAT_USE, check_not_archived

TEST, CHECK, QUESTION, BENCHMARK = "test", "check", "question", "benchmark"
PATIENCE = timedelta(seconds=3)  # how long a message to a worker may take before it counts as lost
LONG_PURPOSES = (TEST, CHECK)  # these take PROBE_SECONDS longer than any other
LONGEST = timedelta(minutes=10)  # a request that no worker has made by then fails
TOO_LATE = "expected a worker to make the call within 10 minutes, got none; `flask doctor` says whether one runs"


def create(
    session: Session,
    row: LanguageModel,
    purpose: str,
    messages: list[dict[str, str]],
    sampling: ChatSampling = ChatSampling(),  # noqa: B008 - it cannot change
    game: str | None = None,
) -> ModelRequest:
    """A new, waiting request.

    Until it is over, its model cannot be removed. Raises Conflict for a model that answers no chats, is archived or was
    removed, and Invalid for a sampling option that it does not have.
    """
    check_not_archived(row)
    hold(session, [row])
    if row.kind == "api" and sampling.top_k is not None:
        raise Invalid(
            "top_k",
            expected=Phrase("none for a model behind an API"),
            got=sampling.top_k,
            remedy=Phrase("if the server knows it, set it in the option extra"),
        )
    if row.kind != "local" and sampling.no_repeat_ngram is not None:
        raise Invalid(
            "no_repeat_ngram", expected=Phrase("none for a model that is not local"), got=sampling.no_repeat_ngram
        )
    if CHAT_USE not in row.uses:
        raise Conflict(
            "model",
            expected=Phrase("one that takes calls"),
            got=Phrase("%(name)s, which is scripted and takes none", name=row.name),
        )
    request = ModelRequest(
        language_model_id=row.id,
        purpose=purpose,
        game=game,
        messages=messages,
        sampling={name: value for name, value in sampling._asdict().items() if value is not None},
        status=states.WAITING,
        created_at=datetime.now(UTC),
    )
    session.add(request)
    session.flush()
    return request


def take(session: Session, number: int, owner: str, seconds: float) -> ModelRequest | None:
    """The request, if it is still to be made and no worker is making it: leased to the owner for `seconds`, or longer
    if it takes several calls.
    """
    now = datetime.now(UTC)
    purpose = session.scalar(select(ModelRequest.purpose).where(ModelRequest.id == number))
    until = now + timedelta(seconds=seconds + (PROBE_SECONDS if purpose in LONG_PURPOSES else 0)) + PATIENCE
    statement = (
        update(ModelRequest)
        .where(ModelRequest.id == number, ModelRequest.status.in_(states.OPEN), leases.free(ModelRequest, now))
        .values(status=states.RUNNING, lease_owner=owner, lease_until=until, lease_count=ModelRequest.lease_count + 1)
        .returning(ModelRequest.id)
        .execution_options(synchronize_session=False)
    )
    taken = session.scalar(statement)
    return None if taken is None else session.get_one(ModelRequest, taken, populate_existing=True)


def finish(session: Session, number: int, owner: str, result: JSON, calls: Sequence[Generation]) -> bool:
    """Store the result of a request, and its calls in order: `result` says `ok`, or why not in `error`.

    False if another worker is making it now.
    """
    request = session.get(ModelRequest, number, with_for_update=True, populate_existing=True)
    if request is None or request.lease_owner != owner or request.status != states.RUNNING:
        return False
    request.status = states.DONE if result["ok"] else states.FAILED
    request.result, request.error = result, result.get("error")
    request.ended_at, request.lease_until = datetime.now(UTC), None
    session.add_all(_generation_row(request, attempt, call) for attempt, call in enumerate(calls))
    return True


def take_forgotten(session: Session, seconds: float) -> Sequence[int]:
    """Numbers of requests that should be sent to a worker again, marked as enqueued. Those that are too old fail.

    `seconds` is how long a lease lasts.
    """
    now = datetime.now(UTC)
    waits = ModelRequest.status.in_(states.OPEN) & leases.free(ModelRequest, now)
    # After a clock jump, a lease would block everyone else for as long as the clock was wrong.
    leases.end_distant(session, ModelRequest, seconds + PROBE_SECONDS, ModelRequest.status == states.RUNNING)
    late = update(ModelRequest).where(waits, ModelRequest.created_at < now - LONGEST)
    failed = {"status": states.FAILED, "error": TOO_LATE, "result": {"ok": False, "error": TOO_LATE}, "ended_at": now}
    session.execute(late.values(failed), execution_options={"synchronize_session": False})
    heard_of = func.coalesce(ModelRequest.enqueued_at, ModelRequest.created_at)
    return leases.mark_enqueued(session, ModelRequest, waits & (heard_of < now - PATIENCE), now)


def _generation_row(request: ModelRequest, attempt: int, generation: Generation) -> GenerationRow:
    return GenerationRow(
        request_id=request.id,
        attempt=attempt,
        language_model_id=request.language_model_id,
        at=datetime.now(UTC),
        **generation_columns(generation),
    )
