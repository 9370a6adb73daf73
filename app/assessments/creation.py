"""Creating assessments from a spec and from the file with their questions."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.assessments import lifecycle, training_overlap
from app.assessments.spec import AssessmentSpec
from app.assessments.training_overlap import HeldOutQuestions
from app.jobs.creation import JobCreation, JobRequest
from app.jobs.kind import Requester
from app.models import Assessment


def _held_out(session: Session, request: JobRequest[Any]) -> HeldOutQuestions:
    """Find the held-out questions. Searching all the training data of the models may take seconds."""
    spec, questions = request.spec, request.files["questions"]
    lifecycle.check(session, spec, questions)
    return training_overlap.held_out(session, request.home, (spec.model, spec.base), questions.questions)


def _create_assessment(
    session: Session, request: JobRequest[Any], *, queued: bool, requester: Requester | None
) -> Sequence[Assessment]:
    spec, questions = request.spec, request.files["questions"]
    return [lifecycle.create(session, spec, questions, request.known, queued=queued, requester=requester)]


CREATION = JobCreation(spec=AssessmentSpec, create=_create_assessment, prepare=_held_out)
