"""Training jobs side by side: their losses in one chart, how far each came, and the settings in which they differ."""

from collections.abc import Mapping, Sequence
from typing import Any

from flask import render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.analysis.training_figures import MOST_JOBS, compared_losses
from app.errors import AppError, Invalid, Phrase
from app.extensions import reading
from app.finetuning import listing
from app.finetuning.job import TRAINING
from app.games.base import JSON
from app.models import TrainingJob
from app.validation import whole_number
from app.web.admin.blueprint import blueprint
from app.web.admin.rounds_analysis import with_specs


@blueprint.get("/jobs/compare")
def compare_jobs() -> ResponseReturnValue:
    """Training jobs side by side; without any, how to choose them."""
    try:
        with reading() as session:
            return _compared(session, _wanted(session, request.args.getlist("job")))
    except AppError as error:
        return render_template("admin/jobs-compare.html", jobs=[], chart=None, settings=[], refused=error), error.status


def _wanted(session: Session, given: Sequence[str]) -> list[TrainingJob]:
    numbers = dict.fromkeys(whole_number(text, "job", 1, 2**31 - 1) for text in given[: MOST_JOBS + 1])
    if not 2 <= len(numbers) <= MOST_JOBS:
        raise Invalid(
            "job",
            expected=Phrase("2 to %(most)s different ones to compare", most=MOST_JOBS),
            got=len(numbers),
            remedy=Phrase("tick them in the list"),
        )
    return [TRAINING.get(session, number) for number in numbers]


def _compared(session: Session, rows: Sequence[TrainingJob]) -> str:
    events = [(f"job {row.id}", listing.events_of(session, row.id)) for row in rows]
    return render_template(
        "admin/jobs-compare.html",
        jobs=listing.training_items(session, rows),
        figures=listing.figures_of(session, rows),
        chart=with_specs(compared_losses("losses", events)),
        settings=_differing(rows, listing.recipes_of(session, rows)),
        refused=None,
    )


def _differing(rows: Sequence[TrainingJob], recipes: Mapping[int, JSON]) -> list[tuple[str, list[Any]]]:
    """The settings in which the jobs differ, by name, each with its value in every job; None where one has none."""
    found = [recipes.get(row.id, row.config) for row in rows]
    names = dict.fromkeys(name for each in found for name in each)
    values = {name: [each.get(name) for each in found] for name in names}
    return [(name, each) for name, each in values.items() if any(value != each[0] for value in each)]
