"""The page of a list: sorted by any column, one page at a time, with the columns its reader chose; and its files.

A list may also be part of another page (`read_list`), and some of its items a table there (`table_of`).
app/core/lists.py defines lists.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

from flask import Response, abort, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import format_decimal, gettext
from flask_login import current_user
from markupsafe import Markup, escape
from sqlalchemy import ColumnElement, Engine
from sqlalchemy.orm import Session

from app.core.csv_tables import to_csv
from app.core.errors import AppError, Invalid, NotFound, Phrase, Verbatim, either
from app.core.extensions import db, reading
from app.core.lists import (
    PAGES,
    Code,
    Difference,
    Dollars,
    Done,
    English,
    Labelled,
    ListColumn,
    Listing,
    ListOrder,
    Measured,
    Reference,
    Scored,
    State,
    csv_columns,
)
from app.models import User
from app.web.admin.blueprint import blueprint
from app.web.downloads import download
from app.web.form_writes import write

PAGE = 25  # lines
FILES = ("csv", "json")
_CELLS: Mapping[type, str] = {
    Reference: "reference", Done: "done", State: "state", Labelled: "labelled", Measured: "measured", Phrase: "phrase",
    English: "english", Code: "code", Dollars: "dollars", Scored: "scored", bool: "truth", dict: "facts",
    Difference: "difference", Decimal: "amount",
}  # fmt: skip
_ADDRESSES: dict[str, Callable[[Any], str]] = {}  # addresses that cells link to, by kind
_PAGES: dict[str, "ListPage"] = {}


@dataclass(frozen=True, slots=True)
class ListFilter:
    """A field of the form above a list: a choice of values with their titles, or without `choices` a text, day or
    number. A `seldom` field is shown only if it was given.
    """

    name: str
    title: Any
    choices: Mapping[str, Any] | None = None
    type: str = "text"
    any: Any = None
    seldom: bool = False


@dataclass(frozen=True, slots=True)
class ListPage:
    """What the page of a list shows around its lines; all texts are lazy.

    path: below that of all admin pages; also its endpoint. endpoint: of the page that has the list, if that is not an
    admin page. prefix: of its URL parameters, if the page has several
    lists. new: links to forms: endpoints, and the label of each button. about: what the list holds, shown while it is
    empty, and `first` the button there. command: the same in a terminal. compare: where ticked lines are compared, an
    endpoint that takes `compared` in its URL and their numbers as `ticked`. called: the name of a line in the
    description of its tick. counts: whether it says how many lines there are. values: cells of columns that pages show
    differently. fixed: what each URL of the list has. filters: the fields of the form above, and `where` the conditions
    of those that were given. fields: what else a template of the list's own needs.
    """

    listing: Listing[Any]
    title: Any
    path: str = ""
    endpoint: str = ""
    prefix: str = ""
    new: Sequence[tuple[str, Any]] = ()
    intro: Any = ""
    about: Any = ""
    first: Any = ""
    command: str = ""
    compare: str = ""
    compared: Mapping[str, str] = field(default_factory=dict)
    ticked: str = ""
    called: Callable[[Any], Phrase] = lambda item: Phrase(str(item.row.id))
    template: str = "admin/list.html"
    counts: bool = False
    is_live: Callable[[Any], bool] = lambda _item: False
    values: Mapping[str, Callable[[Session, Sequence[Any]], Sequence[Any]]] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    filters: Callable[[Session], Sequence[ListFilter]] = lambda _session: ()
    where: Callable[[Session, Mapping[str, str]], Sequence[ColumnElement[bool]]] = lambda _session, _given: ()
    fields: Callable[[Session, Mapping[str, str]], Mapping[str, Any]] = lambda _session, _given: {}


class ListLine(NamedTuple):
    """An item of a list with its cells."""

    item: Any
    cells: Sequence[Any]


@dataclass(frozen=True, slots=True)
class ListView:
    """The lines of a list as a page shows them.

    page, order: None if it is not sorted. total: the number of lines on all pages, if the page counts them. older:
    where the next page begins, or None. first: whether this is the first page. given: what was entered in the form
    above, whose fields are `filters`. is_live: whether any of its items is live. refused: why there are no lines.
    """

    columns: Sequence[ListColumn]
    lines: Sequence[ListLine]
    page: ListPage | None = None
    order: ListOrder | None = None
    total: int | None = None
    older: str | None = None
    first: bool = True
    given: Mapping[str, str] = field(default_factory=dict)
    filters: Sequence[ListFilter] = ()
    is_live: bool = False
    refused: AppError | None = None

    @property
    def as_it_comes(self) -> bool:
        """Whether no order was asked for and the latest comes first."""
        return self.order is not None and self.order.column is None and self.order.descending

    def address(self, **asked: str | None) -> str:
        """The URL of the list with its filters, and with further parameters: sort, before, format."""
        if self.page is None or request.endpoint is None:
            raise LookupError("lines without a page have no address")
        own = {f"{self.page.prefix}{name}": value for name, value in asked.items()}
        of_page = {} if self.page.endpoint else request.view_args or {}
        return url_for(self.page.endpoint or request.endpoint, **{**of_page, **self.page.fixed, **self.given, **own})


def add_list(page: ListPage) -> None:
    """Add a page for a list, at its path."""
    register_list(page)
    blueprint.add_url_rule(f"/{page.path}", page.path, lambda: show_list(page))


def register_list(page: ListPage) -> None:
    """Let readers choose the columns of a list."""
    _PAGES[page.listing.name] = page


def add_address(kind: str, address: Callable[[Any], str]) -> None:
    """Register the function that maps the key of a cell of a kind to the address it links to."""
    _ADDRESSES[kind] = address


_OF_UTC = re.compile(r", UTC$| \(UTC\)$")  # at the end of titles


@blueprint.app_template_global()
def cell_address(cell: Reference) -> str:
    """The address that a cell links to."""
    return _ADDRESSES[cell.kind](cell.key)


@blueprint.app_template_filter()
def cell_name(cell: Reference) -> str | int:
    """The text of a cell's link."""
    name = cell.name if cell.title is None else cell.title
    return capital_phrase(name) if isinstance(name, Phrase) else name


@blueprint.app_template_filter()
def capital_phrase(text: Phrase) -> str:
    """A phrase in the language of the page, with its first letter capitalised unless it begins with a name."""
    found = text.render(gettext)
    names = (each for each in text.values.values() if type(each) is Verbatim)
    return found if any(map(found.startswith, names)) else found[:1].upper() + found[1:]


@blueprint.app_template_filter()
def cell_form(cell: Any) -> str:
    """How the template writes a cell: in one of the forms of `_CELLS`, or as many, moment, number or text."""
    if (form := _CELLS.get(type(cell))) is not None:
        return form
    if isinstance(cell, list | tuple):
        return "many"
    if hasattr(cell, "isoformat"):
        return "moment"
    return "number" if isinstance(cell, int | float) and not isinstance(cell, bool) else "text"


@blueprint.app_template_filter()
def phrase(text: Any) -> str:
    """A phrase or text in the language of the page, without UTC at its end: the page's footer names the time zone."""
    found: str = text.render(gettext) if isinstance(text, Phrase) else gettext(str(text))
    return _OF_UTC.sub("", found)


@blueprint.app_template_filter()
def linked(text: Any) -> Markup:
    """A phrase or text in the language of the page, with links to what it refers to."""
    match text:
        case Reference():
            link = Markup('<a href="{}">{}</a>').format(cell_address(text), cell_name(text))
            if text.numbered is not None:
                link += Markup(' <span class="soft small nowrap">{}</span>').format(phrase(text.numbered))
            return link
        case Code():
            return Markup("<code>{}</code>").format(text)
        case Phrase() if text.values:
            return escape(gettext(text.template)) % {name: linked(value) for name, value in text.values.items()}
        case int() | float():
            return escape(format_decimal(text, "#,##0.######").replace("-", "−"))
    return escape(phrase(text) if isinstance(text, Phrase) else text)


def show_list(page: ListPage, refused: AppError | None = None) -> ResponseReturnValue:
    """The list that the URL asks for, or its file; an error is shown in place of the lines."""
    with reading() as session:
        view = read_list(session, page, refused)
        around = page.fields(session, view.given)
        status = 200 if view.refused is None else 400 if refused is None else refused.status
        return render_template(page.template, page=page, view=view, **around), status


def read_list(session: Session, page: ListPage, refused: AppError | None = None) -> ListView:
    """The list that the URL asks for. If it asks for a file, the file becomes the response to the request."""
    asked = {name: request.args.get(f"{page.prefix}{name}", "") for name in ("sort", "before", "format")}
    filters = page.filters(session)
    given = {each.name: text for each in filters if (text := request.args.get(each.name, ""))}
    order, rows, after, total = page.listing.order(""), list[Any](), None, None
    try:
        order = page.listing.order(asked["sort"])
        conditions = page.where(session, given)
        if asked["format"]:
            abort(_download_list(page.listing, order, conditions, asked["format"]))
        rows, after = page.listing.read(session, order, PAGE, where=conditions, after=asked["before"])
        total = page.listing.count(session, conditions) if page.counts else None
    except (Invalid, NotFound) as error:
        refused = refused or error
    items = page.listing.items(session, rows)
    chosen = _chosen_columns(page.listing)
    columns, lines = _without_empty(chosen, _list_lines(session, chosen, items, page))
    return ListView(
        columns,
        lines,
        page,
        order,
        total,
        after,
        first=not asked["before"],
        given=given,
        filters=[each for each in filters if not each.seldom or each.name in given],
        is_live=any(page.is_live(item) for item in items),
        refused=refused,
    )


def table_of(session: Session, name: str, items: Sequence[Any], *columns: str | ListColumn) -> ListView:
    """Items as a table that is not sorted, with columns of the list of that name, and others."""
    page = _PAGES[name]
    chosen = [page.listing.column(each, "column") if isinstance(each, str) else each for each in columns]
    return ListView(chosen, _list_lines(session, chosen, items, page))


def _list_lines(
    session: Session, columns: Sequence[ListColumn], items: Sequence[Any], page: ListPage
) -> list[ListLine]:
    cells = [page.values.get(column.name, column.cells)(session, items) for column in columns]
    return [ListLine(item, line) for item, *line in zip(items, *cells, strict=True)]


def _chosen_columns(listing: Listing[Any]) -> list[ListColumn]:
    """The columns that the reader has chosen, in the order of the list."""
    names = (current_user.list_columns or {}).get(listing.name)
    found = [replace(column, if_any=False) for column in listing.columns if names and column.name in names]
    return found or listing.usual(PAGES)


def _without_empty(columns: Sequence[ListColumn], lines: Sequence[ListLine]) -> tuple[list[ListColumn], list[ListLine]]:
    """Columns and lines without the columns that are hidden if no line has a value."""
    kept = [at for at, column in enumerate(columns) if not column.if_any or any(line.cells[at] for line in lines)]
    return [columns[at] for at in kept], [ListLine(line.item, [line.cells[at] for at in kept]) for line in lines]


@blueprint.post("/lists/<name>/columns")
def choose_columns(name: str) -> ResponseReturnValue:
    """Save the columns that the reader has ticked for this list; without any, the default ones apply."""
    if name not in _PAGES:
        raise NotFound("list", expected=either(_PAGES), got=name)
    page = _PAGES[name]
    chosen = [page.listing.column(each, "column").name for each in request.form.getlist("column")]
    number = current_user.id
    write(lambda session: _store_chosen_columns(session.get_one(User, number), name, chosen))
    home, back = url_for("admin.home"), request.form.get("back", "")
    own = url_for(page.endpoint) if page.endpoint else home + page.path
    return redirect(back if back.startswith((home, own)) and "\\" not in back else own, 303)


def _store_chosen_columns(user: User, name: str, chosen: Sequence[str]) -> None:
    others = {each: names for each, names in (user.list_columns or {}).items() if each != name}
    user.list_columns = {**others, name: [*chosen]} if chosen else others


def _download_list(
    listing: Listing[Any], order: ListOrder, conditions: Sequence[ColumnElement[bool]], form: str
) -> Response:
    """All lines with all columns as CSV or JSON, in English."""
    if form not in FILES:
        raise Invalid("format", expected=either(FILES), got=form)
    pieces = _list_file_pieces(db.engine, listing, order, conditions, form)
    return download(pieces, f"{listing.name}.{form}", "text/csv" if form == "csv" else "application/json")


def _list_file_pieces(
    engine: Engine, listing: Listing[Any], order: ListOrder, conditions: Sequence[ColumnElement[bool]], form: str
) -> Iterator[bytes]:
    """The pieces of a file. They are requested after the request has ended, so the database is passed in."""
    with reading(engine) as session:
        lines = listing.lines(session, listing.columns, order, conditions)
        yield from to_csv(csv_columns(listing.columns), lines) if form == "csv" else _json_pieces(lines)


def _json_pieces(lines: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    mark = "["
    for line in lines:
        yield f"{mark}{json.dumps(line, default=lambda moment: moment.isoformat(timespec='seconds'))}".encode()
        mark = ",\n"
    yield b"[]\n" if mark == "[" else b"]\n"
