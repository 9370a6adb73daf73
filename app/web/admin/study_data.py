"""All data of a wave as an archive: what `flask study export-data` writes."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from flask import Response, request
from sqlalchemy import Engine

from app.core.extensions import db, reading
from app.studies.export.archive import read_one_moment, write_archive
from app.studies.export.scope import find_scope
from app.studies.monitor.waves import wave_by_id
from app.web.admin.blueprint import blueprint
from app.web.downloads import download, pieces_of
from app.web.threads import in_thread


@blueprint.get("/studies/waves/<int:wave_id>/data.zip")
def wave_data(wave_id: int) -> Response:
    """The archive without the recruiter's ids, guarded against formulas unless `guard=0`; as it is read, it is sent."""
    return _download(wave_id, since_freeze=False)


@blueprint.get("/studies/waves/<int:wave_id>/since-freeze.zip")
def wave_data_since_freeze(wave_id: int) -> Response:
    """The archive of what came after the freeze. Raises Conflict for a wave that is not frozen."""
    return _download(wave_id, since_freeze=True)


def _download(wave_id: int, *, since_freeze: bool) -> Response:
    with reading() as session:
        found = wave_by_id(session, wave_id)
        reference, name = f"{found.study.name}:{found.wave.name}", f"{found.study.name}-{found.wave.name}"
        find_scope(session, reference, since_freeze=since_freeze)
    name = f"{name}-since-freeze.zip" if since_freeze else f"{name}.zip"
    # Whoever opens a page's file does so in a spreadsheet; programs can ask for the tables as they are.
    options = {"guard": request.args.get("guard") != "0", "bom": request.args.get("bom") == "1"}
    file = in_thread(db.engine, lambda own: _archive(own, reference, options, since_freeze=since_freeze))
    return download(pieces_of(file), name, "application/zip")


def _archive(engine: Engine, reference: str, options: Mapping[str, bool], *, since_freeze: bool) -> BinaryIO:
    """The archive as an open file that has no name any more."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.zip"
        with reading(engine) as session:
            read_one_moment(session)
            write_archive(session, find_scope(session, reference, since_freeze=since_freeze), path, **options)
        return path.open("rb")
