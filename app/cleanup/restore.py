"""Restoring removed things from their archives, with the same rows and bytes, and deleting archives later."""

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import Connection, Engine, Executable, Table, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.backup.archive import ArchiveReader
from app.backup.tables import read_rows, tables_of
from app.cleanup import folder
from app.cleanup.contents import DATASET, MODEL, get_thing, row_sets, subject_of
from app.cleanup.remove import drop, finish
from app.core.config import Settings
from app.core.disk import is_full
from app.core.errors import Conflict, Invalid, NotFound, Phrase, Verbatim
from app.core.extensions import in_turn, reading, transact, writing
from app.core.files import replace_file
from app.datasets.store import FOLDER as DATASETS
from app.datasets.store import pieces_of
from app.inference.weights import base_of
from app.matches.counts import count_ended
from app.models import Dataset, Removal
from app.players.local.options import resolve
from training.hashes import file_hash

log = structlog.get_logger()
_LAST_SEAT = 1  # archives have the seats of a match in their order, after the match


def restore(settings: Settings, database: Engine, removal_id: int, by: str) -> Removal:
    """Restore everything that a removal took, or nothing.

    Raises NotFound, Conflict for a removal that is already undone or cannot be undone, or while another cleanup runs,
    and Invalid for an archive that differs from what was written or a disk without room.
    """
    home = settings.home
    with folder.cleanup_lock(home):
        finish(home, database)
        with reading(database) as session:
            removal = get_removal(session, removal_id)
            session.expunge(removal)
        reader = _checked_archive(home, removal)
        with reading(database) as session:
            tables = _fitting_tables(session.connection(), reader)
            others = _others_with(session, removal)
        _refuse_replaced(home, removal, reader)
        with writing(database) as session:  # from here on `finish` would take rows and files away again
            _refuse_unusable(session, removal)
            session.execute(update(Removal).where(Removal.id == removal_id).values(moved=False, freed_at=None))
        try:
            _put_files_back(home, removal, reader, others)
            with reading(database) as session:
                _refuse_without_base(session, home, removal)
            _load_rows(database, removal, reader, tables)
            with writing(database) as session:
                _unmark(session, removal, by)
        except BaseException:
            finish(home, database)
            raise
        drop(home, database, removal)
    log.info("restored", kind=removal.kind, number=removal.number, name=removal.name, by=by, removal=removal_id)
    return removal


def get_removal(session: Session, removal_id: int) -> Removal:
    """The removal with this number. Raises NotFound."""
    row = session.get(Removal, removal_id) if 0 < removal_id < 2**31 else None
    if row is None:
        raise NotFound(
            "removal",
            expected=Phrase("the number of one that exists"),
            got=removal_id,
            remedy=Phrase("`flask storage removed` lists them"),
        )
    return row


def free_due(home: Path, database: Engine, now: datetime | None = None, seconds: float = math.inf) -> int:
    """Delete the files of removals that can no longer be undone, their archives if these hold no files, and what is
    left of datasets that hold withdrawn data. The number of removals; 0 while another cleanup runs.

    Before that, it does what `finish` does, for at most `seconds`.
    """
    now = now or datetime.now(UTC)
    try:
        with folder.cleanup_lock(home, patience=0):
            finish(home, database, seconds)
            with reading(database) as session:
                open_ = select(Removal).where(Removal.in_force.is_(True), Removal.archive.is_not(None))
                due = [row for row in session.scalars(open_) if _is_withdrawn(session, row)]
                over = open_.where(Removal.moved, Removal.freed_at.is_(None), Removal.undo_until <= now)
                passed = [row for row in session.scalars(over) if row not in due]
                session.expunge_all()
            for row in (*due, *(row for row in passed if not row.has_files)):
                _hand_over(home, database, row)
                drop(home, database, row)
            for row in passed:
                if row.has_files:
                    _delete_kept(home, database, row)
    except Conflict:
        return 0
    return len(due) + len(passed)


def delete_archive(settings: Settings, database: Engine, removal_id: int) -> None:
    """Delete the archive of a removal for good. Raises NotFound, and Conflict if it has none or is undone."""
    with folder.cleanup_lock(settings.home):
        finish(settings.home, database)  # needs the archive to know what remains to be moved
        with reading(database) as session:
            removal = get_removal(session, removal_id)
            session.expunge(removal)
        if removal.archive is None:
            raise Conflict(
                "removal",
                expected=Phrase("one that has an archive"),
                got=Phrase("one without"),
                subject=_subject(removal),
            )
        _hand_over(settings.home, database, removal)
        drop(settings.home, database, removal)


def _hand_over(home: Path, database: Engine, removal: Removal) -> None:
    """Give another removal the bytes that only this one keeps and that undoing the other needs."""
    with reading(database) as session:
        others = [each for each in _others_with(session, removal) if not _is_withdrawn(session, each)]
    kept, archive = folder.removed_path(home, removal.id), folder.archive_path(home, str(removal.archive))
    for name in removal.files:
        needing = [each for each in others if name in each.files]
        if not needing or (home / name).is_file() or any(_keeps(home, each, name) for each in needing):
            continue
        target = folder.removed_path(home, needing[0].id)
        if (kept / name).is_file():
            folder.move([name], kept, target)
        elif removal.has_files:
            _write_kept(target, name, ArchiveReader(archive).file(name))


def _keeps(home: Path, removal: Removal, name: str) -> bool:
    return removal.has_files or (folder.removed_path(home, removal.id) / name).is_file()


def _delete_kept(home: Path, database: Engine, removal: Removal) -> None:
    folder.delete_folder(folder.removed_path(home, removal.id))
    with writing(database) as session:
        session.execute(update(Removal).where(Removal.id == removal.id).values(freed_at=datetime.now(UTC)))


def _is_withdrawn(session: Session, removal: Removal) -> bool:
    row = session.get(Dataset, removal.number) if removal.kind == DATASET else None
    return row is not None and row.unusable_at is not None


def _refuse_unusable(session: Session, removal: Removal) -> None:
    if _is_withdrawn(session, removal):
        raise Conflict(
            "removal",
            expected=Phrase("one that may be put back"),
            got=Phrase("a dataset that holds what a person has withdrawn"),
            subject=_subject(removal),
        )


def _refuse_without_base(session: Session, home: Path, removal: Removal) -> None:
    """Raises Conflict for adapters whose base checkpoint was removed, because nothing can load them without it."""
    if removal.kind != MODEL:
        return
    row = get_thing(session, MODEL, removal.number)
    base = base_of(resolve(home, str(row.options["path"])).resolve())
    taken = select(Removal).where(Removal.kind == MODEL, Removal.in_force.is_(True), Removal.id != removal.id)
    for other in session.scalars(taken.order_by(Removal.id)):
        lost = (home / name for name in other.files if not (home / name).exists())
        if other.number == row.adapter_base_id or (
            base is not None and any(path.is_relative_to(base.folder.resolve()) for path in lost)
        ):
            raise Conflict(
                "removal",
                expected=Phrase("adapters whose checkpoint is there"),
                got=Phrase("some over %(name)s, which was removed", name=other.name),
                remedy=Phrase("put back removal %(number)s first", number=other.id),
                subject=_subject(removal),
            )


# ---- The archive and the files -------------------------------------------------------


def _checked_archive(home: Path, removal: Removal) -> ArchiveReader:
    """The archive of an active removal, checked to be what was written."""
    subject = _subject(removal)
    if not removal.in_force:
        raise Conflict(
            "removal",
            expected=Phrase("one that was not put back"),
            got=Phrase("one that %(by)s has put back", by=Verbatim(removal.restored_by)),
            subject=subject,
        )
    path = None if removal.archive is None else folder.archive_path(home, removal.archive)
    if path is None or not path.is_file():
        raise Conflict(
            "removal", expected=Phrase("one whose archive is there"), got=Phrase("one without"), subject=subject
        )
    reader = ArchiveReader(path)
    reader.check()
    if file_hash(path) != removal.sha256:
        raise Invalid(
            "removal", expected=Phrase("the archive that was written"), got=Phrase("another file"), subject=path
        )
    return reader


def _others_with(session: Session, removal: Removal) -> list[Removal]:
    """The other removals that took a file of the same name, such as that of a dataset with the same bytes."""
    which = select(Removal).where(Removal.in_force.is_(True), Removal.archive.is_not(None), Removal.id != removal.id)
    found = [row for row in session.scalars(which) if {*row.files} & {*removal.files}]
    session.expunge_all()
    return found


def _refuse_replaced(home: Path, removal: Removal, reader: ArchiveReader) -> None:
    """Raises Conflict if other files now lie where those of a removal belong."""
    kept = folder.removed_path(home, removal.id)
    for name in removal.files:
        if not (home / name).exists():
            continue
        if (kept / name).is_file():
            own = file_hash(kept / name)
        elif name in reader.manifest.files:
            own = reader.manifest.files[name].sha256
        else:
            continue  # kept because another thing uses it
        if file_hash(home / name) != own:
            raise Conflict(
                "removal",
                expected=Phrase("no other files in their place"),
                got=Phrase("another %(name)s", name=name),
                remedy=Phrase("move that away first"),
                subject=_subject(removal),
            )


def _put_files_back(home: Path, removal: Removal, reader: ArchiveReader, others: Sequence[Removal]) -> None:
    """Move the files back; files that are no longer kept come from an archive, or from what another removal keeps."""
    kept = folder.removed_path(home, removal.id)
    try:
        for name in removal.files:
            if not (kept / name).is_file() and not (home / name).is_file():
                _write_kept(kept, name, _find_file_content(home, name, removal, reader, others))
        folder.move(removal.files, kept, home)
    except OSError as error:
        with contextlib.suppress(OSError):
            if removal.freed_at is not None:
                folder.delete_folder(kept)
        got = Phrase("a disk that is full") if is_full(error) else Verbatim(error.strerror)
        raise Invalid(
            "removal",
            expected=Phrase("room for its files"),
            got=got,
            remedy=Phrase("nothing was put back"),
            subject=kept,
        ) from None


def _write_kept(kept: Path, name: str, pieces: Iterable[bytes]) -> None:
    """Write a file to the folder that undoing takes files from. Raises OSError."""
    path = kept / name
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(path, pieces)
    path.chmod(0o400 if name.startswith(f"{DATASETS}/") else 0o600)
    for each in (path.parent, kept, kept.parent):
        folder.sync(each)


def _find_file_content(
    home: Path, name: str, removal: Removal, reader: ArchiveReader, others: Sequence[Removal]
) -> Iterable[bytes]:
    """The bytes of a file that is no longer where it was kept. Raises Conflict if they are nowhere."""
    if name in reader.manifest.files:
        return reader.file(name)
    for other in others:
        if (path := folder.removed_path(home, other.id) / name).is_file():
            return pieces_of(path)
        if other.has_files and name in other.files:
            return ArchiveReader(folder.archive_path(home, str(other.archive))).file(name)
    raise Conflict(
        "removal",
        expected=Phrase("files that are kept for undoing, or in the archive"),
        got=Phrase("none of %(name)s", name=name),
        subject=_subject(removal),
    )


# ---- The rows --------------------------------------------------------------------


def _load_rows(database: Engine, removal: Removal, reader: ArchiveReader, tables: Mapping[str, Table]) -> None:
    """Restore the rows in batches of some thousands, so that others can write in between."""
    run = transact(database)
    try:
        for table, _, emptied, _ in row_sets(tables, removal.kind, removal.number):
            columns = reader.manifest.tables[table.name].columns
            statement = _filling(table, columns) if emptied else insert(table)
            mark = "own_" if emptied else ""
            for rows in read_rows(table, columns, reader.table(table.name)):
                full = (row | _later(table, row) for row in rows)
                values = [{f"{mark}{name}": value for name, value in row.items()} for row in full]
                seated = [row["match_id"] for row in rows if table.name == "seat" and row["seat"] == _LAST_SEAT]
                in_turn(run, partial(_execute, statement=statement, values=values, seated=seated))
    except IntegrityError:
        raise Conflict(
            "removal",
            expected=Phrase("rows that still fit"),
            got=Phrase("other rows in their place, or missing references"),
            subject=_subject(removal),
        ) from None


def _later(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns missing from a row that an earlier version archived, with the values that migrations give existing
    rows.
    """
    if table.name != "match" or "moves" in row:
        return {}
    over = row["status"] == "over"
    return {"moves": row["ply"] if over else None, "refused": row["violations"] if over else None}


def _execute(session: Session, statement: Executable, values: list[dict[str, Any]], seated: Sequence[str] = ()) -> None:
    """Restore rows; `seated` are the matches that these rows complete, and which are therefore counted again."""
    session.connection().execute(statement, values)
    if seated:
        count_ended(session, seated)


def _unmark(session: Session, removal: Removal, by: str) -> None:
    row = get_thing(session, removal.kind, removal.number)
    session.refresh(row, with_for_update=True)
    _refuse_unusable(session, removal)  # a person may have withdrawn meanwhile
    own = session.get_one(Removal, removal.id)
    row.removed_at = None
    own.restored_at, own.restored_by, own.in_force = datetime.now(UTC), by, None
    session.flush()


def _fitting_tables(connection: Connection, reader: ArchiveReader) -> Mapping[str, Table]:
    """The tables, checked to still have all columns of the archive."""
    tables = {table.name: table for table in tables_of(connection)}
    for name, entry in reader.manifest.tables.items():
        if name not in tables or not set(entry.columns) <= set(tables[name].columns.keys()):
            raise Conflict(
                "removal",
                expected=Phrase("an archive of these tables"),
                got=Phrase("one of version %(revision)s", revision=reader.manifest.revision),
                remedy=Phrase("restore it with Parlor %(version)s", version=reader.manifest.parlor),
            )
    return tables


def _filling(table: Table, columns: Sequence[str]) -> Executable:
    """The statement that restores the values of emptied columns, each bound to its name prefixed with "own_"."""
    key = [column.name for column in table.primary_key]
    values = {name: bindparam(f"own_{name}", type_=table.c[name].type) for name in columns if name not in key}
    more = {"removal_id": None} if table.name == "generation" else {}
    return update(table).where(*(table.c[name] == bindparam(f"own_{name}") for name in key)).values(values | more)


def _subject(removal: Removal) -> Phrase:
    return subject_of(removal.kind, removal.number)
