"""How an operation of the API is declared, in one place: its route, input, output, and the scope it needs.

`openapi.py` builds the description of all operations from these.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from inspect import getdoc
from typing import Any, TypeVar

from flask import Blueprint, Response, g, request
from flask.sansio.blueprints import BlueprintSetupState
from flask.typing import ResponseReturnValue
from werkzeug.routing import BaseConverter, ValidationError

from app.accounts.tokens import TokenHolder, refuse_without
from app.core.errors import FieldError, Invalid, Verbatim, either, shown
from app.core.validation import Schema, is_storable, read_value
from app.games.base import JSON
from app.job_kinds import JOB_KINDS
from app.jobs.kind import JobKind
from app.web.errors import API

JSON_TYPE = "application/json"
_BEARER = "Bearer "
_MOST_DIGITS, _MOST_SHOWN = 1000, 60
F = TypeVar("F", bound=Callable[..., ResponseReturnValue])
KIND = "<job_kind:kind>"  # in a rule: the plural of a kind of job
blueprint = Blueprint("api_v1", __name__, url_prefix=API)


class JobKindConverter(BaseConverter):
    """A part of an address that is the plural of a kind of job."""

    def to_python(self, value: str) -> JobKind[Any]:
        """The kind with that plural; an address with any other text is not found."""
        for kind in JOB_KINDS:
            if kind.plural == value:
                return kind
        raise ValidationError

    def to_url(self, value: JobKind[Any]) -> str:
        """The plural of a kind."""
        return value.plural


@blueprint.record_once
def _know_kinds(state: BlueprintSetupState) -> None:
    state.app.url_map.converters["job_kind"] = JobKindConverter


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A method of an address.

    rule: the address below `/api/v1`, in Flask's form. scope: the scope that a token needs; None: no token is needed.
    parts: the schemas of address parts that are not just numbers or text. query: its parameters by name. answer: the
    schema of its answer with `status`; text if it is not JSON. body: the schema of the JSON that it takes. kinds: which
    kinds of job have it, if it is for every kind; `answer` and `body` then depend on the kind. headers: those that it
    reads besides Authorization. empty: when it answers nothing, with 204.
    """

    name: str
    method: str
    rule: str
    summary: str
    scope: str | None
    status: int = 200
    parts: Mapping[str, Schema] = field(default_factory=dict)
    query: Mapping[str, Schema] = field(default_factory=dict)
    answer: Schema | Callable[[JobKind[Any]], Schema]
    answer_type: str = JSON_TYPE
    body: Schema | Callable[[JobKind[Any]], Schema] | None = None
    kinds: Callable[[JobKind[Any]], bool] | None = None
    headers: Sequence[str] = ()
    empty: str | None = None
    details: str = ""


OPERATIONS: list[Operation] = []


class WrongType(FieldError):
    """A body of a type that its address does not take."""

    code = "unsupported_media_type"
    status = 415


def operation(
    method: str, rule: str, *, scope: str | None, answer: Schema | Callable[[JobKind[Any]], Schema], **said: Any
) -> Callable[[F], F]:
    """Declare a function as the handler of an address's method; its docstring is the summary and details.

    It is called with the parts of the address, and with `query` if there are parameters. Raises MissingScope when a
    token may not use it, and Invalid for unknown parameters.
    """

    def declare(function: F) -> F:
        summary, _, details = (getdoc(function) or "").partition("\n\n")
        found = Operation(
            name=function.__name__,
            method=method,
            rule=rule,
            summary=summary.removesuffix("."),
            details=" ".join(details.split()),
            scope=scope,
            answer=answer,
            **said,
        )
        OPERATIONS.append(found)

        @wraps(function)
        def call(**parts: Any) -> ResponseReturnValue:
            if found.scope is not None:
                refuse_without(holder(), found.scope)
            given = _read_query(found.query)
            return function(**parts, **({"query": given} if found.query else {}))

        blueprint.add_url_rule(rule, function.__name__, call, methods=[method])
        return function

    return declare


def methods_at(path: str) -> list[str]:
    """The methods that an address of the API takes; none for an unknown address."""
    found = {
        each.method
        for each in OPERATIONS
        for kind in ([None] if each.kinds is None else filter(each.kinds, JOB_KINDS))
        if _pattern(each, kind).fullmatch(path)
    }
    return sorted({*found, *(["HEAD"] if "GET" in found else []), *(["OPTIONS"] if found else [])})


def _pattern(each: Operation, kind: JobKind[Any] | None) -> re.Pattern[str]:
    """A pattern that matches the addresses of an operation."""
    rule = API + (each.rule if kind is None else each.rule.replace(KIND, kind.plural))
    parts = re.split(r"<(\w+:)?\w+>", rule)  # the text between the variables of an address, and their converters
    return re.compile(
        "".join(
            re.escape(text) if place % 2 == 0 else r"\d+" if text == "int:" else "[^/]+"
            for place, text in enumerate(parts)
        )
    )


def holder() -> TokenHolder:
    """The holder of this request's token."""
    found: TokenHolder = g.token_holder
    return found


def secret() -> str:
    """The token of this request; empty without one."""
    given = request.headers.get("Authorization", "")
    return given.removeprefix(_BEARER).strip() if given.startswith(_BEARER) else ""


def json_answer(value: Any, status: int = 200) -> Response:
    """An answer with a value as compact JSON."""
    return json_answer_of(as_text(value), status)


def json_answer_of(text: str, status: int = 200) -> Response:
    """An answer with JSON that is already text."""
    return Response(f"{text}\n", status, mimetype=JSON_TYPE)


def as_text(value: Any) -> str:
    """A value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_body(*, needed: bool = True) -> JSON:
    """The JSON object sent; empty if there is no body and none is `needed`. Raises WrongType, Invalid."""
    if not request.data and not needed:
        return {}
    if not request.is_json:
        raise WrongType("Content-Type", expected=JSON_TYPE, got=_shortened(request.mimetype))
    if coding := request.headers.get("Content-Encoding"):
        raise WrongType("Content-Encoding", expected="none", got=_shortened(coding))
    try:
        body = json.loads(
            request.data, parse_constant=_refuse_constant, parse_int=_whole_number, object_pairs_hook=_each_once
        )
    except (ValueError, RecursionError) as error:
        raise Invalid("body", expected="a JSON object", got=Verbatim(_json_error_text(error))) from None
    if not isinstance(body, dict):
        raise Invalid("body", expected="a JSON object", got=body)
    _refuse_unstorable(body)
    return body


def _refuse_unstorable(value: Any) -> None:
    """Raises Invalid for a text that no database can store."""
    if isinstance(value, str) and not is_storable(value):
        raise Invalid("body", expected="texts without NUL and halves of characters", got=value)
    for each in (
        [*value.keys(), *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        _refuse_unstorable(each)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name}, which is no JSON")


def _whole_number(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _each_once(pairs: Sequence[tuple[str, Any]]) -> JSON:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for place, (name, _) in enumerate(pairs) if name in dict(pairs[:place]))
        raise ValueError(f"the field {shown(twice)} twice")
    return found


def _shortened(text: str) -> Verbatim:
    return Verbatim(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…") if text else Verbatim("none")


def _json_error_text(error: Exception) -> str:
    return "one nested too deeply" if isinstance(error, RecursionError) else str(error)


def _read_query(known: Mapping[str, Schema]) -> dict[str, Any]:
    """The parameters of this request, without those not given. Raises Invalid."""
    if (unknown := next((name for name in request.args if name not in known), None)) is not None:
        expected = either(known) if known else "no parameters"
        raise Invalid("query", expected=expected, got=unknown)
    if (twice := next((name for name, texts in request.args.lists() if len(texts) > 1), None)) is not None:
        raise Invalid(twice, expected="one value", got=Verbatim(str(len(request.args.getlist(twice)))))
    given = {name: text for name, text in request.args.items() if text != ""}
    if (unstorable := next((name for name, text in given.items() if not is_storable(text)), None)) is not None:
        raise Invalid(unstorable, expected="text without NUL", got=given[unstorable])
    return {name: read_value(known[name], text, name) for name, text in given.items()}
