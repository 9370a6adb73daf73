"""The archive of a study's data as an open file, for pages and the API: what `flask study export-data` writes."""

import tempfile
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import Engine

from app.core.extensions import db, reading
from app.studies.export.archive import read_one_moment, write_archive
from app.studies.export.scope import find_scope
from app.web.threads import in_thread


def study_archive(
    reference: str, *, public: bool = False, since_freeze: bool = False, guard: bool = False, bom: bool = False
) -> BinaryIO:
    """The archive of `study` or `study:wave`, made in a real thread; the file is already unlinked.

    Raises NotFound for a missing study or wave, and Conflict if none is frozen for `since_freeze`.
    """

    def write(engine: Engine) -> BinaryIO:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.zip"
            with reading(engine) as session:
                read_one_moment(session)
                scope = find_scope(session, reference, public=public, since_freeze=since_freeze)
                write_archive(session, scope, path, guard=guard, bom=bom)
            return path.open("rb")

    found: BinaryIO = in_thread(db.engine, write)
    return found
