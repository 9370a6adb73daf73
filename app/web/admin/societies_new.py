"""Starting societies: what their form has beyond the spec."""

from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.games.base import JSON
from app.models import Society
from app.society import lifecycle
from app.society.estimate import SocietyEstimate
from app.society.job import SOCIETY
from app.society.material import PriorMemories, QuestionList
from app.society.spec import SocietySpec
from app.web.admin.job_form import Asked, FormWords, JobForm, register_form


class _SocietyForm(JobForm[Society, SocietySpec]):
    kind = SOCIETY
    spec = SocietySpec
    words = FormWords(
        title=lazy_gettext("New society"),
        intro=lazy_gettext(
            "Agents on a grid answer, criticise each other and revise, once an iteration. A worker runs it; you can"
            " close this page."
        ),
        start=lazy_gettext("Start"),
        back=lazy_gettext("Back to the societies"),
        estimate=lazy_gettext("What it will take"),
        estimate_hint=lazy_gettext("Calls, tokens, money and time, from past calls of these models in societies."),
    )
    estimate_template = "admin/society-estimate.html"

    def estimated(self, session: Session, asked: Asked[SocietySpec]) -> SocietyEstimate:
        return lifecycle.estimated(session, asked.spec, **asked.files)

    def files_of(self, row: Society) -> JSON:
        return {
            "questions": QuestionList(row.question_source, row.questions),
            "priors": PriorMemories(row.prior_source, row.priors),  # type: ignore[arg-type]  # its keys are labels
        }


register_form(_SocietyForm())
