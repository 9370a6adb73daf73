"""Matches as a log for the viewer of Inspect, streamed as it is read."""

from collections.abc import Iterator

from flask import Response, request

from app.analysis.inspect_log import FORMS, inspect_log
from app.core.errors import NotFound, either
from app.core.extensions import db, reading
from app.matches.filter import read_choice
from app.web.admin.blueprint import blueprint
from app.web.downloads import download


@blueprint.get("/export/inspect.<form>")
def download_inspect_log(form: str) -> Response:
    """The chosen matches as a log for the viewer of Inspect, as `flask export inspect` writes it.

    Raises NotFound for another form or if no match is chosen, Invalid for matches of several games.
    """
    if form not in FORMS:
        raise NotFound("export", expected=either(f"inspect.{each}" for each in FORMS), got=f"inspect.{form}")
    choice, engine = read_choice(request.args), db.engine
    with reading() as session:
        inspect_log(session, choice, form)  # so that it refuses before the download begins

    def pieces() -> Iterator[bytes]:
        with reading(engine) as session:
            yield from inspect_log(session, choice, form)

    return download(pieces(), f"inspect.{form}", "application/zip" if form == "eval" else "application/json")
