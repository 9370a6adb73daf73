"""Jobs as archives for download."""

from collections.abc import Callable
from typing import Any

from flask import Response
from sqlalchemy.orm import Session

from app.core.extensions import db, reading
from app.jobs.kind import JobKind
from app.web.threads import in_worker_thread


def archive_response(kind: JobKind[Any], number: int, archive_of: Callable[[Session, Any], bytes]) -> Response:
    """The zip archive of a job, named after it, built off the event loop. Raises NotFound."""
    with reading() as session:
        name = kind.get(session, number).name
    content = in_worker_thread(db.engine, lambda session: archive_of(session, kind.get(session, number)))
    named = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    return Response(content, mimetype="application/zip", headers=named)
