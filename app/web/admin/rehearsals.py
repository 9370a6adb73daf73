"""Rehearsals: bots are sent through a copy of a study from its page, and a page follows them."""

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext

from app.core.errors import AppError
from app.core.extensions import reading
from app.jobs.listing import job_items
from app.models import Study, StudyVersion
from app.studies.bots import job
from app.studies.bots.job import REHEARSAL
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import JobPages, job_actions, register_pages, requester
from app.web.admin.study_versions import find_version
from app.web.form_writes import write_once
from app.web.forms import RefusedField
from app.web.seats import settings
from app.web.watched import rehearsal_figures


@blueprint.get("/studies/<int:study_id>/bots")
def new_rehearsal(study_id: int) -> str:
    """The form: how many bots, and the seed of what they choose."""
    return _form(study_id, {"bots": "20", "seed": "1", "live": ""})


@blueprint.post("/studies/<int:study_id>/bots")
def start_rehearsal(study_id: int) -> ResponseReturnValue:
    """Write the rehearsal down, call a worker, and show it; or say why it cannot be."""
    form = {name: request.form.get(name, "").strip() for name in ("bots", "seed", "live")}
    with reading() as session:
        found = find_version(session, study_id)
        reference = f"{found.study.name}@{found.version.number}"
    by = requester()
    try:
        number = write_once(
            lambda session: (
                job.create(session, reference, form["bots"], form["seed"], live=bool(form["live"]), requester=by).id
            )
        )
    except AppError as error:
        return _form(study_id, form, error), error.status
    REHEARSAL.enqueue(settings().broker_url, number)
    return redirect(url_for("admin.rehearsal_page", rehearsal_id=number), 303)


@blueprint.get("/rehearsals/<int:rehearsal_id>")
def rehearsal_page(rehearsal_id: int) -> str:
    """One rehearsal: how far it is, and what the bots met so far."""
    return _detail(rehearsal_id)


def _form(study_id: int, form: dict[str, str], error: AppError | None = None) -> str:
    with reading() as session:
        found = find_version(session, study_id)
        return render_template(
            "admin/rehearsal-new.html",
            **found._asdict(),
            form=form,
            most=job.MOST_BOTS,
            refused=None if error is None else RefusedField(error.field or "bots", error),
        )


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
