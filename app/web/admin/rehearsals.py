"""Rehearsals: bots are sent through a copy of a study from its page, and a page follows them."""

from flask import render_template
from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.core.errors import AppError
from app.core.extensions import reading
from app.jobs.kind import Requester
from app.jobs.listing import job_items
from app.models import Rehearsal, Study, StudyVersion
from app.studies.bots import job
from app.studies.bots.job import REHEARSAL
from app.studies.bots.spec import RehearsalSpec
from app.web.admin.blueprint import blueprint
from app.web.admin.job_form import Asked, FormWords, JobForm, register_form
from app.web.admin.job_pages import JobPages, job_actions, register_pages
from app.web.watched import rehearsal_figures


@blueprint.get("/rehearsals/<int:rehearsal_id>")
def rehearsal_page(rehearsal_id: int) -> str:
    """One rehearsal: how far it is, and what the bots met so far."""
    return _detail(rehearsal_id)


def _detail(rehearsal_id: int, refused: AppError | None = None) -> str:
    with reading() as session:
        row = REHEARSAL.get(session, rehearsal_id)
        [item] = job_items(session, REHEARSAL, [row])
        version = session.get_one(StudyVersion, row.study_version_id)
        return render_template(
            "admin/rehearsal.html",
            job=row,
            item=item,
            figures=rehearsal_figures(item),
            version=version,
            study=session.get_one(Study, version.study_id),
            report=job.report_of(session, row),
            refused=refused,
            **job_actions(REHEARSAL, row, item.state),
        )


register_pages(
    REHEARSAL,
    JobPages(lazy_gettext("Rehearsals"), "rehearsals", "rehearsal_id", _detail, below="studies"),
    intro=lazy_gettext("Bots that go through copies of studies. They are sent from the page of a study."),
)


# ---- Sending bots ----------------------------------------------------------------------


class _RehearsalForm(JobForm[Rehearsal, RehearsalSpec]):
    kind = REHEARSAL
    spec = RehearsalSpec
    words = FormWords(
        title=lazy_gettext("Send bots"),
        intro=lazy_gettext(
            "Programs go through a copy of a study as people would, over the same pages. Some have bad habits: they"
            " fail the quiz, go silent, press twice, use two browsers, withdraw. They take no place and no arm of the"
            " study."
        ),
        start=lazy_gettext("Send bots"),
        back=lazy_gettext("Back to the rehearsals"),
    )

    def create(self, session: Session, asked: Asked[RehearsalSpec], by: Requester) -> Rehearsal:
        return job.create(session, asked.spec, requester=by)


register_form(_RehearsalForm())
