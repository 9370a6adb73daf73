"""Assessments: the list, the page of one assessment, its figures as a table and as a file, and the answers."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from flask import Response, render_template, request
from flask_babel import lazy_gettext
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.alignments.job import ALIGNMENT
from app.assessments import listing
from app.assessments.figures import ASPECTS, COLUMNS, AssessmentFigures
from app.assessments.job import ASSESSMENT
from app.core.csv_tables import to_csv
from app.core.errors import Phrase
from app.core.extensions import db, reading
from app.core.lists import Reference
from app.core.validation import whole_number
from app.jobs.kind import LARGEST
from app.jobs.listing import called
from app.models import Alignment, Assessment, RecipeStep
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import JobPages, register_pages
from app.web.admin.rounds_analysis import cached
from app.web.admin.rounds_result import IntervalBar, drawn_interval
from app.web.threads import in_worker_thread

ANSWERS = 10  # questions on a page of answers


class AssessedAspect(NamedTuple):
    """The figures of one rated aspect: of all raters together, then of each; only one if there is one rater."""

    name: str
    figures: Sequence[AssessmentFigures]
    drawn: Sequence[IntervalBar | None]  # each difference
    widest: float  # the axis of differences goes from minus this to this

    @property
    def verdict(self) -> str:
        """The result of the first difference's interval: better, worse, even; none if there is no interval."""
        found = self.figures[0].difference
        if found.low is None or found.high is None:
            return "none"
        return "better" if found.low > 0 else "worse" if found.high < 0 else "even"


# ---- One assessment ------------------------------------------------------------------


@blueprint.get("/assessments/<int:assessment_id>/figures.csv")
def assessment_csv(assessment_id: int) -> Response:
    """The output of `flask assessment show --csv`, guarded against formulas."""
    with reading() as session:
        row = ASSESSMENT.get(session, assessment_id)
    response = Response(b"".join(to_csv(COLUMNS, figures_of(row), guard=True)), mimetype="text/csv")
    response.headers["Content-Disposition"] = f'attachment; filename="assessment-{assessment_id}.csv"'
    return response


@blueprint.get("/assessments/<int:assessment_id>/answers")
def assessment_answers(assessment_id: int) -> str:
    """Both models' answers, with the ratings: a page of questions, starting at number `from`, counted from 1."""
    first = whole_number(request.args.get("from", "1"), "from", 1, LARGEST) - 1
    with reading() as session:
        row = ASSESSMENT.get(session, assessment_id)
        [named] = listing.list_items(session, [row])
        return render_template(
            "admin/assessment-answers.html",
            name=called(ASSESSMENT, named),
            job=row,
            named=named,
            pairs=listing.answer_pairs(session, row, first, ANSWERS),
            aspects=ASPECTS,
            first=first,
            later=first + ANSWERS if first + ANSWERS < row.asked else None,
        )


def _assessment_page_fields(session: Session, item: listing.AssessmentListItem) -> Mapping[str, Any]:
    step = (RecipeStep.kind == ASSESSMENT.name) & (RecipeStep.number == item.row.id)
    found = session.scalar(select(Alignment).join(RecipeStep, RecipeStep.alignment_id == Alignment.id).where(step))
    link = found and Reference(ALIGNMENT.name, found.id, found.name)
    part = [Phrase("Part of the alignment %(name)s.", name=link)] if link else []
    return {"aspects": aspects_of(figures_of(item.row)), "further": part}


register_pages(
    ASSESSMENT,
    JobPages(
        lazy_gettext("Assessments"), "assessments", "assessment_id", below="societies", fields=_assessment_page_fields
    ),
    new=[("admin.new_assessment", lazy_gettext("New assessment"))],
    about=lazy_gettext(
        "In an assessment two models, such as one before and after a training, answer the same questions, which "
        "neither was trained on, and raters say how good each answer is. There are none yet."
    ),
    first=lazy_gettext("Start the first assessment"),
    command="flask assessment run MODEL BASE --raters NAME --questions FILE",
)


# ---- Figures -------------------------------------------------------------------------


def figures_of(row: Assessment) -> Sequence[AssessmentFigures]:
    """The figures of the ratings so far: computed off the event loop, and cached until there are more."""
    key = (str(db.engine.url), "assessment", row.id, row.created_at, row.answers)
    found: Sequence[AssessmentFigures] = cached(key, partial(in_worker_thread, db.engine, _rating_figures, row.id))
    return found


def _rating_figures(session: Session, number: int) -> Sequence[AssessmentFigures]:
    return listing.figures_of(session, ASSESSMENT.get(session, number))


def aspects_of(found: Sequence[AssessmentFigures]) -> list[AssessedAspect]:
    """The figures by aspect; empty until a question has both answers rated."""
    if not any(each.difference.n for each in found):
        return []
    aspects = []
    for name in ASPECTS:
        own = [each for each in found if each.aspect == name]
        ends = [abs(end) for each in own for end in each.difference[:3] if end is not None]
        widest = next(axis for axis in (1.0, 2.0, 4.0, 6.0) if axis >= max(ends, default=0.0))
        drawn = [drawn_interval(each.difference, -widest, widest) for each in own]
        aspects.append(AssessedAspect(name, own, drawn, widest))
    return aspects
