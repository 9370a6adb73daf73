"""Runs of recipes: the list, and one run as it goes through its steps, with its tables."""

from collections.abc import Mapping
from typing import Any

from flask import url_for
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.jobs.listing import JobListItem
from app.recipes.export import archive_of
from app.recipes.job import RECIPE
from app.recipes.listing import shown_tables
from app.web.admin.archives import archive_response
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import JobPages, register_pages
from app.web.admin.lists import add_address


def _fields(session: Session, item: JobListItem) -> Mapping[str, Any]:
    return {"tables": shown_tables(session, item.row)}


@blueprint.get("/recipes/<int:recipe_id>/export.zip")
def export_recipe(recipe_id: int) -> ResponseReturnValue:
    """A run as an archive: the recipe with its files, and what its steps gave."""
    return archive_response(RECIPE, recipe_id, archive_of)


add_address("recipe archive", lambda number: url_for("admin.export_recipe", recipe_id=number))
register_pages(
    RECIPE,
    JobPages(lazy_gettext("Recipes"), "recipes", "recipe_id", below="campaigns", fields=_fields),
    new=[("admin.new_recipe", lazy_gettext("New recipe run"))],
    about=lazy_gettext(
        "A recipe is a file of steps that describes a whole experiment: rounds, datasets, trainings, evaluations,"
        " benchmarks, societies, and tables of what came of them. None was run yet."
    ),
    first=lazy_gettext("Start the first run"),
    command="flask recipe run FILE",
)
