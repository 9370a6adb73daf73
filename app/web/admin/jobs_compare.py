"""Training jobs side by side: their losses in one chart, how far each got, and the settings in which they differ."""

from collections.abc import Mapping, Sequence
from typing import Any

from flask import render_template
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.analysis.training_figures import MOST_JOBS, compared_losses
from app.core.errors import AppError
from app.core.extensions import reading
from app.finetuning import listing
from app.finetuning.config import SFT_DATA
from app.finetuning.job import TRAINING
from app.games.base import JSON
from app.jobs.listing import job_reference
from app.models import TrainingJob
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import read_compared
from app.web.admin.jobs import chart_name
from app.web.admin.rounds_analysis import with_specs
from app.web.chart_language import page_language


@blueprint.get("/jobs/compare")
def compare_jobs() -> ResponseReturnValue:
    """Training jobs side by side; if none are given, instructions for choosing them."""
    try:
        with reading() as session:
            return _training_comparison_page(session, read_compared(session, TRAINING, "job", MOST_JOBS))
    except AppError as error:
        return render_template("admin/jobs-compare.html", jobs=[], chart=None, settings=[], refused=error), error.status


def _training_comparison_page(session: Session, rows: Sequence[TrainingJob]) -> str:
    events = [(chart_name(row), listing.events_of(session, row.id)) for row in rows]
    by_token = all(map(listing.is_by_token, rows))
    return render_template(
        "admin/jobs-compare.html",
        jobs=(items := listing.training_items(session, rows)),
        cells=[job_reference(TRAINING, each) for each in items],
        figures=listing.figures_of(session, rows),
        chart=with_specs(compared_losses("losses", events, page_language(), by_token=by_token)),
        settings=_differing(rows, listing.recipes_of(session, rows)),
        refused=None,
    )


def _differing(rows: Sequence[TrainingJob], recipes: Mapping[int, JSON]) -> list[tuple[str, list[Any]]]:
    """The settings in which the jobs differ, by name, with each job's value; None for a job without one."""
    found = [
        {name: value for name, value in recipes.get(row.id, row.config).items() if name != SFT_DATA} for row in rows
    ]
    names = dict.fromkeys(name for each in found for name in each)
    values = {name: [each.get(name) for each in found] for name in names}
    return [(name, each) for name, each in values.items() if any(value != each[0] for value in each)]
