"""Create runs of recipes from a spec and the recipe's file."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.core.errors import FieldError, Invalid, Phrase
from app.jobs.creation import JobCreation, JobRequest
from app.jobs.kind import Requester
from app.models import RecipeRun
from app.recipes import lifecycle
from app.recipes.inputs import SET
from app.recipes.lifecycle import NewRun
from app.recipes.loaded_recipe import SWEPT, load_written
from app.recipes.spec import RecipeSpec


def prepare(session: Session, request: JobRequest[Any]) -> NewRun:
    """The run with all that its steps name, which may take a second. Raises AppError."""
    written = request.files["recipe"]
    if written is None:
        raise Invalid("recipe", expected=Phrase("the text of a recipe"), got=Phrase("none"))
    try:
        read_file = None if written.files is None else written.file
        loaded = load_written(written, request.spec.inputs, read_file, request.spec.swept)
        new = lifecycle.prepare(session, loaded, request.spec)
    except FieldError as error:
        raise error.of(_field_of(error.field) or "recipe") from None
    if (unused := next((name for name in written.files or () if name not in loaded.files), None)) is not None:
        raise Invalid("recipe.files", expected="only files that its steps name", got=unused)
    return new


def _field_of(option: str | None) -> str | None:
    """The spec's name for a field, from its name on the command line."""
    for begin, field in ((SET, "inputs."), (SWEPT, "sweep."), ("--", "")):
        if option is not None and option.startswith(begin):
            return field + option.removeprefix(begin)
    return option


def _create_recipe_run(
    session: Session, request: JobRequest[Any], *, queued: bool, requester: Requester | None
) -> Sequence[RecipeRun]:
    return [lifecycle.create(session, request.known, queued=queued, requester=requester)]


CREATION = JobCreation(spec=RecipeSpec, create=_create_recipe_run, prepare=prepare)
