"""Create societies from a spec, and the files with their questions and first memories."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.jobs.creation import JobCreation, JobRequest
from app.jobs.kind import Requester
from app.models import Society
from app.society import lifecycle
from app.society.spec import SocietySpec


def _create_society(
    session: Session, request: JobRequest[Any], *, queued: bool, requester: Requester | None
) -> Sequence[Society]:
    return [lifecycle.create(session, request.spec, **request.files, queued=queued, requester=requester)]


CREATION = JobCreation(spec=SocietySpec, create=_create_society)
