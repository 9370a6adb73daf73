"""Runs of recipes: the list, and one run as it goes through its steps, with its tables."""

from collections.abc import Mapping
from typing import Any

from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.jobs.listing import JobListItem
from app.recipes.job import RECIPE
from app.recipes.listing import shown_tables
from app.web.admin.job_pages import JobPages, register_pages


def _fields(session: Session, item: JobListItem) -> Mapping[str, Any]:
    return {"tables": shown_tables(session, item.row)}


register_pages(
    RECIPE,
    JobPages(lazy_gettext("Recipes"), "recipes", "recipe_id", fields=_fields),
    new=[("admin.new_recipe", lazy_gettext("New recipe run"))],
    about=lazy_gettext(
        "A recipe is a file of steps that describes a whole experiment: rounds, datasets, trainings, evaluations,"
        " benchmarks, societies, and tables of what came of them. None was run yet."
    ),
    first=lazy_gettext("Start the first run"),
    command="flask recipe run FILE",
)
