"""Writing a backup, in one snapshot of the database, while play goes on."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, Engine, select

from app import __version__
from app.backup.archive import ArchiveReader, ArchiveWriter, Manifest
from app.backup.tables import backed_up, backed_up_columns, revision_of, rows_of, snapshot
from app.core.config import ROOT, Settings
from app.core.errors import Conflict, Invalid, Verbatim
from app.core.files import temporary_beside
from app.datasets.store import FOLDER as DATASETS
from app.models import Dataset, LanguageModel
from app.schema import newest_revision

SECRET_KEY = "secret_key"  # noqa: S105 - a file's name


def create(settings: Settings, engine: Engine, path: Path, *, overwrite: bool = False) -> Manifest:
    """Write everything into a file that appears whole or not at all, and that has been read back once.

    Only its owner can read the file: it holds everything in the database, and the key that signs tickets. Raises
    Conflict for an existing file or a database that is not up to date, and Invalid for a file that cannot be written.
    """
    if path.exists() and not overwrite:
        raise Conflict(
            None,
            expected="a file that is not there yet",
            got=Verbatim("one"),
            remedy="name another, or give --overwrite",
            subject=path,
        )
    try:
        with temporary_beside(path) as draft:
            draft.touch(mode=0o600)
            draft.unlink()
            with snapshot(engine) as connection:
                manifest = _write_archive(settings, connection, draft)
            ArchiveReader(draft).check()
            with draft.open("rb") as file:
                os.fsync(file.fileno())
    except OSError as error:
        where = error.filename or path
        raise Invalid(
            None,
            expected="a file that can be written, or read",
            got=Verbatim(error.strerror),
            remedy="nothing was left",
            subject=where,
        ) from None
    return manifest


def _write_archive(settings: Settings, connection: Connection, draft: Path) -> Manifest:
    revision, newest = revision_of(connection), newest_revision()
    if revision is None or revision != newest:
        raise Conflict(
            "database",
            expected=f"the tables of version {newest}",
            got=Verbatim(revision or "none"),
            remedy="`flask db upgrade` makes them",
        )
    now = datetime.now(UTC).isoformat(timespec="seconds")
    kind: Literal["sqlite", "postgresql"] = "sqlite" if connection.dialect.name == "sqlite" else "postgresql"
    manifest = Manifest(revision, now, __version__, kind)
    previous = os.umask(0o077)
    try:
        writer = ArchiveWriter(draft, manifest)
    finally:
        os.umask(previous)
    for table in backed_up(connection):
        writer.add_table(table.name, backed_up_columns(table), rows_of(connection, table))
    for name in _files_named_in_rows(settings, connection, manifest.left_out):
        writer.add_file(name, settings.home / name)
    writer.close()
    return manifest


def _files_named_in_rows(settings: Settings, connection: Connection, left_out: list[str]) -> Iterator[str]:
    """The names of the files that rows point to, relative to PARLOR_HOME. They never change once a row names them."""
    home = settings.home
    for sha256 in connection.scalars(select(Dataset.sha256).distinct().order_by(Dataset.sha256)):
        name = f"{DATASETS}/{sha256}.jsonl"
        if (home / name).is_file():
            yield name
        else:
            left_out.append(f"{name}: the file of a dataset, which is gone")
    models = select(LanguageModel.name, LanguageModel.options).where(LanguageModel.kind == "local")
    folders = {options["path"]: name for name, options in connection.execute(models.order_by(LanguageModel.id))}
    for path, model in folders.items():
        inside = home / path
        if inside.is_dir() and inside.resolve().is_relative_to(home) and not Path(path).is_absolute():
            yield from sorted(found.relative_to(home).as_posix() for found in inside.rglob("*") if found.is_file())
        elif not (ROOT / path).resolve().is_relative_to(ROOT / "data"):  # those come with Parlor
            left_out.append(f"{path}: the checkpoint of {model}, which is not in PARLOR_HOME")
    if not settings.SECRET_KEY and (home / SECRET_KEY).is_file():
        yield SECRET_KEY
