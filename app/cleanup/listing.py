"""What could be removed, largest first, and the list of removals."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session, defer

from app.cleanup.checks import Dependent
from app.cleanup.contents import DATASET, KINDS, MODEL, Owners
from app.cleanup.remove import RemovalPreview, preview, size_of
from app.core.disk import MB
from app.core.errors import Invalid, Phrase, either
from app.core.lists import COMMANDS, NOWHERE, FoundListing, ListColumn, Listing, Reference, State, attribute
from app.job_kinds import find_kind
from app.jobs import states
from app.models import Dataset, LanguageModel, Removal
from app.registry import is_shipped

AT_MOST = 50  # things examined for what depends on them


@dataclass(frozen=True, slots=True)
class CleanupFilter:
    """Things to look at: of a kind in KINDS, or all; at least `days` old; with at least `size` bytes of files."""

    kind: str | None = None
    days: float = 0
    size: float = 0

    def check(self) -> "CleanupFilter":
        """The filter itself. Raises Invalid for an unknown kind."""
        if self.kind is not None and self.kind not in KINDS:
            raise Invalid("kind", expected=either(KINDS), got=self.kind)
        return self


def candidates(session: Session, home: Path, choice: CleanupFilter, limit: int = AT_MOST) -> list[RemovalPreview]:
    """The oldest things of a filter, largest first, with what depends on each; without jobs that are not over."""
    owners = Owners(session, home)
    rows = islice(_removable_rows(session, home, choice), limit)
    found = [preview(session, home, kind, row.id, owners) for kind, row in rows]
    return sorted(found, key=lambda each: (-each.size, each.made_at))


def candidate_list(home: Path, choice: CleanupFilter, limit: int) -> FoundListing[RemovalPreview]:
    """The list of the same, for the command."""
    return FoundListing(
        name="removable",
        table=RemovalPreview,
        columns=_CANDIDATE_COLUMNS,
        items=lambda _session, found: found,
        find=lambda session: candidates(session, home, choice, limit),
    )


def dependent_in_words(each: Dependent) -> str:
    """What depends on a thing, and how."""
    what = each.what if each.what.numbered else f"{each.what.kind} {each.what}"
    return f"{what} ({each.why})"


def _in_words(found: Iterable[Dependent]) -> list[str]:
    return [*map(dependent_in_words, found)]


_CANDIDATE_COLUMNS = (
    ListColumn("name", Phrase("What"), lambda each: each.name, sort=lambda each: each.name.lower(), type="text"),
    ListColumn(
        "thing",  # as `flask storage clean` takes it
        Phrase("Kind and number"),
        lambda each: f"{each.kind}:{each.number}",
        sort=lambda each: (each.kind, each.number),
        type="text",
    ),
    ListColumn(
        "megabytes", Phrase("MB of files"), lambda each: each.size / MB, sort=lambda each: each.size, numeric=True,
        type="number",
    ),
    ListColumn(
        "files", Phrase("Files"), lambda each: len(each.files), sort=lambda each: len(each.files), numeric=True,
        type="number",
    ),
    ListColumn(
        "shared_with", Phrase("Things with the same files"), lambda each: each.shared or None,
        sort=lambda each: each.shared, numeric=True, type="number", if_any=True,
    ),
    ListColumn(
        "created_at", Phrase("Created, UTC"), lambda each: each.made_at, sort=lambda each: each.made_at, numeric=True,
        type="time", seen=NOWHERE,
    ),
    ListColumn(
        "cannot_go", Phrase("Cannot be removed"), lambda each: _in_words(each.keepers),
        sort=lambda each: len(each.keepers), type="text", if_any=True,
    ),
    ListColumn(
        "needed_by", Phrase("Needed by"), lambda each: _in_words(one for one in each.dependents if not one.keeps),
        sort=lambda each: len(each.dependents) - len(each.keepers), type="text", if_any=True,
    ),
)  # fmt: skip


def _removable_rows(session: Session, home: Path, choice: CleanupFilter) -> Iterator[tuple[str, Any]]:
    before = datetime.now(UTC) - timedelta(days=choice.days)
    for kind in KINDS if choice.kind is None else (choice.kind,):
        table: Any = {MODEL: LanguageModel, DATASET: Dataset}.get(kind) or find_kind(kind).table
        which = select(table).where(table.removed_at.is_(None), table.created_at <= before).order_by(table.id)
        if kind == MODEL:
            which = which.where(LanguageModel.kind == "local")
        elif kind == DATASET:
            which = which.where(Dataset.complete)
        else:
            which = which.where(table.status.not_in(states.LIVE))
        if hasattr(table, "log"):
            which = which.options(defer(table.log))
        for row in session.scalars(which, execution_options={"yield_per": AT_MOST}):  # often no further batch is needed
            if (kind != MODEL or not is_shipped(row)) and size_of(home, kind, row) >= choice.size:
                yield kind, row


class RemovalItem(NamedTuple):
    """A removal in a list."""

    row: Removal


def state_of(row: Removal) -> State:
    """Whether a removal can be undone, for how long, or what became of it."""
    if not row.in_force:
        return State("restored", "good", Phrase("put back by %(by)s", by=row.restored_by))
    if row.archive is None:
        return State("gone", "", Phrase("gone for good"))
    if row.freed_at is None:
        return State("undoable", "open", Phrase("can be undone"))
    return State("archived", "open", Phrase("in its archive"))


def named(row: Removal) -> Reference:
    """What was removed, as a cell of a list."""
    return Reference(row.kind, row.number, row.name)


REMOVALS: Listing[Removal] = Listing(
    name="removals",
    table=Removal,
    columns=(
        ListColumn("name", Phrase("What"), lambda each: named(each.row), sort=Removal.name),
        ListColumn(
            "removal_id", Phrase("Removal"), lambda each: Reference("removal", each.row.id, each.row.id),
            sort=Removal.id,
        ),
        ListColumn("kind", Phrase("Kind"), lambda each: each.row.kind, sort=Removal.kind),
        attribute(Removal.number, Phrase("Its number"), "of", numeric=True, seen=COMMANDS),
        attribute(Removal.at, Phrase("Removed, UTC"), "removed_at", numeric=True),
        attribute(Removal.by, Phrase("By")),
        ListColumn(
            "megabytes", Phrase("MB of files"), lambda each: each.row.size / MB, sort=Removal.size, numeric=True,
            digits="#,##0.0",
        ),
        attribute(Removal.rows, Phrase("Rows"), numeric=True),
        ListColumn("state", Phrase("State"), lambda each: state_of(each.row)),
        ListColumn("archive", Phrase("Archive"), lambda each: each.row.archive, none=Phrase("none"), seen=COMMANDS),
        attribute(Removal.undo_until, Phrase("Undo until, UTC"), numeric=True),
    ),
    items=lambda _session, rows: [RemovalItem(row) for row in rows],
)  # fmt: skip
