"""Starting alignments: what their form has beyond the spec."""

from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.alignments import lifecycle
from app.alignments.job import ALIGNMENT
from app.alignments.spec import AlignmentSpec
from app.games.base import JSON
from app.models import Alignment
from app.society.estimate import SocietyEstimate
from app.society.material import PriorMemories, QuestionList
from app.web.admin.job_form import Asked, FormWords, JobForm, register_form


class _AlignmentForm(JobForm[Alignment, AlignmentSpec]):
    kind = ALIGNMENT
    spec = AlignmentSpec
    words = FormWords(
        title=lazy_gettext("New alignment"),
        intro=lazy_gettext(
            "Demonstrations, a society, a training on its data, the society again, and raters who compare."
            " Workers run all of it; you can close this page."
        ),
        start=lazy_gettext("Start"),
        back=lazy_gettext("Back to the alignments"),
        estimate=lazy_gettext("What its societies will take"),
        estimate_hint=lazy_gettext("Excludes the trainings and the final comparison."),
    )
    estimate_template = "admin/society-estimate.html"

    def estimated(self, session: Session, asked: Asked[AlignmentSpec]) -> SocietyEstimate:
        return lifecycle.estimated(session, asked.spec, asked.files["questions"], asked.files["priors"])

    def files_of(self, row: Alignment) -> JSON:
        questions, held_out = (QuestionList(*row.material[name]) for name in ("questions", "held_out"))
        return {"questions": questions, "priors": PriorMemories(*row.material["priors"]), "held_out": held_out}


register_form(_AlignmentForm())
