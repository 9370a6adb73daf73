"""Training jobs: the list, one job as it runs, its loss curve, and what can be done with it."""

from typing import Any

from flask import jsonify, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.analysis.chart import Chart
from app.analysis.losses import loss_curve
from app.analysis.themes import LIGHT
from app.campaigns.listing import place_of
from app.errors import AppError, Conflict, Invalid, Phrase
from app.extensions import reading
from app.finetuning import listing
from app.finetuning.job import TRAINING
from app.games.base import JSON
from app.jobs import states
from app.models import TrainingJob
from app.validation import whole_number
from app.web.admin.blueprint import blueprint
from app.web.form_writes import write
from app.web.seats import settings


@blueprint.get("/jobs")
def jobs() -> ResponseReturnValue:
    """A page of all jobs, the latest first."""
    try:
        text = request.args.get("before", "")
        before = whole_number(text, "before", 1, 2**31 - 1) if text else None
    except Invalid as error:
        return render_template("admin/jobs.html", jobs=[], older=None, first=True, refused=error), 400
    with reading() as session:
        found, older = listing.chosen_jobs(session, before)
        return render_template("admin/jobs.html", jobs=found, older=older, first=before is None, refused=None)


@blueprint.get("/jobs/<int:job_id>")
def job_page(job_id: int) -> str:
    """One job: how far it is, how its loss falls, what it trains on what, and what it told last."""
    return _page(job_id)


@blueprint.get("/jobs/<int:job_id>/charts/loss.json")
def job_chart(job_id: int) -> ResponseReturnValue:
    """The loss curve of a job as a Vega-Lite spec, in the colours of `theme`: light or dark."""
    with reading() as session:
        row = TRAINING.get(session, job_id)
        chart = chart_of(row, listing.events_of(session, job_id))
    return jsonify(chart.spec(request.args.get("theme", LIGHT), titled=False))


@blueprint.post("/jobs/<int:job_id>")
def act_on_job(job_id: int) -> ResponseReturnValue:
    """Do what the pressed button says: cancel or resume."""
    action = request.form.get("action")
    try:
        if action == "cancel":
            write(lambda session: TRAINING.cancel(session, job_id))
        elif action == "resume":
            write(lambda session: TRAINING.resume(session, job_id, queued=True))
        else:
            raise Invalid("action", expected=Phrase("cancel or resume"), got=action)
    except (Invalid, Conflict) as error:
        return _page(job_id, error), error.status
    if action == "resume":
        TRAINING.enqueue(settings().broker_url, job_id)
    return redirect(url_for("admin.job_page", job_id=job_id), 303)


def _page(job_id: int, refused: AppError | None = None) -> str:
    with reading() as session:
        row = TRAINING.get(session, job_id)
        line = listing.list_item(session, row)
        events = listing.events_of(session, job_id)
        return render_template(
            "admin/job.html",
            job=row,
            line=line,
            figures=listing.figures_of(session, row),
            started=_last(events, "started"),
            recipe=listing.recipe_of(session, row),
            live=row.status in states.LIVE,
            can_cancel=row.status in states.OPEN,
            can_resume=line.state in (states.FAILED, states.CANCELLED, states.INTERRUPTED),
            chart=chart_of(row, events),
            campaign=place_of(session, job_id=job_id),
            refused=refused,
        )


def chart_of(row: TrainingJob, events: Any) -> Chart:
    """The loss curve of a job."""
    return loss_curve(f"loss-{row.id}", f"job {row.id}", events, row.steps, row.registered_step)


def _last(events: Any, kind: str) -> JSON | None:
    """The latest event of a kind."""
    return next((each for each in reversed(events) if each["event"] == kind), None)
