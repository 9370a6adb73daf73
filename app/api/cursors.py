"""Cursors: where the next page of a query begins, opaque to programs. A cursor of another query is refused."""

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from flask import request

from app.core.errors import Invalid, Verbatim
from app.core.validation import Schema

MOST, USUAL = 200, 50  # items per page
PAGING: Mapping[str, Schema] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL, "description": "Items of a page."},
    "cursor": {"type": "string", "description": "`next` of the page before; without one the first page is given."},
}
_DIGITS = 16  # of a query's hash


def cursor_of(place: str, query: Mapping[str, Any]) -> str:
    """The cursor of a place in the results of this query at this address."""
    return base64.urlsafe_b64encode(f"{_hash_of(query)}{place}".encode()).decode().rstrip("=")


def place_in(query: Mapping[str, Any]) -> str:
    """The place that the cursor of a query stands for; empty without one. Raises Invalid."""
    given = query.get("cursor")
    if given is None:
        return ""
    try:
        text = base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True).decode()
    except ValueError:
        raise refused(given) from None
    if text[:_DIGITS] != _hash_of(query):
        remedy = "begin without a cursor, or ask as before: only the limit may change"
        raise Invalid("cursor", expected="one of this query", got=Verbatim("one of another"), remedy=remedy)
    return text[_DIGITS:]


def refused(cursor: str) -> Invalid:
    """The error for a text that is no cursor."""
    return Invalid("cursor", expected="`next` of an earlier answer", got=cursor)


def _hash_of(query: Mapping[str, Any]) -> str:
    asked = {name: str(value) for name, value in query.items() if name not in PAGING}
    return hashlib.sha256(json.dumps([request.path, asked], sort_keys=True).encode()).hexdigest()[:_DIGITS]
