"""Creating alignments from a spec and from the files with their questions and first memories."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.alignments import lifecycle
from app.alignments.spec import AlignmentSpec
from app.jobs.creation import JobCreation, JobRequest
from app.jobs.kind import Requester
from app.models import Alignment


def _create_alignment(
    session: Session, request: JobRequest[Any], *, queued: bool, requester: Requester | None
) -> Sequence[Alignment]:
    return [lifecycle.create(session, request.spec, **request.files, queued=queued, requester=requester)]


CREATION = JobCreation(spec=AlignmentSpec, create=_create_alignment)
