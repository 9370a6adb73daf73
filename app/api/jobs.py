"""Jobs of every kind in the registry: created from their specs, listed, shown, cancelled, resumed.

A kind in the registry appears here automatically. Its jobs are created by the same code as in its form and command.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from flask import Response
from sqlalchemy.orm import Session
from werkzeug.exceptions import MethodNotAllowed

from app.accounts.tokens import READ, RUN
from app.api.changes import HEADER, Change, ChangeAnswer, ChangeRequest
from app.api.lists import list_page, list_query, list_schema
from app.api.operations import KIND, holder, json_answer, json_body, operation
from app.api.specs import budget_schema, read_spec, refuse_fields, spec_schema
from app.core.errors import Invalid
from app.core.extensions import db
from app.core.lists import Listing
from app.core.validation import Schema
from app.games.base import JSON
from app.jobs.creation import JobCreation, creation_of
from app.jobs.kind import JobKind, Requester
from app.jobs.listing import list_of
from app.jobs.page import page_of
from app.jobs.spec import JobBudget
from app.jobs.tags import LONGEST_NOTE, LONGEST_TAG, add_note, add_tags, has_tag, remove_tags
from app.web.errors import API
from app.web.new_jobs import create, enqueue, prepared
from app.web.threads import in_worker_thread

STATE: Schema = {
    "type": "object",
    "required": ["id", "ids", "status", "url"],
    "properties": {
        "id": {"type": "integer"},
        "ids": {
            "type": "array",
            "items": {"type": "integer"},
            "description": "Of a cross-play those of all its rounds.",
        },
        "status": {"type": "string"},
        "url": {"type": "string"},
    },
}

_NAMES: Schema = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": LONGEST_TAG}}
_TAGS: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "add": {**_NAMES, "description": "Tags that it is to have as well."},
        "remove": {**_NAMES, "description": "Tags that are taken away first."},
        "note": {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_NOTE,
            "description": "A note, by whose token it is.",
        },
    },
}
_TAGGED: Schema = {
    "type": "object",
    "required": ["tags", "notes"],
    "properties": {
        "tags": {"type": "array", "items": {"type": "string"}},
        "notes": {"type": "array", "items": {"type": "object"}},
    },
}


def every(_kind: JobKind[Any]) -> bool:
    """All kinds."""
    return True


def id_name(kind: JobKind[Any]) -> str:
    """The name of a job's number in lists and descriptions."""
    return list_of(kind).columns[1].name


def whole_list(kind: JobKind[Any]) -> Listing[Any]:
    """The list of all jobs of a kind, even where a line of its page combines several."""
    listing = list_of(kind)
    return replace(listing, start=None, items=page_of(kind).items or listing.items)


def described(session: Session, kind: JobKind[Any], number: int) -> JSON:
    """The full description of a job. Raises NotFound."""
    [found] = page_of(kind).described(session, [kind.get(session, number)])
    return found


def job_schema(kind: JobKind[Any]) -> Schema:
    """The schema of one job."""
    required = [id_name(kind), "status", "error", "requested_by"]
    return {"type": "object", "required": required, "properties": {"status": {"type": "string"}}}


@operation(
    "GET",
    f"/{KIND}",
    scope=READ,
    kinds=every,
    query={**list_query(), "tag": {"type": "string", "description": "Only jobs that have this tag."}},
    answer=lambda kind: list_schema(list_of(kind)),
)
def list_jobs(kind: JobKind[Any], query: Mapping[str, Any]) -> Response:
    """The jobs of this kind, the latest first"""
    tag = query.get("tag")
    where = [has_tag(kind.table.id, kind.name, tag)] if tag else []
    found: Response = list_page(whole_list(kind), query, where)
    return found


@operation("GET", f"/{KIND}/<int:number>", scope=READ, kinds=every, answer=job_schema)
def show_job(kind: JobKind[Any], number: int) -> Response:
    """One job: its spec, its progress and its figures."""
    return json_answer(in_worker_thread(db.engine, lambda session: described(session, kind, number)))


@operation(
    "POST",
    f"/{KIND}",
    scope=RUN,
    kinds=lambda kind: creation_of(kind) is not None,
    body=spec_schema,
    answer=STATE,
    status=201,
    headers=(HEADER,),
)
def create_job(kind: JobKind[Any]) -> Response:
    """Create a job of this kind from its spec, for the workers"""
    body = json_body()
    attempt = ChangeRequest(body)
    creation = creation_of(kind)
    if creation is None:
        raise MethodNotAllowed(valid_methods=["GET"])
    made = attempt.made_before() or _create_jobs(kind, creation, attempt, body)
    response = made.response()
    response.headers["Location"] = made.answer["url"]
    return response


def _create_jobs(kind: JobKind[Any], creation: JobCreation[Any], attempt: ChangeRequest, body: JSON) -> ChangeAnswer:
    asked, found = prepared(kind, *read_spec(creation.spec, body)), holder()
    by = Requester(found.user_id, found.user)

    def work(session: Session) -> Change:
        return _change_of_jobs(session, kind, create(session, kind, asked, by), status=201)

    made = attempt.make(work)
    if made.new:
        enqueue(kind, made.answer["ids"])
    return made


@operation("POST", f"/{KIND}/<int:number>/cancel", scope=RUN, kinds=every, answer=STATE, headers=(HEADER,))
def cancel_job(kind: JobKind[Any], number: int) -> Response:
    """Stop a job; what it has already made is kept."""
    refuse_fields(json_body(needed=False), ())

    def work(session: Session) -> Change:
        return _change_of_jobs(session, kind, [kind.cancel(session, number).id])

    return ChangeRequest({}).make(work).response()


@operation(
    "POST",
    f"/{KIND}/<int:number>/tags",
    scope=RUN,
    kinds=every,
    body=_TAGS,
    answer=_TAGGED,
    headers=(HEADER,),
)
def change_tags(kind: JobKind[Any], number: int) -> Response:
    """Add tags to a job, remove tags, and add a note."""
    body = json_body()
    refuse_fields(body, tuple(_TAGS["properties"]))
    added, removed = _tags_in_field(body, "add"), _tags_in_field(body, "remove")
    if not isinstance(text := body.get("note", ""), str):
        raise Invalid("note", expected="a text", got=text)
    by = holder().user

    def work(session: Session) -> Change:
        kind.get(session, number)
        remove_tags(session, kind.name, number, removed)
        add_tags(session, kind.name, number, added, by)
        if "note" in body:
            add_note(session, kind.name, number, text, by)
        found = described(session, kind, number)
        return Change({"tags": found["tags"], "notes": found["notes"]}, str(kind.subject(number)))

    return ChangeRequest(body).make(work).response()


@operation(
    "POST",
    f"/{KIND}/<int:number>/resume",
    scope=RUN,
    kinds=every,
    body=budget_schema,
    answer=STATE,
    headers=(HEADER,),
)
def resume_job(kind: JobKind[Any], number: int) -> Response:
    """Resume a failed, cancelled or interrupted job; a kind that calls models takes a higher budget."""
    body = json_body(needed=False)
    refuse_fields(body, ("budget",) if kind.spends else ())
    given = body.get("budget")
    budget = JobBudget.read({} if given is None else given, "budget")

    def work(session: Session) -> Change:
        return _change_of_jobs(session, kind, [kind.resume(session, number, queued=True, budget=budget).id])

    made = ChangeRequest(body).make(work)
    if made.new:
        enqueue(kind, [number])
    return made.response()


def _tags_in_field(body: JSON, field: str) -> list[str]:
    """The tags in a field of a body. Raises Invalid."""
    names = body.get(field, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Invalid(field, expected="a list of texts", got=names)
    return names


def _change_of_jobs(session: Session, kind: JobKind[Any], numbers: Sequence[int], status: int = 200) -> Change:
    first = numbers[0]
    row = kind.get(session, first)
    answer = {
        "id": first,
        "ids": [*numbers],
        "status": kind.state_of(session, row),
        "url": f"{API}/{kind.plural}/{first}",
    }
    subjects = [str(kind.subject(number)) for number in numbers]
    return Change(answer, f"{subjects[0]} to {subjects[-1]}" if len(subjects) > 1 else subjects[0], status)
