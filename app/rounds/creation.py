"""Create rounds from a spec and the file with their material: one, or those of a cross-play."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.jobs.creation import JobCreation, JobRequest
from app.jobs.kind import Requester
from app.models import RoundRow
from app.rounds import lifecycle, matrix
from app.rounds.spec import RoundSpec


def _create_rounds(
    session: Session, request: JobRequest[Any], *, queued: bool, requester: Requester | None
) -> Sequence[RoundRow]:
    spec, material = request.spec, request.files["material"]
    if spec.cross_play:
        return matrix.create(session, spec, material, queued=queued, requester=requester)
    return [lifecycle.create(session, spec, material, queued=queued, requester=requester)]


CREATION = JobCreation(spec=RoundSpec, create=_create_rounds)
