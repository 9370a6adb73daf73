"""Create pushes from a spec, for pages and the API: only to the hub, as a folder is on whichever machine runs them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase
from app.jobs.creation import JobCreation, JobRequest
from app.jobs.kind import Requester
from app.models import Publication
from app.publication import lifecycle
from app.publication.spec import PublicationSpec


def check_repository(spec: PublicationSpec) -> None:
    """Raises Invalid for a folder."""
    if spec.place.folder is not None:
        expected = Phrase("OWNER/NAME of a repository; `flask model push` writes folders")
        raise Invalid("to", expected=expected, got=spec.to)


def _plan_push(session: Session, request: JobRequest[Any]) -> lifecycle.PlannedPush:
    check_repository(request.spec)
    return lifecycle.plan(session, request.home, request.spec)


def _create_push(
    session: Session, request: JobRequest[Any], *, queued: bool, requester: Requester | None
) -> Sequence[Publication]:
    return [lifecycle.create(session, request.spec, request.known, queued=queued, requester=requester)]


CREATION = JobCreation(spec=PublicationSpec, create=_create_push, prepare=_plan_push)
