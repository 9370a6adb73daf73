"""Importing datasets: what the form has beyond the spec, and how the file is read."""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, cast

from flask import request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext, lazy_gettext
from flask_login import current_user
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase
from app.core.extensions import db, reading
from app.datasets import row_import
from app.datasets.import_tally import RefusedRow
from app.datasets.importers.spec import DatasetImportSpec
from app.datasets.row_files import too_large
from app.datasets.row_import import ReadImport, RowImport
from app.games.base import JSON
from app.jobs.spec import fields_of
from app.web.admin.blueprint import blueprint
from app.web.admin.spec_form import Form, most_uploaded
from app.web.admin.spec_page import Asked, FormWords, Link, SpecPage
from app.web.body_limits import TooLarge, refused_body
from app.web.form_writes import write
from app.web.forms import RefusedField
from app.web.seats import settings
from app.web.threads import in_thread

SHOWN = 50  # bad rows on the page


class _RefusedRows(RefusedField):
    """A file refused because of bad rows; holds the first of them."""

    def __init__(self, error: Invalid, rows: Sequence[RefusedRow]) -> None:
        super().__init__("file", error)
        self.rows = rows[:SHOWN]


class DatasetImportPage(SpecPage[DatasetImportSpec]):
    """The form for importing a dataset."""

    spec = DatasetImportSpec
    words = FormWords(
        title=lazy_gettext("Import a dataset"),
        intro=lazy_gettext("Rows that were made elsewhere, for a model to learn from."),
        start=lazy_gettext("Import the dataset"),
        back=lazy_gettext("Back to the datasets"),
    )
    template = "admin/dataset-import.html"
    field = "file"

    def listed(self) -> Link:
        return Link(gettext("Datasets"), url_for("admin.datasets"))

    def action(self) -> str:
        return url_for("admin.import_dataset")

    def suggested(self, _session: Session, given: JSON) -> JSON:
        return {"format": "parlor", **given}

    def read(self, session: Session, form: Form) -> Asked[DatasetImportSpec]:
        if not form["file"]:
            raise Invalid("file", expected=Phrase("a file of rows"), got=Phrase("none"))
        return super().read(session, form)

    def make(self, asked: Asked[DatasetImportSpec]) -> str:
        """Read the file in a thread, from the disk, where the server has put it."""
        wanted = RowImport(cast(BinaryIO, request.files["file"].stream), asked.spec, _most())
        home = settings().home
        found = in_thread(db.engine, lambda own: _read_rows(own, home, wanted))
        try:
            number = row_import.register_read(write, wanted, found)
        except Invalid as error:
            raise _RefusedRows(error, found.tally.refused) from None
        before = None if found.dataset_id is None else "before"
        return url_for("admin.dataset_page", dataset_id=number, imported=before)


def _most() -> int:
    return most_uploaded(fields_of(DatasetImportSpec)["file"])


def _read_rows(engine: Engine, home: Path, wanted: RowImport) -> ReadImport:
    with reading(engine) as session:
        return row_import.read_import(session, home, wanted)


def refuse_upload() -> ResponseReturnValue | None:
    """Show the form again if a signed-in experimenter sends a file larger than the setting allows."""
    if request.endpoint != "admin.import_dataset" or not isinstance(refused_body(), TooLarge):
        return None
    return (_PAGE.refused(too_large(_most())), 413) if current_user.is_authenticated else None


_PAGE = DatasetImportPage()
blueprint.add_url_rule("/datasets/import", "new_import", _PAGE.begin, methods=["GET"])
blueprint.add_url_rule("/datasets/import", "import_dataset", _PAGE.start, methods=["POST"])
