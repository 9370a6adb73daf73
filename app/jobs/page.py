"""What one job shows, described once: its page, what `flask KIND show` prints and its JSON are made of it.

The `page.py` of a kind declares a JobPage, and its JobKind names it. Facts and columns of tables are those of lists
(app/core/lists.py): `seen` says whether one is for pages or for terminals alone, and one that is seen nowhere is in
JSON, which has all but those of pages. app/web/admin/job_pages.py makes the page, app/cli/jobs.py the command.
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
_DIGITS = "0.######"  # of what somebody has typed
_NONE, _PROGRESS = Phrase("none yet"), Phrase("%(done)s of %(all)s")
ASKED = "asked"  # the section below whose own facts pages tell when a job was requested, by whom, and when it ran


def fact(name: str, title: str, value: Callable[[Any], Cell] | None = None, **said: Any) -> ListColumn:
    """A fact of a job, or a column of one of its tables. Without a `value` it is the row's attribute of that name."""

    def read(item: Any) -> Cell:
        return getattr(getattr(item, "row", item), name)

    return ListColumn(name=name, title=Phrase(title), value=value or read, **said)


def json_fact(name: str, value: Callable[[Any], Cell] | None = None) -> ListColumn:
    """One that is in JSON alone, and has no title."""
    return fact(name, name, value, seen=NOWHERE)


def spec_facts(spec: type[SpecPart], read: Callable[[Any], Mapping[str, Any]], *without: str) -> list[ListColumn]:
    """What was asked for, for pages: the fields of a spec but some, titled as in its form; `read` finds the values."""
    facts = []
    for name, schema in fields_of(spec).items():
        if name in without:
            continue
        if (part := parts_of(spec).get(name)) is not None:
            facts += spec_facts(part, lambda item, at=name: read(item).get(at) or {})  # type: ignore[misc]
            continue
        title, unset = schema["title"], schema.get("unset")
        said = {"none": Phrase(unset) if unset else None, "seen": PAGES, "digits": _DIGITS}
        facts.append(fact(name, title, partial(_asked, read, name, schema), **said))
    return facts


def _asked(read: Callable[[Any], Mapping[str, Any]], name: str, schema: Mapping[str, Any], item: Any) -> Cell:
    value = read(item).get(name)
    if schema.get("widget") == "shares":
        pairs = (value or {}).items()
        return [Phrase("%(model)s (share %(share)s)", model=Verbatim(each), share=share) for each, share in pairs]
    labels = schema.get("labels", {})
    return Phrase(labels[value]) if isinstance(value, str) and value in labels else value


@dataclass(frozen=True, slots=True)
class JobTable:
    """Lines about a job, under `name` in its JSON. `lines` are those of each of many items of its list."""

    name: str
    title: str
    columns: Sequence[ListColumn]
    lines: Callable[[Session, Sequence[Any]], Sequence[Sequence[Any]]]
    none: Phrase = _NONE

    def cells(self, lines: Sequence[Any], columns: Sequence[ListColumn]) -> list[list[Cell]]:
        """The cells of lines in some of its columns."""
        return [[column.value(line) if column.value else None for column in columns] for line in lines]

    def as_json(self, lines: Sequence[Any]) -> list[JSON]:
        """Lines as JSON has them."""
        columns = [column for column in self.columns if column.seen != PAGES]
        names = [column.name for column in columns]
        return [dict(zip(names, map(_json, cells), strict=True)) for cells in self.cells(lines, columns)]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page under a heading.

    facts: of an item; those without a value are left out of the page. counts: figures that an open page follows, with
    their titles. fragment: a template in templates/admin for what only this kind has, which pages show in place of the
    table. hint: what else is to be known. alone: whether it is read for one job alone, and not for lists.
    beside: whether it stands beside the one before.
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

    lead: what it does, in a sentence or more. links: what leads on
    from its page. like: whether a form can be filled in as for this job. progress: how much is done. figures: what
    changes while it runs, of many rows by number, `at` each time that its page has more to show. told: those that JSON
    and terminals have, beside the counts of sections. items: of jobs one by one, where lines of the list stand for
    several. whole: the JSON of jobs, where it is not made of sections.
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
        """What changes of these jobs while they run, by number."""
        if self.figures is not None:
            return self.figures(session, rows)
        return {item.row.id: job_figures(item) for item in self.items_of(session, rows)}

    def items_of(self, session: Session, rows: Sequence[R]) -> Sequence[Any]:
        """What facts are read from."""
        return (self.items or list_of(self.kind).items)(session, rows)

    def described(self, session: Session, rows: Sequence[R]) -> list[JSON]:
        """Jobs as JSON, with as many statements for one as for a hundred."""
        found, numbers = self._described(session, rows), [row.id for row in rows]
        tags, notes = tags_of(session, self.kind.name, numbers), notes_of(session, self.kind.name, numbers)
        for each, number in zip(found, numbers, strict=True):
            each |= {"tags": tags.get(number, []), "notes": [note.as_json() for note in notes.get(number, ())]}
        return found

    def _described(self, session: Session, rows: Sequence[R]) -> list[JSON]:
        if self.whole is not None:
            return self.whole(session, rows)
        items, found = self._read(session, rows)
        for section in (each for each in self.sections if len(rows) == 1 or not each.alone):
            for fact in (each for each in section.facts if each.seen != PAGES):
                for each, cell in zip(found, fact.cells(session, items), strict=True):
                    each[fact.name] = _json(cell)
            if section.table is not None:
                for each, lines in zip(found, section.table.lines(session, items), strict=True):
                    each[section.table.name] = section.table.as_json(lines)
        return found

    def printed(self, session: Session, row: R) -> dict[str, str]:
        """What a terminal shows of a job beside its tables, by name."""
        items, [found] = self._read(session, [row])
        name = called(self.kind, items[0])
        found = {**({"name": name} if isinstance(name, str) else {}), **found}
        for fact in (each for section in self.sections for each in section.facts if is_printed(each)):
            [found[fact.name]] = fact.cells(session, items)
        tags = tags_of(session, self.kind.name, [row.id]).get(row.id)
        notes = notes_of(session, self.kind.name, [row.id]).get(row.id, [])
        found |= {"tags": tags} if tags else {}
        found |= {f"note {note.id}": f"{note.text} ({note.by}, {note.at:%Y-%m-%d %H:%M})" for note in notes}
        return {name: printed(cell) for name, cell in found.items()}

    def _read(self, session: Session, rows: Sequence[R]) -> tuple[Sequence[Any], list[JSON]]:
        """Items of the list, and of each what is said of every job, and its figures."""
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
    """What is shown of jobs of a kind: what it declares, or what all kinds have."""
    if kind.page:
        module, _, name = kind.page.partition(":")
        declared: JobPage[R] = getattr(import_module(module), name)
        return declared
    return JobPage(kind=kind, sections=[Section(ASKED, "What was asked for")])


def job_references(session: Session, kind: JobKind[Any], numbers: Iterable[int | None]) -> dict[int, Reference]:
    """Jobs as cells of other lists and pages, by number, with a few statements for many.

    A number of no job has a cell as well.
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


def _json(cell: Cell) -> Any:
    value = plain(cell)
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else value
