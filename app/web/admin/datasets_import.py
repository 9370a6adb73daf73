"""Importing datasets: the form with the formats, and the reading of the file."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import BinaryIO, cast

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy import Engine

from app.core.errors import AppError, Invalid, Phrase, check_name
from app.core.extensions import db, reading
from app.datasets import register, row_import
from app.datasets.import_tally import RefusedRow
from app.datasets.importers.training_rows import FORMATS
from app.datasets.row_files import too_large
from app.datasets.row_import import ReadImport, RowImport
from app.web.admin.blueprint import blueprint
from app.web.admin.rounds_scores import in_thread
from app.web.body_limits import TooLarge, refused_body
from app.web.form_writes import write
from app.web.forms import RefusedField
from app.web.seats import settings

SHOWN = 50  # bad rows on the page
_DEFAULTS = {"format": "parlor", "name": "", "skip_bad": ""}


def refuse_upload() -> ResponseReturnValue | None:
    """Show the form again where a signed-in experimenter sends a file that is larger than the setting says."""
    if request.endpoint != "admin.import_dataset" or not isinstance(refused_body(), TooLarge):
        return None
    return (_import_form(_DEFAULTS, too_large(_most())), 413) if current_user.is_authenticated else None


@blueprint.get("/datasets/import")
def new_import() -> str:
    """The form."""
    return _import_form(_DEFAULTS)


@blueprint.post("/datasets/import")
def import_dataset() -> ResponseReturnValue:
    """Make a dataset of a file and show it, or say why it cannot be."""
    form = {name: request.form.get(name, "").strip() for name in _DEFAULTS}
    file, home = request.files.get("file"), settings().home
    refused: Sequence[RefusedRow] = ()
    try:
        if file is None or not file.filename:
            raise Invalid("file", expected=Phrase("a file of rows"), got=Phrase("none"))
        file_name = PureWindowsPath(file.filename).name[:200]  # some browsers send the folder as well
        wanted = RowImport(cast(BinaryIO, file.stream), file_name, form["format"], bool(form["skip_bad"]), _most())
        name = form["name"] or row_import.default_name(file_name)
        check_name("name", name)
        found = in_thread(db.engine, lambda own: _read_rows(own, home, wanted))
        if found.dataset_id is not None:
            return redirect(url_for("admin.dataset_page", dataset_id=found.dataset_id, imported="before"), 303)
        refused = found.tally.refused[:SHOWN]
        if found.draft is None:
            raise row_import.refusal(wanted, found.tally)
        number = register.save(write, found.draft, name)
    except AppError as error:
        return _import_form(form, error, refused), error.status
    return redirect(url_for("admin.dataset_page", dataset_id=number), 303)


def _most() -> int:
    """Bytes of a file, at most."""
    return int(settings().DATASET_UPLOAD_MB * 1e6)


def _read_rows(engine: Engine, home: Path, wanted: RowImport) -> ReadImport:
    with reading(engine) as session:
        return row_import.read_import(session, home, wanted)


def _import_form(form: Mapping[str, str], error: AppError | None = None, rows: Sequence[RefusedRow] = ()) -> str:
    return render_template(
        "admin/dataset-import.html",
        form=form,
        refused=None if error is None else RefusedField(error.field or "file", error),
        rows=rows,
        formats=FORMATS.values(),
        most=_most(),
    )
