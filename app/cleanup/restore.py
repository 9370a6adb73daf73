"""Putting back what was removed, from its archive: the same rows and bytes. And what becomes of archives later."""

import contextlib
import os
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
from app.cleanup.contents import DATASET, get_thing, row_sets, subject_of
from app.cleanup.remove import drop, finish, matches_of
from app.core.config import Settings
from app.core.disk import is_full
from app.core.errors import Conflict, Invalid, NotFound, Phrase, Verbatim
from app.core.extensions import in_turn, reading, transact, writing
from app.core.files import temporary_beside
from app.datasets.store import FOLDER as DATASETS
from app.datasets.store import pieces_of
from app.matches.counts import count_ended
from app.models import Dataset, Removal
from app.rounds.job import ROUND
from training.hashes import file_hash

log = structlog.get_logger()


def restore(settings: Settings, database: Engine, removal_id: int, by: str) -> Removal:
    """Put back what a removal took, all of it or nothing.

    Raises NotFound, Conflict for what is back already or cannot come back, or while somebody else cleans up, and
    Invalid for an archive that is not what was written or a disk without room.
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
    """The removal of that number. Raises NotFound."""
    row = session.get(Removal, removal_id) if 0 < removal_id < 2**31 else None
    if row is None:
        raise NotFound(
            "removal",
            expected=Phrase("the number of one that exists"),
            got=removal_id,
            remedy=Phrase("`flask storage removed` lists them"),
        )
    return row


def free_due(home: Path, database: Engine, now: datetime | None = None) -> int:
    """Delete the files of removals that can no longer be undone, and their archives where these hold no files; and
    what is left of datasets that hold what a person has withdrawn. How many removals; 0 while somebody cleans up.
    """
    now = now or datetime.now(UTC)
    try:
        with folder.cleanup_lock(home, patience=0):
            finish(home, database)
            with reading(database) as session:
                open_ = select(Removal).where(Removal.in_force.is_(True), Removal.archive.is_not(None))
                due = [row for row in session.scalars(open_) if _is_withdrawn(session, row)]
                over = open_.where(Removal.freed_at.is_(None), Removal.undo_until <= now)
                passed = [row for row in session.scalars(over) if row not in due]
                session.expunge_all()
            for row in (*due, *(row for row in passed if not row.has_files)):
                drop(home, database, row)
            for row in passed:
                if row.has_files:
                    _delete_kept(home, database, row)
    except Conflict:
        return 0
    return len(due) + len(passed)


def delete_archive(settings: Settings, database: Engine, removal_id: int) -> None:
    """Delete the archive of a removal for good. Raises NotFound, and Conflict where there is none or it is undone."""
    with folder.cleanup_lock(settings.home):
        finish(settings.home, database)  # which needs the archive to know what is still to be moved
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
        drop(settings.home, database, removal)


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


# ---- The archive and the files -------------------------------------------------------


def _checked_archive(home: Path, removal: Removal) -> ArchiveReader:
    """The archive of a removal that is in force, if it is what was written."""
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
    """The other removals that have taken a file of the same name, as that of a dataset with the same bytes."""
    which = select(Removal).where(Removal.in_force.is_(True), Removal.archive.is_not(None), Removal.id != removal.id)
    found = [row for row in session.scalars(which) if {*row.files} & {*removal.files}]
    session.expunge_all()
    return found


def _refuse_replaced(home: Path, removal: Removal, reader: ArchiveReader) -> None:
    """Raises Conflict where other files lie by now where those of a removal are to be."""
    kept = folder.removed_path(home, removal.id)
    for name in removal.files:
        if not (home / name).exists():
            continue
        if (kept / name).is_file():
            own = file_hash(kept / name)
        elif name in reader.manifest.files:
            own = reader.manifest.files[name].sha256
        else:
            continue  # it has stayed because of another thing
        if file_hash(home / name) != own:
            raise Conflict(
                "removal",
                expected=Phrase("no other files in their place"),
                got=Phrase("another %(name)s", name=name),
                remedy=Phrase("move that away first"),
                subject=_subject(removal),
            )


def _put_files_back(home: Path, removal: Removal, reader: ArchiveReader, others: Sequence[Removal]) -> None:
    """Move the files back; those that are not kept come out of an archive, or from what another removal keeps."""
    kept = folder.removed_path(home, removal.id)
    try:
        for name in removal.files:
            path = kept / name
            if path.is_file() or (home / name).is_file():
                continue
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with temporary_beside(path) as part, part.open("xb") as file:
                file.writelines(_content(home, name, removal, reader, others))
                file.flush()
                os.fsync(file.fileno())
            path.chmod(0o400 if name.startswith(f"{DATASETS}/") else 0o600)
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
    folder.move(removal.files, kept, home)


def _content(
    home: Path, name: str, removal: Removal, reader: ArchiveReader, others: Sequence[Removal]
) -> Iterable[bytes]:
    """The bytes of a file that is not where it was kept. Raises Conflict where nothing has them."""
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
    """Put the rows back, some thousand at a time, between which others write."""
    run = transact(database)
    try:
        for table, _, emptied, _ in row_sets(tables, removal.kind, removal.number):
            columns = reader.manifest.tables[table.name].columns
            statement = _filling(table, columns) if emptied else insert(table)
            mark = "own_" if emptied else ""
            for rows in read_rows(table, columns, reader.table(table.name)):
                values = [{f"{mark}{name}": value for name, value in row.items()} for row in rows]
                in_turn(run, partial(_execute, statement=statement, values=values))
    except IntegrityError:
        raise Conflict(
            "removal",
            expected=Phrase("rows that still fit"),
            got=Phrase("others in their place, or without what they refer to"),
            subject=_subject(removal),
        ) from None


def _execute(session: Session, statement: Executable, values: list[dict[str, Any]]) -> None:
    session.connection().execute(statement, values)


def _unmark(session: Session, removal: Removal, by: str) -> None:
    row = get_thing(session, removal.kind, removal.number)
    session.refresh(row, with_for_update=True)
    own = session.get_one(Removal, removal.id)
    if removal.kind == ROUND.name:
        for some in matches_of(session, removal.number):
            count_ended(session, some)
    row.removed_at = None
    own.restored_at, own.restored_by, own.in_force = datetime.now(UTC), by, None
    session.flush()


def _fitting_tables(connection: Connection, reader: ArchiveReader) -> Mapping[str, Table]:
    """The tables, where a later version still has all columns of the archive."""
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
    """The statement that gives emptied columns their values again, each under its name behind "own_"."""
    key = [column.name for column in table.primary_key]
    values = {name: bindparam(f"own_{name}", type_=table.c[name].type) for name in columns if name not in key}
    more = {"removal_id": None} if table.name == "generation" else {}
    return update(table).where(*(table.c[name] == bindparam(f"own_{name}") for name in key)).values(values | more)


def _subject(removal: Removal) -> Phrase:
    return subject_of(removal.kind, removal.number)
