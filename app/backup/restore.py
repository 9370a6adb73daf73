"""Restoring a backup: all of it or nothing, into an empty installation or, on request, in place of another.

Rows are loaded into a separate database (a file beside the real one, or a schema in PostgreSQL), and migrated and
checked there; files are unpacked beside their places. Only then are both exchanged: the files by renaming, which can be
undone, and the database in one transaction, which comes last.
"""

import fcntl
import filecmp
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Protocol

from flask_migrate import upgrade
from sqlalchemy import Connection, Engine, func, inspect, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from app.backup.archive import ArchiveReader, Manifest
from app.backup.create import SECRET_KEY
from app.backup.tables import load, restart_numbers, revision_of, tables_of
from app.core.config import Settings, sqlite_url
from app.core.disk import MB, free_mb
from app.core.errors import AppError, Conflict, Invalid, Verbatim
from app.core.extensions import db, open_engine, reading, writing
from app.core.files import private_folder
from app.finetuning.files import CHECKPOINTS
from app.matches.sweep import UPKEEP, held_until
from app.models import Campaign, Dataset, LanguageModel, MatchRow, RoundRow, TrainingJob, User
from app.schema import allow_migrations, bare_app, known_revisions

SCHEMA = "parlor_restore"  # holds PostgreSQL's restored tables until the exchange
# Raised by a database, or an older one's migration, for rows that Parlor never wrote.
_MISFITS = (SQLAlchemyError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
_MADE = (MatchRow, RoundRow, Dataset, TrainingJob, Campaign)


def restore(settings: Settings, engine: Engine, path: Path, *, replace: bool = False) -> Manifest:
    """Replace the current contents with the backup, as a whole or not at all.

    Raises Invalid for a file that is not a complete backup of this version or an earlier one, and Conflict if Parlor is
    running or, without `replace`, the installation is not empty.
    """
    reader = ArchiveReader(path)
    if reader.manifest.revision not in known_revisions():
        raise Invalid(
            None,
            expected="tables of a version that this Parlor knows",
            got=Verbatim(reader.manifest.revision),
            remedy=f"use Parlor {reader.manifest.parlor}",
            subject=path,
        )
    reader.check()
    with _stopped(settings.home):
        _refuse_if_used(engine)
        if not replace and (what := _contents_worth_keeping(engine)) is not None:
            raise Conflict(
                "database",
                expected="an empty one",
                got=Verbatim(f"one with {what}"),
                remedy="--replace puts the backup in its place, and keeps nothing of it",
            )
        _refuse_without_room(settings, reader)
        with _staging_folder(settings.home) as folder, _staged(settings, engine, folder, reader) as exchange:
            _unpack(reader, folder / "files")
            with _files_in_place(folder, settings.home, replace=replace):
                exchange()
    return reader.manifest


# ---- Whether it may be done ------------------------------------------------------


@contextmanager
def _stopped(home: Path) -> Iterator[None]:
    """Hold the supervisor's lock, so that Parlor cannot be started meanwhile. Raises Conflict while it runs."""
    private_folder(home / "run")
    with (home / "run" / "supervisor.lock").open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(
                None,
                expected="a Parlor that is stopped",
                got=Verbatim(f"one that runs in {home}"),
                remedy="stop it first",
            ) from None
        yield


def _refuse_if_used(engine: Engine) -> None:
    """Raises Conflict if the upkeep of another machine, or one without a supervisor, is using the database."""
    if not inspect(engine).has_table("lease"):
        return
    with reading(engine) as session:
        until = held_until(session, UPKEEP)
    if until is not None and until > datetime.now(UTC):
        raise Conflict(
            None,
            expected="a Parlor that is stopped",
            got=Verbatim("one whose upkeep is at this database"),
            remedy=f"stop it, wait for {(until - datetime.now(UTC)).total_seconds():.0f} s, and try again",
        )


def _contents_worth_keeping(engine: Engine) -> str | None:
    """What an installation holds that is worth keeping; None for a new one."""
    counts = [(select(func.count()).select_from(table), table.__tablename__) for table in _MADE]
    counts += [
        (select(func.count()).select_from(User).where(User.password_hash.is_not(None)), User.__tablename__),
        (select(func.count()).select_from(LanguageModel).where(LanguageModel.kind == "api"), "language_model"),
    ]
    with engine.connect() as connection:
        there = set(inspect(connection).get_table_names())
        for count, table in counts:
            if table in there and (number := connection.scalar(count) or 0):
                return f"{number} row{'' if number == 1 else 's'} of somebody's in the table {table}"
    return None


def _refuse_without_room(settings: Settings, reader: ArchiveReader) -> None:
    """Raises Invalid if the disk has no room for the unpacked backup, before any of it is written."""
    wanted, free = reader.unpacked // MB, free_mb(settings)
    if wanted > free - settings.LOW_DISK_MB:
        raise Invalid(
            None,
            expected=f"room for the {wanted} MB of the backup",
            got=Verbatim(f"{free} MB free"),
            subject=settings.home,
        )


# ---- The database ----------------------------------------------------------------


@contextmanager
def _staged(settings: Settings, engine: Engine, folder: Path, reader: ArchiveReader) -> "Iterator[_Exchange]":
    """The backup's rows in a separate database, and how to put that in place of the real one."""
    if engine.dialect.name == "sqlite":
        exchange: _Exchange = _SqliteExchange(engine, folder / "parlor.db")
    else:
        exchange = _PostgresExchange(engine, settings.database_url)
    try:
        exchange.prepare()
        staging = bare_app(settings.model_copy(update={"DATABASE_URL": exchange.url}))
        allow_migrations(staging)
        with staging.app_context():
            upgrade(revision=reader.manifest.revision)
            own = open_engine(exchange.url)
            try:
                _load_all_rows(own, reader)
                upgrade()
            except AppError:
                raise
            except _MISFITS as error:
                raise Invalid(
                    "backup",
                    expected="rows that fit the tables and each other",
                    got=Verbatim(_first_line(error)),
                    remedy="take another one",
                ) from None
            finally:
                own.dispose()
                db.engine.dispose()
        yield exchange
    finally:
        exchange.clean_up()


def _load_all_rows(engine: Engine, reader: ArchiveReader) -> None:
    """Load all rows. Raises Invalid if they are inconsistent."""
    with engine.connect() as connection:
        sqlite = connection.dialect.name == "sqlite"
        if sqlite:
            connection.connection.driver_connection.execute("PRAGMA foreign_keys=OFF")  # type: ignore[union-attr]
        with connection.begin():
            tables = {table.name: table for table in tables_of(connection)}
            if unknown := set(reader.manifest.tables) - set(tables):
                raise Invalid(
                    "backup", expected=f"the tables of version {revision_of(connection)}", got=Verbatim(min(unknown))
                )
            for name, table in reversed(tables.items()):
                if name in reader.manifest.tables:
                    connection.execute(table.delete())  # rows inserted by a migration
            for name, table in tables.items():
                if name in reader.manifest.tables:
                    load(connection, table, reader.manifest.tables[name].columns, reader.table(name))
            restart_numbers(connection, tables.values())
            if sqlite and (lost := connection.execute(text("PRAGMA foreign_key_check")).first()) is not None:
                raise Invalid(
                    "backup",
                    expected="rows that refer to others of it",
                    got=Verbatim(f"one of {lost[0]} that does not"),
                )
        if sqlite:
            connection.invalidate()  # its foreign keys are off


def _first_line(error: Exception) -> str:
    """The error in one line, without a database's statement or Python's value."""
    said = str(getattr(error, "orig", None) or error).strip().splitlines()
    return (said[0] if said else type(error).__name__)[:200]


class _Exchange(Protocol):
    """Puts a staged database in the place of the real one, in one transaction."""

    url: str

    def prepare(self) -> None: ...

    def __call__(self) -> None: ...

    def clean_up(self) -> None: ...


class _SqliteExchange:
    """Uses SQLite's own page copying, which is one transaction to anyone with the real file open."""

    def __init__(self, engine: Engine, staging: Path) -> None:
        self._target = Path(str(engine.url.database))
        self._staging = staging
        self.url = sqlite_url(staging)

    def prepare(self) -> None:
        pass

    def __call__(self) -> None:
        self._target.touch(mode=0o600)
        source, target = sqlite3.connect(self._staging), sqlite3.connect(self._target, timeout=10)
        try:
            source.backup(target)
            found = target.execute("PRAGMA integrity_check").fetchone()[0]
            if found != "ok":
                raise Invalid("database", expected="a whole one after the restore", got=Verbatim(found))
            target.execute("PRAGMA journal_mode=WAL")
        except sqlite3.Error as error:
            raise Invalid("database", expected=f"{self._target} to take the backup", got=Verbatim(error)) from None
        finally:
            source.close()
            target.close()

    def clean_up(self) -> None:
        pass  # it is in the staging folder


class _PostgresExchange:
    """Moves the tables out of a separate schema, in a transaction that drops the earlier ones."""

    def __init__(self, engine: Engine, url: str) -> None:
        self._engine = engine
        parts = make_url(url)
        options = f"{parts.query.get('options', '')} -csearch_path={SCHEMA}".strip()
        self.url = parts.update_query_dict({"options": options}).render_as_string(hide_password=False)

    def prepare(self) -> None:
        self.clean_up()
        try:
            with writing(self._engine) as session:
                session.execute(text(f"CREATE SCHEMA {SCHEMA}"))
        except OperationalError as error:
            raise Invalid("database", expected="rights to make a schema", got=Verbatim(error.orig)) from None

    def __call__(self) -> None:
        with self._engine.begin() as connection:
            home = connection.scalar(text("SELECT current_schema()"))
            new = [*self._table_names(connection, SCHEMA)]
            for name in {*self._table_names(connection, home)} & {*new}:
                connection.execute(text(f'DROP TABLE "{home}"."{name}" CASCADE'))
            for name in new:
                connection.execute(text(f'ALTER TABLE {SCHEMA}."{name}" SET SCHEMA "{home}"'))

    def clean_up(self) -> None:
        with self._engine.begin() as connection:
            connection.execute(text(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"))

    @staticmethod
    def _table_names(connection: Connection, schema: str) -> list[str]:
        return inspect(connection).get_table_names(schema)


# ---- The files -------------------------------------------------------------------


@contextmanager
def _staging_folder(home: Path) -> Iterator[Path]:
    """A folder in PARLOR_HOME for files that are not yet in place."""
    for left in home.glob(".restore-*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = home / f".restore-{secrets.token_hex(4)}"
    private_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unpack(reader: ArchiveReader, into: Path) -> None:
    """Write the archive's files under a folder. Raises Invalid without the space or the permission."""
    try:
        for name in reader.manifest.files:
            path = into / name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
            with path.open("wb") as file:
                for piece in reader.file(name):
                    file.write(piece)
    except OSError as error:
        raise Invalid(
            None, expected="room for the backup's files", got=Verbatim(error.strerror), subject=into.parent.parent
        ) from None


def _units(files: Path) -> list[PurePosixPath]:
    """The units of exchange: a checkpoint is a folder that must hold nothing else, everything else is a file."""
    units = set()
    for path in files.rglob("*"):
        name = PurePosixPath(path.relative_to(files).as_posix())
        if path.is_file():
            units.add(PurePosixPath(*name.parts[:2]) if name.parts[0] == CHECKPOINTS else name)
    return sorted(units)


@contextmanager
def _files_in_place(folder: Path, home: Path, *, replace: bool) -> Iterator[None]:
    """Put the files where rows look for them, and undo it if the block raises. Raises Conflict."""
    files, old = folder / "files", folder / "old"
    units = _units(files)
    for unit in units:
        if (
            not replace
            and unit.name != SECRET_KEY
            and (home / unit).exists()
            and not _has_same_contents(files / unit, home / unit)
        ):
            raise Conflict(
                None,
                expected="nothing, or what the backup holds",
                got=Verbatim("something else"),
                remedy="--replace",
                subject=home / unit,
            )
    done: list[PurePosixPath] = []
    try:
        for unit in units:
            (old / unit).parent.mkdir(parents=True, exist_ok=True)
            private_folder((home / unit).parent)
            done.append(unit)
            if (home / unit).exists():
                (home / unit).rename(old / unit)
            (files / unit).rename(home / unit)
        yield
    except BaseException:
        for unit in reversed(done):
            if not (files / unit).exists() and (home / unit).exists():
                (home / unit).rename(files / unit)
            if (old / unit).exists():
                with suppress(OSError):
                    (old / unit).rename(home / unit)
        raise


def _has_same_contents(one: Path, other: Path) -> bool:
    """Whether two files, or folders of files, have the same contents."""
    if one.is_file():
        return other.is_file() and filecmp.cmp(one, other, shallow=False)  # in pieces: models have gigabytes
    names = {path.relative_to(one) for path in one.rglob("*") if path.is_file()}
    others = {path.relative_to(other) for path in other.rglob("*") if path.is_file()}
    return names == others and all(_has_same_contents(one / name, other / name) for name in names)
