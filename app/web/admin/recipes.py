"""Recipe runs: the list, and one run as it goes through its steps, with its tables."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flask import request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.analysis.chart import Chart
from app.core.csv_tables import Column, to_csv
from app.core.errors import AppError
from app.core.extensions import db
from app.jobs.listing import JobListItem
from app.recipes.export import archive_of, sweep_rows
from app.recipes.job import RECIPE
from app.recipes.listing import lines_of, shown_tables
from app.recipes.sweep_results import SweepResults, SweepWords, results_of, sweep_of, table_in_words
from app.recipes.tables import TableCell
from app.web.admin.archives import archive_response
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import JobPages, register_pages
from app.web.admin.lists import add_address
from app.web.admin.rounds_analysis import with_specs
from app.web.chart_language import page_language
from app.web.csv_exports import csv_flags
from app.web.downloads import download
from app.web.threads import in_worker_thread


class _Sweep(NamedTuple):
    """What the page of a run shows of its sweep; `refused` says why what the URL asks for is not drawn."""

    results: SweepResults
    charts: Sequence[tuple[Chart, Mapping[str, Any]]]
    table: SweepWords
    refused: AppError | None


def _recipe_page_fields(session: Session, item: JobListItem) -> Mapping[str, Any]:
    swept = in_worker_thread(db.engine, _swept, item.row.id)
    return {"tables": shown_tables(session, item.row), "sweep": None if swept is None else _sweep(swept)}


def _swept(session: Session, number: int) -> SweepResults | None:
    row = RECIPE.get(session, number)
    return results_of(row, lines_of(session, row)) if sweep_of(row).variables else None


def _sweep(results: SweepResults) -> _Sweep:
    """The figure across the variable that the URL names; by default across the first field, and over the first loop."""
    asked = {name: request.args.get(name, "") for name in ("figure", "step", "across")}
    try:
        charts, refused = _curves(results, **asked), None
    except AppError as error:
        charts, refused = _curves(results), error
    return _Sweep(results, [*map(with_specs, charts)], table_in_words(results), refused)


def _curves(results: SweepResults, figure: str = "", step: str = "", across: str = "") -> list[Chart]:
    axes = [axis.variable for axis in results.sweep.axes]
    usual = [*axes[:1], *[each for each in results.across if each not in axes][:1]]
    curves = [results.curve(figure, each, step, page_language()) for each in ([across] if across else usual)]
    return [each for each in curves if each is not None]


@blueprint.get("/recipes/<int:recipe_id>/export.zip")
def export_recipe(recipe_id: int) -> ResponseReturnValue:
    """A run as an archive: the recipe with its files, and the results of its steps."""
    return archive_response(RECIPE, recipe_id, archive_of)


@blueprint.get("/recipes/<int:recipe_id>/sweep.csv")
def export_sweep(recipe_id: int) -> ResponseReturnValue:
    """The figures of a run's sweep as CSV."""
    columns, cells = in_worker_thread(db.engine, _sweep_table, recipe_id)
    return download(to_csv(columns, cells, **csv_flags(request.args)), f"sweep-{recipe_id}.csv", "text/csv")


def _sweep_table(session: Session, number: int) -> tuple[Sequence[Column], Sequence[TableCell]]:
    row = RECIPE.get(session, number)
    return sweep_rows(results_of(row, lines_of(session, row)))


add_address("recipe side by side", lambda number: url_for("admin.side_by_side_page", recipe=number))
add_address("recipe archive", lambda number: url_for("admin.export_recipe", recipe_id=number))
register_pages(
    RECIPE,
    JobPages(
        lazy_gettext("Recipes"),
        "recipes",
        "recipe_id",
        below="campaigns",
        template="admin/recipe.html",
        fields=_recipe_page_fields,
    ),
    new=[("admin.new_recipe", lazy_gettext("New recipe run"))],
    about=lazy_gettext(
        "A recipe is a file of steps that describes a whole experiment: rounds, datasets, trainings, evaluations, "
        "benchmarks, societies, and tables of the results. None has been run yet."
    ),
    first=lazy_gettext("Start the first run"),
    command="flask recipe run FILE",
)
