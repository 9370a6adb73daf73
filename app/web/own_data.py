"""The file with everything about a person, downloaded by the private link of a study, or by a guest."""

import json

from flask import Response
from sqlalchemy import Engine
from sqlalchemy.pool import NullPool

from app.core.extensions import db, open_engine, reading
from app.models import Participant
from app.studies.own_data import own_data
from app.web.headers import never_stored
from app.web.threads import off_loop


def data_file(participant_id: int) -> Response:
    """A JSON file to keep. It is read off the event loop, because a person may have played for weeks."""
    content = off_loop(_own_data_json, db.engine, participant_id)
    response = Response(content, mimetype="application/json")
    response.headers["Content-Disposition"] = 'attachment; filename="my-data.json"'
    return never_stored(response)


def _own_data_json(engine: Engine, participant_id: int) -> str:
    own = open_engine(engine.url, poolclass=NullPool)
    with reading(own) as session:
        found = own_data(session, session.get_one(Participant, participant_id))
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"
