"""What Parlor keeps on disk, by kind: the database, and the folders of PARLOR_HOME."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.benchmarks.files import FOLDER as BENCHMARKS
from app.core.config import Settings
from app.core.errors import Phrase
from app.core.files import ARCHIVES, FETCHED, REMOVED
from app.datasets.store import FOLDER as DATASETS
from app.finetuning.files import CHECKPOINTS
from app.finetuning.files import FOLDER as TRAINING
from app.players.local.engines import MERGED

DATABASE, OTHER = "database", "other"
KINDS: Mapping[str, Phrase] = {
    DATABASE: Phrase("Database"),
    CHECKPOINTS: Phrase("Checkpoints of trainings"),
    TRAINING: Phrase("Working files of trainings"),
    MERGED: Phrase("Merged weights of adapters"),
    DATASETS: Phrase("Datasets"),
    BENCHMARKS: Phrase("Files of benchmarks"),
    ARCHIVES: Phrase("Archives of what was removed"),
    REMOVED: Phrase("Files of what was removed, for undoing"),
    FETCHED: Phrase("Files of pulls that have not ended"),
    "logs": Phrase("Logs"),
    OTHER: Phrase("Everything else"),
}


class Stored(NamedTuple):
    """The bytes and files on disk of a kind of KINDS; a database on a server has no files here."""

    kind: str
    size: int
    files: int


class Storage(NamedTuple):
    """What is stored by kind, the largest first, and the bytes of the disk of PARLOR_HOME."""

    kinds: list[Stored]
    free: int
    disk: int

    @property
    def size(self) -> int:
        return sum(each.size for each in self.kinds)


def read_storage(session: Session, settings: Settings) -> Storage:
    """The current sizes. Files that disappear meanwhile are left out."""
    found = {kind: [0, 0] for kind in KINDS}
    for path in _files_below(settings.home):
        try:
            size = path.lstat().st_size
        except OSError:
            continue
        first = path.relative_to(settings.home).parts[0]
        kind = DATABASE if first.startswith("parlor.db") else first if first in KINDS else OTHER
        found[kind][0] += size
        found[kind][1] += 1
    if session.get_bind().dialect.name == "postgresql":
        found[DATABASE][0] += session.scalar(text("SELECT pg_database_size(current_database())")) or 0
    kinds = [Stored(kind, size, files) for kind, (size, files) in found.items()]
    disk = shutil.disk_usage(settings.home)
    return Storage(sorted(kinds, key=lambda each: -each.size), disk.free, disk.total)


def _files_below(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in names)
