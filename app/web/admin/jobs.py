"""Training jobs: the list, one job as it runs, its loss curve, and the actions on it."""

from collections.abc import Callable, Mapping
from typing import Any

from flask import abort
from flask.typing import ResponseReturnValue
from flask_babel import gettext, lazy_gettext
from sqlalchemy.orm import Session

from app.analysis.chart import Chart
from app.analysis.losses import loss_curve
from app.analysis.training_figures import method_curves
from app.campaigns.listing import campaign_step_of
from app.core.extensions import reading
from app.finetuning import listing
from app.finetuning.backends import find_backend
from app.finetuning.job import TRAINING
from app.games.base import JSON
from app.models import TrainingJob
from app.web.admin.blueprint import blueprint
from app.web.admin.figures import spec_answer
from app.web.admin.job_pages import JobPages, register_pages
from app.web.chart_language import page_language
from app.web.seats import settings


@blueprint.get("/jobs/<int:job_id>/charts/loss.json")
def job_chart(job_id: int) -> ResponseReturnValue:
    """The loss curve of a job as a Vega-Lite spec, in the colours of `theme`: light or dark."""
    return _chart_spec(job_id, chart_of)


@blueprint.get("/jobs/<int:job_id>/charts/method.json")
def job_method_chart(job_id: int) -> ResponseReturnValue:
    """The extra training metrics of a job's method as a Vega-Lite spec, in the same way; 404 if there are none."""
    return _chart_spec(job_id, method_chart_of)


def _chart_spec(job_id: int, draw: Callable[[TrainingJob, Any], Chart | None]) -> ResponseReturnValue:
    with reading() as session:
        row = TRAINING.get(session, job_id)
        chart = draw(row, listing.events_of(session, job_id))
    if chart is None:
        abort(404)
    return spec_answer(chart)


def _training_page_fields(session: Session, item: listing.TrainingListItem) -> Mapping[str, Any]:
    place = campaign_step_of(session, job_id=item.row.id)
    row, events = item.row, listing.events_of(session, item.row.id)
    return {
        "started": _last(events, "started"),
        "recipe": listing.recipes_of(session, [row]).get(row.id),
        "chart": chart_of(row, events),
        "method_chart": method_chart_of(row, events),
        "further": [place] if place else [],
        "poll": settings().TRAIN_POLL,
        "vendor": find_backend(row.backend).vendor,
    }


register_pages(
    TRAINING,
    JobPages(lazy_gettext("Training"), "jobs", "job_id", template="admin/job.html", fields=_training_page_fields),
    new=[("admin.new_training", lazy_gettext("New training job"))],
    about=lazy_gettext(
        "A training job trains a model on a dataset; the model can be played against once the job is done. There are "
        "none yet."
    ),
    first=lazy_gettext("Train the first model"),
    compare="admin.compare_jobs",
    compared={},
    ticked="job",
)


def chart_of(row: TrainingJob, events: Any) -> Chart:
    """The loss curve of a job."""
    name, language = f"loss-{row.id}", page_language()
    by_token = listing.is_by_token(row)
    return loss_curve(name, chart_name(row), events, row.steps, row.registered_step, language, by_token=by_token)


def method_chart_of(row: TrainingJob, events: Any) -> Chart | None:
    """The extra training metrics of a job's method, if it has any."""
    return method_curves(f"method-{row.id}", chart_name(row), events, page_language())


def chart_name(row: TrainingJob) -> str:
    """The name of a job in a chart."""
    return str(gettext("job %(number)s", number=row.id))


def _last(events: Any, kind: str) -> JSON | None:
    """The latest event of a kind."""
    return next((each for each in reversed(events) if each["event"] == kind), None)
