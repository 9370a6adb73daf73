"""All data of a wave as an archive: what `flask study export-data` writes."""

from flask import Response, request

from app.core.extensions import reading
from app.studies.export.scope import find_scope
from app.studies.monitor.waves import wave_by_id
from app.web.admin.blueprint import blueprint
from app.web.downloads import download, pieces_of
from app.web.study_archive import study_archive


@blueprint.get("/studies/waves/<int:wave_id>/data.zip")
def wave_data(wave_id: int) -> Response:
    """Stream the archive without the recruiter's ids, guarded against formulas unless `guard=0`."""
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
    # Files from a page are opened in a spreadsheet; programs can request the tables unchanged.
    options = {"guard": request.args.get("guard") != "0", "bom": request.args.get("bom") == "1"}
    file = study_archive(reference, since_freeze=since_freeze, **options)
    return download(pieces_of(file), name, "application/zip")
