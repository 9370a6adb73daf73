"""Starting assessments: what their form has beyond the spec."""

from flask_babel import lazy_gettext

from app.assessments.job import ASSESSMENT
from app.assessments.spec import AssessmentSpec
from app.games.base import JSON
from app.models import Assessment
from app.society.material import QuestionList
from app.web.admin.job_form import FormWords, JobForm, register_form


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

    def files_of(self, row: Assessment) -> JSON:
        return {"questions": QuestionList(row.question_source, row.questions)}


register_form(_AssessmentForm())
