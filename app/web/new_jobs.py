"""How the web process creates jobs, for forms and the API."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.core.extensions import db, reading
from app.jobs.creation import JobCreation, JobRequest, creation_of
from app.jobs.kind import JobKind, Requester
from app.jobs.spec import JobSpec
from app.web.seats import settings
from app.web.threads import in_worker_thread


def prepared(kind: JobKind[Any], spec: JobSpec, files: Mapping[str, Any]) -> JobRequest[Any]:
    """The request with everything that must be known before the transaction; others play meanwhile. Raises AppError."""
    creation, request = _creation(kind), JobRequest(spec, files, settings().home)
    if creation.prepare is None:
        return request
    found: JobRequest[Any] = in_worker_thread(db.engine, creation.prepared, request)
    return found


def create(session: Session, kind: JobKind[Any], request: JobRequest[Any], by: Requester) -> list[int]:
    """Store the jobs in the writing thread, which has no request; returns their numbers. Raises AppError."""
    return [row.id for row in _creation(kind).create(session, request, queued=True, requester=by)]


def enqueue(kind: JobKind[Any], numbers: Sequence[int]) -> None:
    """Call workers for new jobs, after the commit."""
    with reading() as session:
        queue = kind.queue_of(session, numbers[0])
    for number in numbers:
        kind.enqueue(settings().broker_url, number, queue=queue)


def _creation(kind: JobKind[Any]) -> JobCreation[Any]:
    found = creation_of(kind)
    if found is None:
        raise LookupError(f"expected a kind whose jobs come of a spec, got {kind.name}")
    return found
