"""Lists: a page of a list with its columns, and its schema."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app.api.cursors import PAGING, USUAL, cursor_of, place_in, refused
from app.api.operations import json_answer
from app.core.errors import Invalid
from app.core.extensions import db
from app.core.lists import DESCENDING, PAGES, ListColumn, Listing
from app.core.validation import Schema
from app.games.base import JSON
from app.web.threads import in_worker_thread

_TIME: Schema = {"type": ["string", "null"], "format": "date-time"}


def list_query(listing: Listing[Any] | None = None) -> dict[str, Schema]:
    """The parameters of a list."""
    names = "" if listing is None else f" One of {', '.join(each.name for each in listing.columns if _sorts(each))}."
    return {
        **PAGING,
        "sort": {
            "type": "string",
            "description": f"The column to sort by; {DESCENDING} before it sorts downwards.{names}",
        },
        "columns": {
            "type": "string",
            "description": "Names of columns, commas between, in place of the usual ones.",
        },
    }


def page_schema(item: Schema) -> Schema:
    """The schema of a page of items."""
    return {
        "type": "object",
        "required": ["items", "next", "more"],
        "properties": {
            "items": {"type": "array", "items": item},
            "next": {"type": ["string", "null"], "description": "The cursor of what comes next."},
            "more": {"type": "boolean", "description": "Whether there is more now."},
        },
    }


def list_schema(listing: Listing[Any]) -> Schema:
    """The schema of a page of a list."""
    columns = {each.name: _column_schema(each) for each in listing.columns}
    return page_schema({"type": "object", "properties": columns})


def list_page(listing: Listing[Any], query: Mapping[str, Any], where: Sequence[ColumnElement[bool]] = ()) -> Any:
    """A page of a list, read in a thread because a column may be slow. Raises Invalid."""
    names = [name for name in query.get("columns", "").replace(",", " ").split() if name]
    chosen = [listing.column(name, "columns") for name in names]
    order, place = listing.order(query.get("sort", "")), place_in(query)

    def read(session: Session) -> tuple[list[JSON], str | None]:
        rows, after = listing.read(session, order, query.get("limit", USUAL), where=where, after=place)
        items = listing.items(session, rows)
        return as_json(listing.values(session, chosen or usual_columns(listing), items)), after

    try:
        items, after = in_worker_thread(db.engine, read)
    except Invalid as error:
        raise (refused(query["cursor"]) if error.field == "before" else error) from None
    cursor = None if after is None else cursor_of(after, query)
    return json_answer({"items": items, "next": cursor, "more": after is not None})


def usual_columns(listing: Listing[Any]) -> list[ListColumn]:
    """The columns that programs get by default: all but those only for pages."""
    return [column for column in listing.columns if column.seen != PAGES]


def as_json(lines: Iterable[Mapping[str, Any]]) -> list[JSON]:
    """Lines of a list with times as text."""
    return [{name: time_as_text(value) for name, value in line.items()} for line in lines]


def time_as_text(value: Any) -> Any:
    """A time in JSON's form; anything else unchanged."""
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else value


def _column_schema(column: ListColumn) -> Schema:
    about = {"description": str(column.title)}
    return {**_TIME, **about} if column.name.endswith("_at") else about


def _sorts(column: ListColumn) -> bool:
    return column.sort is not None
