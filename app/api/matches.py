"""Matches: selected by the common filter, paged by cursor, shown with their log; CSV exports; and codings."""

import json
from collections.abc import Mapping
from typing import Any

from flask import Response
from sqlalchemy.orm import Session

from app.accounts.tokens import READ
from app.api.cursors import PAGING, USUAL, cursor_of, place_in, refused
from app.api.lists import list_page, list_query, list_schema, page_schema, time_as_text
from app.api.operations import json_answer, operation
from app.api.specs import plain_schema
from app.core.csv_tables import Column
from app.core.errors import NotFound
from app.core.extensions import db
from app.core.validation import Schema, is_storable
from app.games.base import JSON
from app.jobs.spec import fields_of
from app.matches.arrival import Place, arrivals
from app.matches.blinding import blinded_conditions
from app.matches.choice import MatchChoice
from app.matches.coding_list import LIST as CODINGS
from app.matches.coding_list import coding_json
from app.matches.codings import find_coding
from app.matches.export import EVENTS, MATCHES, TABLES, rows
from app.matches.filter import NAMES, MatchFilter, check_known, read_choice
from app.models import MatchRow
from app.web.csv_exports import CODEBOOK, FLAGS, csv_download
from app.web.threads import in_worker_thread

_ROUND: Schema = {"type": "integer", "minimum": 1, "description": "Only this round, by its number."}
FILTER: Mapping[str, Schema] = {
    name: _ROUND if name == "round" else plain_schema(fields_of(MatchChoice)[name]) for name in NAMES
}
_TYPES: Mapping[str, Schema] = {
    "text": {"type": ["string", "integer", "null"]},
    "json": {},
    "integer": {"type": ["integer", "string", "null"]},
    "number": {"type": ["number", "null"]},
    "boolean": {"type": ["boolean", "null"]},
    "time": {"type": ["string", "null"], "format": "date-time"},
}


def _schema_of(columns: tuple[Column, ...]) -> Schema:
    described = {each.name: {**_TYPES[each.type], "description": each.meaning} for each in columns}
    return {"type": "object", "required": [*described], "properties": described}


MATCH = _schema_of(MATCHES.columns)
WITH_LOG: Schema = {
    **MATCH,
    "required": [*MATCH["required"], "events"],
    "properties": {**MATCH["properties"], "events": {"type": "array", "items": _schema_of(EVENTS.columns)}},
}


@operation("GET", "/matches", scope=READ, query={**PAGING, **FILTER}, answer=page_schema(MATCH))
def list_matches(query: Mapping[str, Any]) -> Response:
    """Matches that a filter selects, in the order in which they arrived.

    Continue with `next` at any time, also after the last page: no match is left out or repeated, whatever is written
    meanwhile. A match is checked against the filter when its place in the order is read.
    """
    choice, after = _match_filter(query), _place_of_cursor(query)

    def read(session: Session) -> tuple[list[JSON], Place | None, bool]:
        check_known(session, choice)
        found = arrivals(session, blinded_conditions(choice), after, query.get("limit", USUAL))
        statement = MATCHES.statement.where(MatchRow.id.in_(found.ids))
        lines = {row.id: _as_json(MATCHES.columns, row) for row in session.execute(statement)}
        return [lines[each] for each in found.ids], found.place, found.more

    items, place, more = in_worker_thread(db.engine, read)
    cursor = None if place is None else cursor_of(json.dumps(place), query)
    return json_answer({"items": items, "next": cursor, "more": more})


@operation("GET", "/matches/<match_id>", scope=READ, answer=WITH_LOG)
def show_match(match_id: str) -> Response:
    """One match with the events of its log"""
    choice = MatchFilter(match=match_id)

    def read(session: Session) -> JSON:
        found = next(rows(session, MATCHES, choice), None) if is_storable(match_id) else None
        if found is None:
            raise NotFound("match", expected="the id of one that exists", got=match_id)
        log = [_as_json(EVENTS.columns, row) for row in rows(session, EVENTS, choice)]
        return {**_as_json(MATCHES.columns, found), "events": log}

    return json_answer(in_worker_thread(db.engine, read))


_FLAG: Schema = {"type": "string", "enum": ["0", "1"]}
_FLAGS: Mapping[str, Schema] = {
    "guard": {**_FLAG, "description": "1: keep spreadsheets from running text and rounding seeds."},
    "bom": {**_FLAG, "description": "1: begin with a byte order mark, by which Excel knows UTF-8."},
}


@operation(
    "GET",
    "/exports/<name>.csv",
    scope=READ,
    parts={"name": {"type": "string", "enum": [*TABLES, CODEBOOK]}},
    query={**{name: _FLAGS[name] for name in FLAGS}, **FILTER},
    answer={"type": "string"},
    answer_type="text/csv",
)
def export_table(name: str, query: Mapping[str, Any]) -> Response:
    """What was played as CSV, byte for byte as `flask export` writes it, sent while it is read."""
    return csv_download(name, {field: str(value) for field, value in query.items()})


def _match_filter(query: Mapping[str, Any]) -> MatchFilter:
    return read_choice({name: str(query[name]) for name in NAMES if name in query})


def _place_of_cursor(query: Mapping[str, Any]) -> Place | None:
    if not (place := place_in(query)):
        return None
    try:
        transaction, match_id = json.loads(place)
        if type(transaction) is not int or not isinstance(match_id, str) or not 0 <= transaction < 2**63:
            raise ValueError(place)
    except (ValueError, TypeError):
        raise refused(query["cursor"]) from None
    return Place(transaction, match_id)


def _as_json(columns: tuple[Column, ...], row: Any) -> JSON:
    return {column.name: time_as_text(column.read(row)) for column in columns}


@operation("GET", "/codings", scope=READ, query=list_query(CODINGS), answer=list_schema(CODINGS))
def list_codings(query: Mapping[str, Any]) -> Response:
    """The codings, the latest first"""
    found: Response = list_page(CODINGS, query)
    return found


@operation(
    "GET",
    "/codings/<int:number>",
    scope=READ,
    answer={"type": "object", "required": ["coding_id", "name", "codes", "coders", "matches", "given"]},
)
def show_coding(number: int) -> Response:
    """One coding: its codes, coders and matches, and the codes given, which are null until all coders are done."""
    return json_answer(in_worker_thread(db.engine, lambda session: coding_json(session, find_coding(session, number))))
