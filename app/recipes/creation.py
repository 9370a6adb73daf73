"""How runs of recipes come of a spec, and of the file with the recipe."""

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
from app.recipes.loaded_recipe import load_written
from app.recipes.spec import RecipeSpec


def prepare(session: Session, request: JobRequest[Any]) -> NewRun:
    """The run with all that its steps name, which may take a second. Raises AppError."""
    written = request.files["recipe"]
    if written is None:
        raise Invalid("recipe", expected=Phrase("the text of a recipe"), got=Phrase("none"))
    try:
        loaded = load_written(written, request.spec.inputs, None if written.files is None else written.file)
    except FieldError as error:
        if not (error.field or "").startswith(SET):
            raise
        raise type(error)(f"inputs.{(error.field or '').removeprefix(SET)}", **error.parts) from None
    if (unused := next((name for name in written.files or () if name not in loaded.files), None)) is not None:
        raise Invalid("recipe.files", expected="only files that its steps name", got=unused)
    return lifecycle.prepare(session, loaded, request.spec)


def _create(
    session: Session, request: JobRequest[Any], *, queued: bool, requester: Requester | None
) -> Sequence[RecipeRun]:
    return [lifecycle.create(session, request.known, queued=queued, requester=requester)]


CREATION = JobCreation(spec=RecipeSpec, create=_create, prepare=prepare)
