"""Removing: an archive is written, one transaction marks the thing, then its rows and files are taken.

That transaction decides. A process killed before it has changed nothing that counts; what is left to do after it is
done by the next clean-up or by upkeep: `finish`.
"""

import math
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import structlog
from sqlalchemy import Connection, Engine, Table, delete, func, select, tuple_, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app import __version__
from app.backup.archive import ArchiveReader, ArchiveWriter, Manifest
from app.backup.tables import revision_of, rows_of, snapshot, tables_of
from app.cleanup import folder
from app.cleanup.checks import Dependent, dependents, rows_of_datasets
from app.cleanup.contents import Owners, RowSet, files_of, get_thing, name_of, row_sets, subject_of
from app.core.config import Settings
from app.core.disk import MB
from app.core.errors import Conflict, Invalid, Phrase, Verbatim
from app.core.extensions import in_turn, lock_tables, lost_race, reading, sync_commits, transact, writing
from app.core.files import temporary_beside
from app.core.lists import Reference
from app.datasets.register import delete_left
from app.matches.counts import uncount
from app.models import MatchRow, Removal
from app.rounds.job import ROUND
from training.hashes import file_hash

log = structlog.get_logger()
_AT_ONCE = 200  # matches in one transaction
_ROWS_AT_ONCE = 1000  # likewise, for things other than rounds


@dataclass(frozen=True, slots=True)
class RemovalPreview:
    """The effects of removing a thing: the bytes of files freed, and what depends on it, what keeps it first."""

    kind: str
    number: int
    name: str
    made_at: datetime
    size: int
    files: Sequence[str]
    shared: int  # how many other things share some of these files, which then stay
    dependents: Sequence[Dependent]

    @property
    def keepers(self) -> list[Dependent]:
        """The dependents that prevent its removal."""
        return [each for each in self.dependents if each.keeps]

    @property
    def reference(self) -> Reference:
        return Reference(self.kind, self.number, self.name)


class _Draft(NamedTuple):
    """A removal whose archive is written: the archive's name, hash and manifest."""

    name: str
    sha256: str
    manifest: Manifest


def preview(session: Session, home: Path, kind: str, number: int, owners: Owners | None = None) -> RemovalPreview:
    """The effects of removing a thing; `owners` are given for a list of many.

    Raises NotFound, and Conflict for a thing that was removed.
    """
    row = get_thing(session, kind, number)
    _refuse_removed(session, kind, row)
    files = files_of(home, kind, row)
    needed_by = dependents(session, kind, row, listed=owners is not None)
    owners = owners or Owners(session, home)
    others = {name: owners.others_of(name, kind, number) for name in files}
    size = sum(_size(home / name) for name in files if not others[name])
    shared = len(set().union(*others.values()))
    return RemovalPreview(kind, number, name_of(kind, row), row.created_at, size, files, shared, needed_by)


def together(found: Iterable[RemovalPreview]) -> list[RemovalPreview]:
    """Things to remove together, in a possible order: none keeps another, as it goes before that one."""
    left = {(each.kind, each.number): each for each in found}
    going, ordered = {*left}, list[RemovalPreview]()
    while left:
        kept = {key for key, each in left.items() if any(by.what[:2] in left.keys() - {key} for by in each.keepers)}
        for key in [each for each in left if each not in kept] or [*left]:
            others = going - {key}
            needed_by = [one._replace(keeps=one.keeps and one.what[:2] not in others) for one in left[key].dependents]
            ordered.append(replace(left.pop(key), dependents=sorted(needed_by, key=lambda one: not one.keeps)))
    return ordered


def size_of(home: Path, kind: str, row: Any) -> int:
    """The size of a thing's files in bytes."""
    return sum(_size(home / name) for name in files_of(home, kind, row))


def remove(
    settings: Settings, database: Engine, kind: str, number: int, by: str, *, archive_files: bool = True
) -> Removal:
    """Remove a thing, all of it or nothing.

    `archive_files`: whether it can be restored after undoing ends as well. Raises as `preview` does, Conflict for what
    cannot go or while another clean-up is running, and Invalid if the archive cannot be written.
    """
    home = settings.home
    with folder.cleanup_lock(home):
        finish(home, database)
        with reading(database) as session:
            found = preview(session, home, kind, number)
        refuse_kept(found)
        draft = _write_archive(settings, database, found, archive_files=archive_files)
        until = datetime.now(UTC) + timedelta(hours=settings.UNDO_HOURS)
        removal_id = _mark(database, home, found, draft, by, until, has_files=archive_files)
        finish(home, database)
    log.info("removed", kind=kind, number=number, name=found.name, by=by, size=found.size, removal=removal_id)
    with reading(database) as session:
        removal = session.get_one(Removal, removal_id)
        session.expunge(removal)
    return removal


def finish(home: Path, database: Engine, seconds: float = math.inf) -> None:
    """Complete what a killed process left to do; the caller has the `cleanup_lock`.

    Files of datasets that were never registered and leftovers of pulls are deleted, too. After `seconds` it stops
    between two transactions or files, and the next call continues.
    """
    until = time.monotonic() + seconds
    try:
        delete_left(transact(database), home)
    except OSError as error:
        log.warning("what was left of a dataset cannot be deleted", error=str(error))
    try:
        folder.delete_stopped_pulls(home)
    except OSError as error:
        log.warning("what stopped pulls have left cannot be deleted", error=str(error))
    for row in _settle_archived_removals(home, database):
        if not row.in_force:
            drop(home, database, row)
        elif not row.moved and not folder.archive_path(home, str(row.archive)).exists():
            log.error("a removal has lost its archive, so nothing more of it is removed", removal=row.id)
        elif not row.moved:
            try:
                folder.keep_archive(home, str(row.archive))
                if _take_rows(database, row, until):
                    _take_files(home, database, row, until)
                if time.monotonic() >= until:
                    return
            except OSError as error:  # its files can be moved later, and other things are unaffected
                log.warning("the files of a removal cannot be moved", removal=row.id, error=str(error))


def _settle_archived_removals(home: Path, database: Engine) -> Sequence[Removal]:
    """The removals with an archive, once those of committed ones are named and other drafts deleted."""
    with reading(database) as session:
        rows = session.scalars(select(Removal).where(Removal.archive.is_not(None))).all()
        folder.settle_archives(home, [str(row.archive) for row in rows])
        return rows


def drop(home: Path, database: Engine, removal: Removal) -> None:
    """Delete the archive of a removal, and the files that were kept for undoing it."""
    sync_commits(database)  # so that the restored rows are durable
    folder.delete_folder(folder.removed_path(home, removal.id))
    folder.archive_path(home, str(removal.archive)).unlink(missing_ok=True)
    with writing(database) as session:
        session.execute(
            update(Removal).where(Removal.id == removal.id).values(archive=None, freed_at=datetime.now(UTC))
        )


def removal_in_force(session: Session, kind: str, number: int) -> Removal | None:
    """The active removal of a thing, if any."""
    which = (Removal.kind == kind, Removal.number == number, Removal.in_force.is_(True))
    found: Removal | None = session.scalar(select(Removal).where(*which))
    return found


def _refuse_removed(session: Session, kind: str, row: Any) -> None:
    if row.removed_at is None:
        return
    removal = removal_in_force(session, kind, row.id)
    by = Verbatim(removal.by) if removal is not None else Phrase("an unknown user")
    raise Conflict(
        "storage",
        expected=Phrase("one that is still there"),
        got=Phrase("one that %(by)s removed at %(moment)s UTC", by=by, moment=f"{row.removed_at:%Y-%m-%d %H:%M}"),
        subject=subject_of(kind, row.id),
    )


def _matches_of(session: Session, round_id: int) -> Iterator[Sequence[str]]:
    """The ids of a round's matches, in batches."""
    ids = session.scalars(select(MatchRow.id).where(MatchRow.round_id == round_id)).all()
    yield from (ids[first : first + _AT_ONCE] for first in range(0, len(ids), _AT_ONCE))


def refuse_kept(found: RemovalPreview) -> None:
    """Raises Conflict for a thing that cannot be removed."""
    if found.keepers:
        first = found.keepers[0]
        raise Conflict(
            "storage",
            expected=Phrase("one that can be removed"),
            got=Phrase("one that is kept because of %(what)s (%(why)s)", what=first.what.words, why=first.why),
            subject=subject_of(found.kind, found.number),
        )


# ---- The archive -----------------------------------------------------------------


def _write_archive(settings: Settings, database: Engine, found: RemovalPreview, *, archive_files: bool) -> _Draft:
    """Write what would go into a file, and read it back once."""
    home, now = settings.home, datetime.now(UTC)
    name = f"{found.kind}-{found.number}-{now:%Y%m%dT%H%M%S%f}.zip"
    path = folder.new_path(home, name)
    free = shutil.disk_usage(home).free
    if archive_files and sum(_size(home / each) for each in found.files) > free - settings.LOW_DISK_MB * MB:
        raise Invalid(
            "storage",
            expected=Phrase("room for an archive of its files"),
            got=Phrase("%(count)s MB free", count=free // MB),
            remedy=Phrase("remove it without an archive of its files"),
            subject=subject_of(found.kind, found.number),
        )
    try:
        with temporary_beside(path) as part, snapshot(database) as connection:
            part.touch(mode=0o600)
            part.unlink()
            kind = "sqlite" if connection.dialect.name == "sqlite" else "postgresql"
            manifest = Manifest(
                str(revision_of(connection)), now.isoformat(timespec="seconds"), __version__, kind  # type: ignore[arg-type]
            )  # fmt: skip
            writer = ArchiveWriter(part, manifest)
            for each in row_sets(_tables(connection), found.kind, found.number):
                rows = rows_of(connection, each.table, each.columns, each.which)
                writer.add_table(each.table.name, each.columns, rows)
            if archive_files:
                for file in found.files:
                    writer.add_file(file, home / file)
            writer.close()
            part.chmod(0o600)
            ArchiveReader(part).check()
    except OSError as error:
        raise Invalid(
            "storage",
            expected=Phrase("an archive that can be written"),
            got=Verbatim(error.strerror or error),
            remedy=Phrase("nothing was removed"),
            subject=path,
        ) from None
    return _Draft(name, file_hash(path), manifest)


# ---- Taking ----------------------------------------------------------------------


def _mark(
    database: Engine, home: Path, found: RemovalPreview, draft: _Draft, by: str, until: datetime, *, has_files: bool
) -> int:
    """Mark a thing as removed if it is unchanged since it was archived; returns the removal's number."""
    try:
        with writing(database) as session:
            row = get_thing(session, found.kind, found.number)
            session.refresh(row, with_for_update=True)
            again = preview(session, home, found.kind, found.number)  # nobody can start using it now
            refuse_kept(again)
            _refuse_changed(session, again, found, draft.manifest)
            removal = Removal(
                kind=found.kind,
                number=found.number,
                name=found.name,
                by=by,
                at=datetime.now(UTC),
                size=again.size,
                rows=sum(each.rows for each in draft.manifest.tables.values()),
                files=list(found.files),
                dataset_rows={},
                archive=draft.name,
                sha256=draft.sha256,
                has_files=has_files,
                undo_until=until,
            )
            session.add(removal)
            row.removed_at = removal.at
            if found.kind == ROUND.name:
                removal.dataset_rows = {
                    str(number): count for number, count in rows_of_datasets(session, found.number).items()
                }
            session.flush()
            return removal.id
    except Exception as error:
        with suppress(SQLAlchemyError):  # otherwise the next clean-up checks whether the removal was committed anyway
            _settle_archived_removals(home, database)
        if lost_race(error):
            raise _changed_rows_conflict(found) from None
        raise


def _refuse_changed(session: Session, again: RemovalPreview, found: RemovalPreview, manifest: Manifest) -> None:
    """Raises Conflict if the files or rows differ from those archived."""
    counted = {
        each.table.name: session.scalar(select(func.count()).select_from(each.table).where(each.which))
        for each in row_sets(_tables(session.connection()), found.kind, found.number)
    }
    if again.files != found.files or counted != {name: entry.rows for name, entry in manifest.tables.items()}:
        raise _changed_rows_conflict(found)


def _changed_rows_conflict(found: RemovalPreview) -> Conflict:
    return Conflict(
        "storage",
        expected=Phrase("rows that do not change during the removal"),
        got=Phrase("changed rows"),
        remedy=Phrase("try again"),
        subject=subject_of(found.kind, found.number),
    )


def _take_rows(database: Engine, removal: Removal, until: float) -> bool:
    """Delete or empty the rows of a removal in batches, between which others can write; False if time ran out."""
    with reading(database) as session:
        tables = _tables(session.connection())
        parts = [*_remaining_parts(session, removal, tables)]
    for place, part in enumerate(parts, 1):
        in_turn(transact(database), partial(_take, removal=removal, part=part))
        if place < len(parts) and time.monotonic() >= until:
            return False
    return True


class _Part(NamedTuple):
    """What one transaction takes: rows and, for a round, the `matches` they belong to."""

    rows: Sequence[RowSet]
    matches: Sequence[str] = ()


def _remaining_parts(session: Session, removal: Removal, tables: Mapping[str, Table]) -> Iterator[_Part]:
    """The rows of a removal still to be taken."""
    if removal.kind == ROUND.name:
        for matches in _matches_of(session, removal.number):
            yield _Part([*reversed(row_sets(tables, removal.kind, removal.number, matches))], matches)
        return
    for each in reversed(row_sets(tables, removal.kind, removal.number)):
        keys = [*each.table.primary_key]
        found = session.execute(select(*keys).where(each.which, each.is_left)).all()
        for first in range(0, len(found), _ROWS_AT_ONCE):
            some = tuple_(*keys).in_([tuple(key) for key in found[first : first + _ROWS_AT_ONCE]])
            yield _Part([each._replace(which=some)])


def _take(session: Session, removal: Removal, part: _Part) -> None:
    if part.matches:
        uncount(session, part.matches)
    for table, which, emptied, _ in part.rows:
        if emptied:
            values = {**emptied, **({"removal_id": removal.id} if table.name == "generation" else {})}
            session.execute(update(table).where(which).values(values))
        else:
            session.execute(delete(table).where(which))


def _take_files(home: Path, database: Engine, removal: Removal, until: float) -> None:
    """Move the files that no other thing has to where undoing finds them, if they can be copied in time."""
    kept = folder.removed_path(home, removal.id)
    if removal.files:
        with reading(database) as session:
            own = _own_files(session, home, removal)
        if not folder.copy_ahead(own, home, kept, until):
            return
    sync_commits(database)  # their removal must be durable first
    with writing(database) as session:
        if removal.files:
            lock_tables(session, "dataset", "language_model")
            folder.move(_own_files(session, home, removal), home, kept)
        session.execute(update(Removal).where(Removal.id == removal.id).values(moved=True))


def _own_files(session: Session, home: Path, removal: Removal) -> list[str]:
    owners = Owners(session, home)
    return [name for name in removal.files if not owners.others_of(name, removal.kind, removal.number)]


def _tables(connection: Connection) -> dict[str, Table]:
    return {table.name: table for table in tables_of(connection)}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
