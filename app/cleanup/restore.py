"""Putting back what was removed, from its archive: the same rows and bytes. And what becomes of archives later."""

import contextlib
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import structlog
from sqlalchemy import Connection, Engine, Table, bindparam, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.backup.archive import ArchiveReader
from app.backup.tables import load, read_rows, revision_of, tables_of
from app.cleanup import folder
from app.cleanup.contents import DATASET, get_thing, row_sets, subject_of
from app.cleanup.remove import drop, finish, matches_of
from app.core.config import Settings
from app.core.disk import is_full
from app.core.errors import Conflict, Invalid, NotFound, Phrase, Verbatim
from app.core.extensions import reading, writing
from app.core.files import temporary_beside
from app.datasets.store import FOLDER as DATASETS
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
        with writing(database) as session:  # from here on `finish` would take the files away again
            _refuse_unusable(session, removal)
            session.execute(update(Removal).where(Removal.id == removal_id).values(moved=False, freed_at=None))
        try:
            _put_files_back(home, removal, reader)
            with writing(database) as session:
                _restore_rows(session, removal, reader, by)
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


def _put_files_back(home: Path, removal: Removal, reader: ArchiveReader) -> None:
    """Move the files back, or write those that are no longer kept out of the archive."""
    kept = folder.removed_path(home, removal.id)
    missing = [name for name in removal.files if not (kept / name).is_file() and not (home / name).is_file()]
    if lost := [name for name in missing if name not in reader.manifest.files]:
        raise Conflict(
            "removal",
            expected=Phrase("files that are kept for undoing, or in the archive"),
            got=Phrase("none of %(name)s", name=lost[0]),
            subject=_subject(removal),
        )
    try:
        for name in missing:
            path = kept / name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with temporary_beside(path) as part, part.open("xb") as file:
                file.writelines(reader.file(name))
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


# ---- The rows --------------------------------------------------------------------


def _restore_rows(session: Session, removal: Removal, reader: ArchiveReader, by: str) -> None:
    connection = session.connection()
    if reader.manifest.revision != revision_of(connection):
        tables = _known(connection, reader)
    else:
        tables = {table.name: table for table in tables_of(connection)}
    row = get_thing(session, removal.kind, removal.number)
    session.refresh(row, with_for_update=True)
    own = session.get_one(Removal, removal.id)
    try:
        for table, _, emptied, _ in row_sets(tables, removal.kind, removal.number):
            entry = reader.manifest.tables[table.name]
            if emptied:
                _fill(connection, table, entry.columns, reader)
            else:
                load(connection, table, entry.columns, reader.table(table.name))
    except IntegrityError:
        raise Conflict(
            "removal",
            expected=Phrase("rows that still fit"),
            got=Phrase("others in their place, or without what they refer to"),
            subject=_subject(removal),
        ) from None
    if removal.kind == ROUND.name:
        for some in matches_of(session, removal.number):
            count_ended(session, some)
    row.removed_at = None
    own.restored_at, own.restored_by, own.in_force = datetime.now(UTC), by, None
    session.flush()


def _known(connection: Connection, reader: ArchiveReader) -> Mapping[str, Table]:
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


def _fill(connection: Connection, table: Table, columns: tuple[str, ...], reader: ArchiveReader) -> None:
    """Give emptied columns their values again."""
    key = [column.name for column in table.primary_key]
    values = {name: bindparam(f"own_{name}", type_=table.c[name].type) for name in columns if name not in key}
    more = {"removal_id": None} if table.name == "generation" else {}
    statement = update(table).where(*(table.c[name] == bindparam(f"own_{name}") for name in key)).values(values | more)
    for rows in read_rows(table, columns, reader.table(table.name)):
        connection.execute(statement, [{f"own_{name}": value for name, value in row.items()} for row in rows])


def _subject(removal: Removal) -> Phrase:
    return subject_of(removal.kind, removal.number)
