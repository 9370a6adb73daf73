"""Tags and notes of jobs, and of other things with a kind and a number: added, removed, read for lists. Nothing
commits.

The tables are named here, not imported: app/models, which declares them, is a layer above all kinds of job.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Table, delete, insert, select
from sqlalchemy.orm import Session

from app.core.errors import Invalid, NotFound, Phrase
from app.core.extensions import Model
from app.core.lists import NOWHERE, ListColumn
from app.core.validation import is_storable

MODEL, DATASET = "model", "dataset"  # tagged besides the kinds of job
MOST_TAGS, LONGEST_TAG, LONGEST_NOTE = 20, 40, 2000


class TakenNote(NamedTuple):
    """A note: its number, the text, who wrote it and when."""

    id: int
    text: str
    by: str
    at: datetime

    def as_json(self) -> dict[str, Any]:
        """The note as JSON for programs."""
        return {"note_id": self.id, "text": self.text, "by": self.by, "at": self.at.isoformat(timespec="seconds")}


def tags_of(session: Session, kind: str, numbers: Iterable[int]) -> Mapping[int, list[str]]:
    """The tags of several things of a kind by number, in alphabetical order."""
    tag, found = _table_by_name("tag"), defaultdict[int, list[str]](list)
    chosen = select(tag.c.number, tag.c.name).where(tag.c.kind == kind, tag.c.number.in_([*numbers]))
    for number, name in session.execute(chosen.order_by(tag.c.name)):
        found[number].append(name)
    return found


def notes_of(session: Session, kind: str, numbers: Iterable[int]) -> Mapping[int, list[TakenNote]]:
    """The notes of several things of a kind by number, the latest first."""
    note, found = _table_by_name("note"), defaultdict[int, list[TakenNote]](list)
    chosen = select(note.c.number, note.c.id, note.c.text, note.c.by, note.c.at)
    chosen = chosen.where(note.c.kind == kind, note.c.number.in_([*numbers])).order_by(note.c.id.desc())
    for number, *rest in session.execute(chosen):
        found[number].append(TakenNote(*rest))
    return found


def known_tags(session: Session, kind: str) -> Sequence[str]:
    """All tags in use for a kind."""
    tag = _table_by_name("tag")
    return session.scalars(select(tag.c.name).where(tag.c.kind == kind).distinct().order_by(tag.c.name)).all()


def has_tag(key: Any, kind: str, name: str) -> ColumnElement[bool]:
    """Whether the job, model or dataset whose number is in the column `key` has a tag, for a WHERE."""
    tag = _table_by_name("tag")
    found: ColumnElement[bool] = key.in_(select(tag.c.number).where(tag.c.kind == kind, tag.c.name == name))
    return found


def add_tags(session: Session, kind: str, number: int, names: Sequence[str], by: str) -> None:
    """Add tags; those that it already has change nothing. Raises Invalid."""
    had = tags_of(session, kind, [number])[number]
    new = [name for name in dict.fromkeys(names) if name not in had]
    for name in new:
        if not (name.strip() == name and 1 <= len(name) <= LONGEST_TAG and name.isprintable() and "," not in name):
            expected = Phrase("1 to %(most)s characters without commas and spaces around them", most=LONGEST_TAG)
            raise Invalid("tag", expected=expected, got=name)
    if len(had) + len(new) > MOST_TAGS:
        raise Invalid("tag", expected=Phrase("at most %(most)s tags", most=MOST_TAGS), got=len(had) + len(new))
    if new:
        now = datetime.now(UTC)
        rows = [{"kind": kind, "number": number, "name": name, "by": by, "at": now} for name in new]
        session.execute(insert(_table_by_name("tag")), rows)


def remove_tags(session: Session, kind: str, number: int, names: Sequence[str]) -> None:
    """Remove tags; those that it does not have change nothing."""
    tag = _table_by_name("tag")
    session.execute(delete(tag).where(tag.c.kind == kind, tag.c.number == number, tag.c.name.in_([*names])))


def add_note(session: Session, kind: str, number: int, text: str, by: str) -> None:
    """Add a note. Raises Invalid."""
    text = text.strip()
    if not is_storable(text):
        raise Invalid("note", expected=Phrase("characters that can be stored"), got=ascii(text[:80]))
    if not 1 <= len(text) <= LONGEST_NOTE:
        expected = Phrase("a text of 1 to %(most)s characters", most=LONGEST_NOTE)
        raise Invalid("note", expected=expected, got=Phrase("one of %(length)s", length=len(text)))
    row = {"kind": kind, "number": number, "text": text, "by": by, "at": datetime.now(UTC)}
    session.execute(insert(_table_by_name("note")).values(**row))


def remove_note(session: Session, kind: str, number: int, note_id: int) -> None:
    """Delete a note. Raises NotFound."""
    note = _table_by_name("note")
    found = delete(note).where(note.c.id == note_id, note.c.kind == kind, note.c.number == number)
    if session.scalar(found.returning(note.c.id)) is None:
        raise NotFound("note", expected=Phrase("the number of one that exists"), got=note_id)


def tag_columns(kind: str) -> list[ListColumn]:
    """The columns of a list whose items have a row, or the rows of several."""
    return [
        ListColumn("tags", Phrase("Tags"), values=_column_values_reader(kind, tags_of), if_any=True),
        ListColumn(
            "notes", Phrase("Notes"), values=_column_values_reader(kind, _note_texts), seen=NOWHERE, if_any=True
        ),
    ]


def _note_texts(session: Session, kind: str, numbers: Iterable[int]) -> Mapping[int, list[str]]:
    found = notes_of(session, kind, numbers)
    return defaultdict(list, {number: [note.text for note in notes] for number, notes in found.items()})


def _column_values_reader(
    kind: str, read: Callable[[Session, str, Iterable[int]], Mapping[int, list[str]]]
) -> Callable[[Session, Sequence[Any]], list[list[str]]]:
    def cells(session: Session, items: Sequence[Any]) -> list[list[str]]:
        rows = [[row.id for row in getattr(item, "rows", (item.row,))] for item in items]
        found = read(session, kind, {number for numbers in rows for number in numbers})
        return [[*dict.fromkeys(text for number in numbers for text in found[number])] for numbers in rows]

    return cells


def _table_by_name(name: str) -> Table:
    return Model.metadata.tables[name]
