"""Starting assessments: what their form has beyond the spec."""

from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.assessments import lifecycle, training_overlap
from app.assessments.job import ASSESSMENT
from app.assessments.spec import AssessmentSpec
from app.assessments.training_overlap import HeldOutQuestions
from app.core.extensions import db, reading
from app.games.base import JSON
from app.jobs.kind import Requester
from app.models import Assessment
from app.society.material import QuestionList
from app.web.admin.job_form import Asked, FormWords, JobForm, register_form
from app.web.admin.rounds_scores import in_worker_thread
from app.web.seats import settings


class _AssessmentForm(JobForm[Assessment, AssessmentSpec]):
    kind = ASSESSMENT
    spec = AssessmentSpec
    words = FormWords(
        title=lazy_gettext("New assessment"),
        intro=lazy_gettext(
            "Two models answer the same questions, and raters say how good each answer is. A worker runs it; you can"
            " close this page."
        ),
        start=lazy_gettext("Start"),
        back=lazy_gettext("Back to the assessments"),
    )

    def check(self, asked: Asked[AssessmentSpec]) -> HeldOutQuestions:
        """Looking through all that the models were trained on may take seconds, during which others play."""
        spec, questions = asked.spec, asked.files["questions"]
        with reading() as session:
            lifecycle.check(session, spec, questions)
        look = (settings().home, (spec.model, spec.base), questions.questions)
        found: HeldOutQuestions = in_worker_thread(db.engine, training_overlap.held_out, *look)
        return found

    def create(self, session: Session, asked: Asked[AssessmentSpec], by: Requester) -> Assessment:
        spec, questions = asked.spec, asked.files["questions"]
        return lifecycle.create(session, spec, questions, asked.known, queued=True, requester=by)

    def files_of(self, row: Assessment) -> JSON:
        return {"questions": QuestionList(row.question_source, row.questions)}


register_form(_AssessmentForm())
