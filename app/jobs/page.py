"""What is shown of one job, described once for its page, the output of `flask KIND show` and its JSON.

The `page.py` of a kind declares a JobPage, and its JobKind names it. Facts and columns of tables are those of lists
(app/core/lists.py): `seen` limits one to pages or to terminals; one that is seen nowhere is in JSON, which has all but
those of pages. app/web/admin/job_pages.py makes the page, app/cli/jobs.py the command.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import Any, Generic, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Phrase, Verbatim
from app.core.lists import COMMANDS, EVERYWHERE, NOWHERE, PAGES, Cell, ListColumn, Reference, job_cell, plain, printed
from app.jobs.kind import JobKind
from app.jobs.listing import called, job_facts, job_figures, list_of
from app.jobs.spec import SpecPart, fields_of, parts_of
from app.jobs.tags import notes_of, tags_of

R = TypeVar("R", bound=Any)
JSON = dict[str, Any]
_DIGITS = "0.######"  # for numbers that somebody typed
_NONE, _PROGRESS = Phrase("none yet"), Phrase("%(done)s of %(all)s")
ASKED = "asked"  # below its own facts, pages show when a job was requested, by whom, and when it ran


def fact(name: str, title: str, value: Callable[[Any], Cell] | None = None, **said: Any) -> ListColumn:
    """A fact of a job, or a column of one of its tables. The default `value` is the row's attribute of that name."""

    def read(item: Any) -> Cell:
        return getattr(getattr(item, "row", item), name)

    return ListColumn(name=name, title=Phrase(title), value=value or read, **said)


def json_fact(name: str, value: Callable[[Any], Cell] | None = None) -> ListColumn:
    """A fact that is only in JSON, and has no title."""
    return fact(name, name, value, seen=NOWHERE)


def spec_facts(spec: type[SpecPart], read: Callable[[Any], Mapping[str, Any]], *without: str) -> list[ListColumn]:
    """The request as facts for pages: the fields of a spec except `without`, titled as in its form; `read` gives the
    values.
    """
    facts = []
    for name, schema in fields_of(spec).items():
        if name in without:
            continue
        if (part := parts_of(spec).get(name)) is not None:
            facts += spec_facts(part, lambda item, at=name: read(item).get(at) or {})  # type: ignore[misc]
            continue
        title, unset = schema["title"], schema.get("unset")
        said = {"none": Phrase(unset) if unset else None, "seen": PAGES, "digits": _DIGITS}
        facts.append(fact(name, title, partial(_spec_field_cell, read, name, schema), **said))
    return facts


def _spec_field_cell(read: Callable[[Any], Mapping[str, Any]], name: str, schema: Mapping[str, Any], item: Any) -> Cell:
    value = read(item).get(name)
    if schema.get("widget") == "shares":
        pairs = (value or {}).items()
        return [Phrase("%(model)s (share %(share)s)", model=Verbatim(each), share=share) for each, share in pairs]
    labels = schema.get("labels", {})
    return Phrase(labels[value]) if isinstance(value, str) and value in labels else value


@dataclass(frozen=True, slots=True)
class JobTable:
    """A table about a job, under `name` in its JSON. `lines` gives the rows for each of many items of its list."""

    name: str
    title: str
    columns: Sequence[ListColumn]
    lines: Callable[[Session, Sequence[Any]], Sequence[Sequence[Any]]]
    none: Phrase = _NONE

    def cells(self, lines: Sequence[Any], columns: Sequence[ListColumn]) -> list[list[Cell]]:
        """The cells of `lines` in these columns."""
        return [[column.value(line) if column.value else None for column in columns] for line in lines]

    def as_json(self, lines: Sequence[Any]) -> list[JSON]:
        """The lines as JSON."""
        columns = [column for column in self.columns if column.seen != PAGES]
        names = [column.name for column in columns]
        return [dict(zip(names, map(_cell_as_json, cells), strict=True)) for cells in self.cells(lines, columns)]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page under a heading.

    facts: of an item; those without a value are left out of the page. counts: figures that update on an open page, with
    their titles. fragment: a template in templates/admin specific to this kind, which pages show instead of the table.
    hint: further information. alone: whether it is read only for a single job, and not for lists. beside: whether it is
    placed beside the previous section.
    """

    name: str
    title: str
    facts: Sequence[ListColumn] = ()
    counts: Mapping[str, Phrase] = field(default_factory=dict)
    table: JobTable | None = None
    fragment: str = ""
    hint: Phrase | None = None
    alone: bool = False
    beside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage(Generic[R]):
    """What is shown of a job of a kind, read from an item of the kind's list.

    lead: what it does, in a sentence or more. links: links to related pages. like: whether a form can be prefilled from
    this job. progress: the wording of its progress. figures: what changes while it runs, for many rows by number; `at`
    changes each time that its page has more to show. told: the figures in JSON and terminals, beside the counts of
    sections. items: of single jobs, if lines of the list stand for several. whole: the JSON of jobs, if it is not built
    from sections.
    """

    kind: JobKind[R]
    sections: Sequence[Section]
    lead: Callable[[Any], Sequence[Phrase | str]] = lambda _item: ()
    links: Callable[[Any], Sequence[Reference]] = lambda _item: ()
    like: Callable[[Any], bool] = lambda _item: False
    progress: Phrase = _PROGRESS
    figures: Callable[[Session, Sequence[R]], Mapping[int, JSON]] | None = None
    told: Sequence[str] = ()
    items: Callable[[Session, Sequence[R]], Sequence[Any]] | None = None
    whole: Callable[[Session, Sequence[R]], list[JSON]] | None = None

    def figures_of(self, session: Session, rows: Sequence[R]) -> Mapping[int, JSON]:
        """The figures that change while these jobs run, by number."""
        if self.figures is not None:
            return self.figures(session, rows)
        return {item.row.id: job_figures(item) for item in self.items_of(session, rows)}

    def items_of(self, session: Session, rows: Sequence[R]) -> Sequence[Any]:
        """The items from which facts are read."""
        return (self.items or list_of(self.kind).items)(session, rows)

    def described(self, session: Session, rows: Sequence[R]) -> list[JSON]:
        """Jobs as JSON, with as many queries for one as for a hundred."""
        found, numbers = self._described_without_tags(session, rows), [row.id for row in rows]
        tags, notes = tags_of(session, self.kind.name, numbers), notes_of(session, self.kind.name, numbers)
        for each, number in zip(found, numbers, strict=True):
            each |= {"tags": tags.get(number, []), "notes": [note.as_json() for note in notes.get(number, ())]}
        return found

    def _described_without_tags(self, session: Session, rows: Sequence[R]) -> list[JSON]:
        if self.whole is not None:
            return self.whole(session, rows)
        items, found = self._read_items_and_facts(session, rows)
        for section in (each for each in self.sections if len(rows) == 1 or not each.alone):
            for fact in (each for each in section.facts if each.seen != PAGES):
                for each, cell in zip(found, fact.cells(session, items), strict=True):
                    each[fact.name] = _cell_as_json(cell)
            if section.table is not None:
                for each, lines in zip(found, section.table.lines(session, items), strict=True):
                    each[section.table.name] = section.table.as_json(lines)
        return found

    def printed(self, session: Session, row: R) -> dict[str, str]:
        """What a terminal shows of a job, without its tables, by name."""
        items, [found] = self._read_items_and_facts(session, [row])
        name = called(self.kind, items[0])
        found = {**({"name": name} if isinstance(name, str) else {}), **found}
        for fact in (each for section in self.sections for each in section.facts if is_printed(each)):
            [found[fact.name]] = fact.cells(session, items)
        tags = tags_of(session, self.kind.name, [row.id]).get(row.id)
        notes = notes_of(session, self.kind.name, [row.id]).get(row.id, [])
        found |= {"tags": tags} if tags else {}
        found |= {f"note {note.id}": f"{note.text} ({note.by}, {note.at:%Y-%m-%d %H:%M})" for note in notes}
        return {name: printed(cell) for name, cell in found.items()}

    def _read_items_and_facts(self, session: Session, rows: Sequence[R]) -> tuple[Sequence[Any], list[JSON]]:
        """Items of the list, and for each its common facts and its figures."""
        number, items = list_of(self.kind).columns[1].name, self.items_of(session, rows)
        told = [*self.told, *(name for section in self.sections for name in section.counts)]
        figures = self.figures_of(session, rows) if told else {}
        return items, [
            {
                **job_facts(self.kind, item, number),
                **{name: figures[item.row.id][name] for name in told},
            }
            for item in items
        ]


def page_of(kind: JobKind[R]) -> JobPage[R]:
    """The page of a kind's jobs: the declared one, or the default."""
    if kind.page:
        module, _, name = kind.page.partition(":")
        declared: JobPage[R] = getattr(import_module(module), name)
        return declared
    return JobPage(kind=kind, sections=[Section(ASKED, "What was asked for")])


def job_references(session: Session, kind: JobKind[Any], numbers: Iterable[int | None]) -> dict[int, Reference]:
    """Jobs as cells of other lists and pages, by number, with a few queries for many.

    A number without a job has a cell as well.
    """
    wanted, table = {number for number in numbers if number is not None}, kind.table
    names: dict[int, str | Phrase] = {}
    if hasattr(table, "name"):
        names |= session.execute(select(table.id, table.name).where(table.id.in_(wanted), table.name != "")).all()
    if nameless := wanted - {*names}:
        rows = session.scalars(select(table).where(table.id.in_(nameless))).all()
        names |= {item.row.id: called(kind, item) for item in page_of(kind).items_of(session, rows)}
    return {number: job_cell(kind.name, number, names.get(number), kind.subject(number)) for number in wanted}


def is_on_pages(column: ListColumn) -> bool:
    """Whether pages show a column or fact."""
    return column.seen in (EVERYWHERE, PAGES)


def is_printed(column: ListColumn) -> bool:
    """Whether terminals show a column or fact."""
    return column.seen in (EVERYWHERE, COMMANDS)


def _cell_as_json(cell: Cell) -> Any:
    value = plain(cell)
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else value
