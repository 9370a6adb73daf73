"""Starting assessments: what their form has beyond the spec."""

from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.assessments import lifecycle
from app.assessments.estimate import AssessmentEstimate, estimate_for
from app.assessments.job import ASSESSMENT
from app.assessments.spec import AssessmentSpec
from app.games.base import JSON
from app.models import Assessment
from app.society.material import QuestionList
from app.web.admin.job_form import Asked, FormWords, JobForm, register_form


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
        estimate=lazy_gettext("What it will take"),
        estimate_hint=lazy_gettext(
            "Calls, tokens, money and time, from past calls of these models in societies. Questions that one of the two"
            " was trained on are left out when it starts."
        ),
    )
    estimate_template = "admin/society-estimate.html"

    def estimated(self, session: Session, asked: Asked[AssessmentSpec]) -> AssessmentEstimate:
        questions = asked.files["questions"]
        models = lifecycle.check(session, asked.spec, questions)
        return estimate_for(session, asked.spec, models, len(questions.questions))

    def files_of(self, row: Assessment) -> JSON:
        return {"questions": QuestionList(row.question_source, row.questions)}


register_form(_AssessmentForm())
