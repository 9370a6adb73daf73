"""Alignments: the list, and the page of one alignment with its jobs and results."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from flask import url_for
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.alignments import listing, step_names
from app.alignments.comparison import SocietyDifference
from app.alignments.export import recipe_archive
from app.alignments.job import ALIGNMENT
from app.assessments.job import ASSESSMENT
from app.core.extensions import db
from app.jobs import states
from app.models import Alignment, LanguageModel, Society
from app.web.admin.archives import archive_response
from app.web.admin.assessments import AssessedAspect, aspects_of, figures_of
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import JobPages, register_pages
from app.web.admin.lists import add_address
from app.web.admin.rounds_analysis import cached
from app.web.threads import in_worker_thread


def _alignment_page_fields(session: Session, item: listing.AlignmentListItem) -> Mapping[str, Any]:
    row, steps = item.row, listing.steps_of(session, item)
    made = [step.model for step in steps if step.model is not None]
    return {
        "steps": steps,
        "now": _now(row, steps),
        "before": _model_of_first_society(item.base, made, item.model),
        "aspects": _aspects(session, item),
        "societies": _societies(session, item),
    }


@blueprint.get("/alignments/<int:alignment_id>/recipe.zip")
def export_alignment(alignment_id: int) -> ResponseReturnValue:
    """An alignment as a recipe, with the files of its questions and first memories."""
    return archive_response(ALIGNMENT, alignment_id, recipe_archive)


add_address("alignment recipe", lambda number: url_for("admin.export_alignment", alignment_id=number))
register_pages(
    ALIGNMENT,
    JobPages(
        lazy_gettext("Alignments"),
        "alignments",
        "alignment_id",
        below="societies",
        template="admin/alignment.html",
        fields=_alignment_page_fields,
    ),
    new=[("admin.new_alignment", lazy_gettext("New alignment"))],
    about=lazy_gettext(
        "An alignment is the whole recipe of Stable Alignment as one job: a model learns demonstrations, lives in a"
        " society, is trained on its data, lives in the society again, and raters compare it with the model before."
        " There are none yet."
    ),
    first=lazy_gettext("Start the first alignment"),
    command="flask alignment run --base MODEL --observers MODEL",
)


def _now(row: Alignment, steps: Sequence[listing.AlignmentStep]) -> listing.AlignmentStep | None:
    """The current step, or the one it stopped at, which was begun last; None if all are done."""
    if row.status == states.DONE:
        return None
    begun = [step for step in steps if step.item is not None]
    return begun[-1] if begun else steps[0]


def _model_of_first_society(
    base: LanguageModel, made: Sequence[LanguageModel], model: LanguageModel | None
) -> LanguageModel:
    """The model in the first society: the base, or the one trained from it on demonstrations."""
    return next((each for each in made if model is None or each.id != model.id), base)


def _aspects(session: Session, item: listing.AlignmentListItem) -> Sequence[AssessedAspect]:
    """The raters' assessment of its model compared with the one before, so far."""
    number = item.number_of(step_names.ASSESSMENT)
    return [] if number is None else aspects_of(figures_of(ASSESSMENT.get(session, number)))


def _societies(session: Session, item: listing.AlignmentListItem) -> Sequence[tuple[str, Sequence[SocietyDifference]]]:
    """Its first society compared with the last: computed off the event loop, and cached until there is more of it."""
    number, row = item.number_of(step_names.SECOND_SOCIETY), item.row
    if number is None:
        return []
    last = session.get_one(Society, number)
    key = (str(db.engine.url), "alignment", row.id, row.created_at, last.interactions)
    found: Sequence[tuple[str, Sequence[SocietyDifference]]] = cached(
        key, partial(in_worker_thread, db.engine, _differences, row.id)
    )
    return found


def _differences(session: Session, number: int) -> Sequence[tuple[str, Sequence[SocietyDifference]]]:
    [item] = listing.list_items(session, [ALIGNMENT.get(session, number)])
    return listing.society_figures(session, item)
