"""Studies: their designs, versions and waves, a wave's people with their ids, and the archive of the data."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flask import Response
from sqlalchemy.orm import Session

from app.accounts.tokens import PEOPLE, READ, refuse_without
from app.api.changes import Change, ChangeRequest
from app.api.lists import as_json, list_page, list_query, list_schema, usual_columns
from app.api.operations import holder, json_answer, json_body, operation
from app.api.specs import refuse_fields
from app.core.errors import NotFound
from app.core.extensions import db
from app.core.lists import Listing
from app.core.validation import Schema
from app.games.base import JSON
from app.jobs.kind import LARGEST
from app.models import Enrolment, Study, StudyVersion, Wave
from app.studies.export.archive import note_ids
from app.studies.export.people import IDS, ids
from app.studies.export.scope import ExportScope, find_scope
from app.studies.listing import STUDIES, VERSIONS, WAVES
from app.studies.monitor import people
from app.studies.store import newest_version, written_design
from app.web.downloads import download, pieces_of
from app.web.study_archive import study_archive
from app.web.threads import in_worker_thread

_IDS = ("participant", "enrolment_id")  # columns that identify people, though not by their recruiter's ids
_NAME: Schema = {"type": "string", "description": "Only that of this name."}
_FLAG: Schema = {"type": "string", "enum": ["0", "1"]}
_ARCHIVE: Mapping[str, Schema] = {
    "wave": {"type": "string", "description": "Only the wave of this name."},
    "public": {**_FLAG, "description": "1: leave out what people wrote in their own words."},
    "guard": {**_FLAG, "description": "1: keep spreadsheets from running text and rounding seeds."},
    "bom": {**_FLAG, "description": "1: begin tables with a byte order mark, by which Excel knows UTF-8."},
}


@operation("GET", "/studies", scope=READ, query={**list_query(STUDIES), "name": _NAME}, answer=list_schema(STUDIES))
def list_studies(query: Mapping[str, Any]) -> Response:
    """The studies, most recently loaded first."""
    found: Response = list_page(STUDIES, query, [Study.name == query["name"]] if "name" in query else [])
    return found


@operation(
    "GET",
    "/studies/<int:number>",
    scope=READ,
    answer={
        "type": "object",
        "required": ["study_id", "study", "design", "versions", "waves"],
        "properties": {
            "study_id": {"type": "integer"},
            "study": {"type": "string"},
            "design": {"type": "object", "description": "The newest version as its author wrote it."},
            "versions": list_schema(VERSIONS)["properties"]["items"],
            "waves": list_schema(WAVES)["properties"]["items"],
        },
    },
)
def show_study(number: int) -> Response:
    """One study: its design, its versions and its waves, the latest first"""

    def read(session: Session) -> JSON:
        row = session.get(Study, number) if number <= LARGEST else None
        newest = None if row is None else newest_version(session, row.id)
        if row is None or newest is None:
            raise NotFound("study", expected="the number of one that exists", got=number)
        return {
            "study_id": row.id,
            "study": row.name,
            "design": written_design(newest),
            "versions": _matching_lines(session, VERSIONS, StudyVersion.study_id == number),
            "waves": _matching_lines(session, WAVES, Wave.study_id == number),
        }

    return json_answer(in_worker_thread(db.engine, read))


@operation(
    "GET",
    "/studies/<int:number>/data.zip",
    scope=READ,
    query=_ARCHIVE,
    answer={"type": "string", "format": "binary"},
    answer_type="application/zip",
)
def export_study(number: int, query: Mapping[str, Any]) -> Response:
    """A study's data of people, with the scope people: byte for byte as `flask study export-data` writes it.

    All waves, or one of them. It never holds the recruiter's ids.
    """
    refuse_without(holder(), PEOPLE)

    def name_of(session: Session) -> str:
        row = session.get(Study, number) if number <= LARGEST else None
        if row is None:
            raise NotFound("study", expected="the number of one that exists", got=number)
        return row.name

    name = in_worker_thread(db.engine, name_of)
    reference = f"{name}:{query['wave']}" if "wave" in query else name
    options = {flag: query.get(flag) == "1" for flag in ("public", "guard", "bom")}
    file = study_archive(reference, **options)
    return download(pieces_of(file), f"{reference.replace(':', '-')}.zip", "application/zip")


@operation(
    "GET",
    "/waves/<int:number>/people",
    scope=READ,
    query=list_query(people.PEOPLE),
    answer=list_schema(people.PEOPLE),
)
def list_people(number: int, query: Mapping[str, Any]) -> Response:
    """The people of a wave: their progress, their arm, and their payment; their ids with the scope people."""
    listing = people.PEOPLE
    if PEOPLE not in holder().scopes:
        columns = [column for column in listing.columns if column.name not in _IDS]
        listing = replace(listing, columns=columns)

    def check(session: Session) -> None:
        if number > LARGEST or session.get(Wave, number) is None:
            raise NotFound("wave", expected="the number of one that exists", got=number)

    in_worker_thread(db.engine, check)
    found: Response = list_page(listing, query, [Enrolment.wave_id == number])
    return found


@operation(
    "POST",
    "/waves/<int:number>/ids",
    scope=READ,
    answer={
        "type": "object",
        "required": ["items"],
        "properties": {
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": [column.name for column in IDS],
                    "properties": {
                        column.name: {"type": ["string", "null"], "description": column.meaning} for column in IDS
                    },
                },
            }
        },
    },
)
def take_ids(number: int) -> Response:
    """The recruiter's ids for the people of a wave and their visits, with the scope people.

    It is the content of `ids.csv` from `flask study export-data --with-ids`, and the wave's log records who took it.
    """
    refuse_without(holder(), PEOPLE)
    refuse_fields(json_body(needed=False), ())
    by = holder().user

    def note(session: Session) -> Change:
        note_ids(session, _scope_of(session, number), by)
        return Change({}, f"ids of wave {number}")  # names nobody, because answers to a key are kept

    ChangeRequest({}).make(note)

    def read(session: Session) -> list[JSON]:
        table = ids(_scope_of(session, number))
        return [{each.name: each.read(row) for each in table.columns} for row in session.execute(table.statement)]

    return json_answer({"items": in_worker_thread(db.engine, read)})


def _scope_of(session: Session, number: int) -> ExportScope:
    """The wave of that number, as an export scope. Raises NotFound."""
    wave = session.get(Wave, number) if number <= LARGEST else None
    if wave is None:
        raise NotFound("wave", expected="the number of one that exists", got=number)
    return find_scope(session, f"{session.get_one(Study, wave.study_id).name}:{wave.name}")


def _matching_lines(session: Session, listing: Listing[Any], condition: Any) -> list[JSON]:
    """All lines of a list that meet the condition."""
    rows = listing.read(session, listing.order(""), where=[condition]).rows
    return as_json(listing.values(session, usual_columns(listing), listing.items(session, rows)))
