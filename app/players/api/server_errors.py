"""Interpret a server's error by its status, codes and words: whether to ask again, and how. Pure."""

import json
import re
from typing import Any, NamedTuple

from app.core.failures import Outcome
from app.players.api.answers import mapping

TOKEN_FIELDS = ("max_tokens", "max_completion_tokens")
SAMPLING_FIELDS = ("temperature", "top_p", "seed")  # which a request can do without
FORMAT_FIELD = "response_format"  # likewise
REFUSABLE_FIELDS = (*SAMPLING_FIELDS, FORMAT_FIELD)
_TRY_AGAIN = {408, 409, 425, 429}  # and all from 500 up
_DENIED = {401, 402, 403, 404, 405, 407, 410}
# Vendors send some of these with 400 or 429, which would mean something else.
DENIED_CODES = {
    "insufficient_quota",
    "billing_not_active",
    "invalid_api_key",
    "model_not_found",
    "account_deactivated",
}
_FILTERED_CODES = {
    "content_filter",
    "invalid_prompt",
    "content_policy_violation",
    "cyber_policy",
    "data_inspection_failed",
    "ResponsibleAIPolicyViolation",
}
_TOO_LONG_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
_FILTERED = re.compile(
    r"(?:management|content|usage|safety) polic|flagged by moderation"
    r"|(?:prompt|input|content|request) (?:is|was) (?:not allowed|rejected|blocked|flagged|filtered)",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context (?:length|size|window)|maximum context|(?:prompt|input|request) is too long|prompt too long"
    r"|input token count|reduce the length"
    r"|exceeds? (?:the )?(?:model's )?(?:maximum|max)(?: number of)? (?:input )?tokens",
    re.IGNORECASE,
)
_SCHEMA = re.compile(r"json.?schema|structured.?output", re.IGNORECASE)
_ACCOUNT = re.compile(r"credit|quota|billing|balance|payment|api key", re.IGNORECASE)
_OVERLOAD = re.compile(
    r"overload|rate.?limit|too many|unavailable|time[d ]?.?out|temporar|try again|capacity|internal|warming|loading",
    re.IGNORECASE,
)
_OUT_OF_RANGE = re.compile(
    r"too (?:large|small|high|low|big)|at most|at least|between|range|must be|less than|greater than|<=|>=",
    re.IGNORECASE,
)


class ServerError(NamedTuple):
    """An error as a server sent it. `field` is the request's field that it refuses, if it names one."""

    outcome: Outcome
    message: str
    field: str | None = None
    again: bool = False  # whether the same request is worth repeating


def read_error(status: int, body: object) -> ServerError:
    """The error in the body of a response with that status; an error in a 200 may have a status of its own instead."""
    error = _Error(body)
    numbered = error.number or status
    if 200 <= numbered < 300:
        return _unnumbered(error)
    if error.codes & DENIED_CODES:
        return ServerError("denied", error.message)
    if numbered in _TRY_AGAIN or numbered >= 500:
        return ServerError("busy", error.message, again=True)
    return _interpret_request_error(error, numbered)


class _Error:
    """The parts of an error's body, wherever a server puts them."""

    def __init__(self, body: object) -> None:
        inner = mapping(body).get("error", body)
        outer = mapping(inner)
        self.codes = {code for code in (outer.get("code"), outer.get("type")) if isinstance(code, str)}
        self.codes |= {code for code in (mapping(outer.get("innererror")).get("code"),) if isinstance(code, str)}
        code = outer.get("code")
        number = int(code) if isinstance(code, int) or (isinstance(code, str) and re.fullmatch(r"\d{3}", code)) else 0
        self.number = number if 300 <= number < 600 else None
        message = outer.get("message") if outer else inner
        self.message = message if isinstance(message, str) else json.dumps(body, default=str)
        param = outer.get("param")
        self.param = param if isinstance(param, str) else _located(outer.get("detail"))
        sizes = ", ".join(f"{name} {outer[name]}" for name in ("n_prompt_tokens", "n_ctx") if name in outer)
        self.sizes = f" ({sizes})" if sizes else ""

    def named_field(self) -> str | None:
        """The refused field: as the error names it, or else the first known one in its message."""
        if self.param:
            return FORMAT_FIELD if self.param.split(".")[0] == FORMAT_FIELD else self.param
        found = re.search(rf"(?<![\w.])({'|'.join((*TOKEN_FIELDS, *REFUSABLE_FIELDS))})(?![\w])", self.message)
        if found is None and _SCHEMA.search(self.message):
            return FORMAT_FIELD
        return found[1] if found else None


def _located(detail: Any) -> str | None:
    """The field that a FastAPI server rejected."""
    first = mapping(detail[0]) if isinstance(detail, list) and detail else {}
    location = first.get("loc")
    return str(location[-1]) if isinstance(location, list) and len(location) > 1 else None


def _interpret_request_error(error: _Error, status: int) -> ServerError:
    """The meaning of an error about the request itself."""
    if error.codes & _FILTERED_CODES or (status in (400, 403) and _FILTERED.search(error.message)):
        return ServerError("filtered", error.message)
    if status == 413 or error.codes & _TOO_LONG_CODES or (status in (400, 422) and _TOO_LONG.search(error.message)):
        return ServerError("too_long", f"{error.message}{error.sizes}")
    if status in _DENIED or status < 400:
        return ServerError("denied", error.message)
    field = error.named_field()
    changeable = field == FORMAT_FIELD or (
        field in (*TOKEN_FIELDS, *SAMPLING_FIELDS) and not _OUT_OF_RANGE.search(error.message)
    )
    return ServerError("ask_again_differently" if changeable else "misconfigured", error.message, field)


def _unnumbered(error: _Error) -> ServerError:
    """The meaning of an error in a 200 that has no status of its own: by its codes and words."""
    if error.codes & DENIED_CODES or _ACCOUNT.search(error.message):
        return ServerError("denied", error.message)
    if _OVERLOAD.search(" ".join((error.message, *error.codes))):
        return ServerError("busy", error.message, again=True)
    found = _interpret_request_error(error, 400)
    return found._replace(again=found.outcome == "misconfigured" and found.field is None)
