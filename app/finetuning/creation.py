"""Creation of trainings from a spec."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.finetuning import lifecycle
from app.finetuning.spec import TrainingSpec
from app.jobs.creation import JobCreation, JobRequest
from app.jobs.kind import Requester
from app.models import TrainingJob


def _create_training(
    session: Session, request: JobRequest[Any], *, queued: bool, requester: Requester | None
) -> Sequence[TrainingJob]:
    return [lifecycle.create(session, request.spec, queued=queued, home=request.home, requester=requester)]


CREATION = JobCreation(spec=TrainingSpec, create=_create_training)
