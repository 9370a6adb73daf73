"""The OpenAPI 3.1 description of the API, built from operations, specs of jobs and the columns of lists.

Source: https://spec.openapis.org/oas/v3.1.1.html
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from flask import Response, request

from app import __version__
from app.accounts.tokens import PREFIX, SCOPES
from app.api.operations import JSON_TYPE, KIND, OPERATIONS, Operation, as_text, json_answer_of, operation
from app.core.validation import Schema, kinds_of
from app.games.base import JSON
from app.job_kinds import JOB_KINDS
from app.jobs.kind import LARGEST, JobKind
from app.web.errors import API

PART = re.compile(r"<(?:(\w+):)?(\w+)>")  # a rule's variable: its converter and name
_NUMBER: Schema = {"type": "integer", "minimum": 1, "maximum": LARGEST}
_TEXT: Schema = {"type": "string", "minLength": 1}
_HEADERS: Mapping[str, Schema] = {
    "Idempotency-Key": {
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "pattern": "^[!-~]+$",
        "description": "What comes again with the same key within a day is not done again, and has the same answer.",
    },
    "Last-Event-ID": {
        "type": "string",
        "pattern": "^[0-9a-f]{16}$",
        "description": "The id of the last event that has come: what it said is left out.",
    },
}
_ERROR: Schema = {
    "type": "object",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "field", "expected", "got", "remedy"],
            "additionalProperties": False,
            "properties": {
                "code": {"type": "string", "description": "For programs."},
                "message": {"type": "string", "description": "One line for people."},
                **{
                    name: {"type": ["string", "null"], "description": what}
                    for name, what in (
                        ("field", "The field at fault, by its path in the body or its name in the query."),
                        ("expected", "What was expected of it."),
                        ("got", "What came."),
                        ("remedy", "What to do."),
                    )
                },
            },
        }
    },
}


@operation("GET", "/openapi.json", scope=None, answer={"type": "object", "required": ["openapi", "paths"]})
def openapi() -> Response:
    """This description of the API, as OpenAPI 3.1"""
    response = json_answer_of(_description_text(tuple(JOB_KINDS)))
    response.headers["Cache-Control"] = "no-cache"  # may be cached, but is revalidated with its ETag
    response.add_etag()
    response.make_conditional(request)
    return response


@lru_cache(maxsize=1)
def _description_text(_kinds: tuple[JobKind[Any], ...]) -> str:
    """The description as it is sent, built once for the known kinds of job."""
    return as_text(document())


def document() -> JSON:
    """The description."""
    schemas: dict[str, Any] = {"Error": _ERROR}
    paths: dict[str, dict[str, Any]] = {}
    for each, kind in operations():
        paths.setdefault(path_of(each, kind), {})[each.method.lower()] = _operation_object(each, kind, schemas)
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "Parlor",
            "version": __version__,
            "description": "Jobs of every kind, what was played, models, datasets and studies, for programs.",
        },
        "servers": [{"url": API}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": f"A token begins with {PREFIX}; the account page and `flask token create` make one. "
                    + " ".join(f"With {name} it may {what}." for name, what in SCOPES.items()),
                }
            },
        },
    }


def operations() -> Iterator[tuple[Operation, JobKind[Any] | None]]:
    """All operations by address, with those for every kind of job once for each kind that has them."""
    for each in OPERATIONS:
        if each.kinds is None:
            yield each, None
    for kind in JOB_KINDS:
        for each in OPERATIONS:
            if each.kinds is not None and each.kinds(kind):
                yield each, kind


def path_of(each: Operation, kind: JobKind[Any] | None) -> str:
    """The address of an operation relative to the API's, with its parts in braces."""
    rule = each.rule if kind is None else each.rule.replace(KIND, kind.plural)
    return PART.sub(r"{\2}", rule)


def summary_of(each: Operation, kind: JobKind[Any] | None) -> str:
    """What an operation does."""
    return each.summary if kind is None else f"{kind.plural.capitalize()}: {each.summary}"


def _operation_object(each: Operation, kind: JobKind[Any] | None, schemas: dict[str, Any]) -> JSON:
    found: JSON = {
        "operationId": _id_of(each, kind),
        "tags": [kind.plural if kind is not None else each.rule.split("/")[1].partition(".")[0]],
        "summary": summary_of(each, kind),
        "parameters": [*_parameter_objects(each)],
        "responses": {
            str(each.status): {
                "description": each.summary,
                "content": {each.answer_type: {"schema": _schema(each.answer, kind)}},
            },
            "default": {
                "description": "It was refused.",
                "content": {JSON_TYPE: {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    if each.details:
        found["description"] = each.details
    if each.empty is not None:
        found["responses"]["204"] = {"description": each.empty}
    if each.body is not None:
        schema = dict(_schema(each.body, kind))
        schemas.update(schema.pop("$defs", {}))
        found["requestBody"] = {"required": bool(schema.get("required")), "content": {JSON_TYPE: {"schema": schema}}}
    found["security"] = [] if each.scope is None else [{"token": [each.scope]}]
    return found


def _parameter_objects(each: Operation) -> Iterator[JSON]:
    for converter, name in PART.findall(each.rule):
        if converter != "job_kind":
            schema = each.parts.get(name, _NUMBER if converter == "int" else _TEXT)
            yield {"name": name, "in": "path", "required": True, "schema": schema}
    for name, schema in each.query.items():
        yield {"name": name, "in": "query", **_of_query(schema)}
    for name in each.headers:
        schema = dict(_HEADERS[name])
        yield {"name": name, "in": "header", "description": schema.pop("description"), "schema": schema}


def _of_query(schema: Schema) -> JSON:
    """A query parameter, which is left out where a field would be null."""
    [kind] = kinds_of(schema)
    own = {name: value for name, value in kind.items() if name not in ("title", "description")}
    if schema.get("default") is None:
        own.pop("default", None)
    return {"description": schema.get("description", ""), "schema": own}


def _schema(of: Any, kind: JobKind[Any] | None) -> Schema:
    found: Schema = of(kind) if callable(of) else of
    return found


def _id_of(each: Operation, kind: JobKind[Any] | None) -> str:
    if kind is None:
        return each.name
    return each.name.replace("jobs", kind.plural).replace("job", kind.name)
