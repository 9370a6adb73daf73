"""Creates rehearsals from a spec."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.jobs.creation import JobCreation, JobRequest
from app.jobs.kind import Requester
from app.models import Rehearsal
from app.studies.bots import job
from app.studies.bots.spec import RehearsalSpec


def _create_rehearsal(
    session: Session, request: JobRequest[Any], *, queued: bool, requester: Requester | None
) -> Sequence[Rehearsal]:
    return [job.create(session, request.spec, queued=queued, requester=requester)]


CREATION = JobCreation(spec=RehearsalSpec, create=_create_rehearsal)
