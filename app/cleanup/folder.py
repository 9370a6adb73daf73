"""Where removed things are in PARLOR_HOME: their archives, and until undoing ends their files. One process at a time
changes what is there.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from app.core.errors import Conflict, Phrase
from app.core.files import ARCHIVES, REMOVED, private_file, private_folder

_LOCK = ".lock"
_NEW = ".new"  # behind the name of an archive whose removal may not be committed yet
_PATIENCE = 3.0  # seconds


@contextmanager
def cleanup_lock(home: Path, patience: float = _PATIENCE) -> Iterator[None]:
    """Keep all other clean-ups out; the lock goes with the process. Raises Conflict while another one has it."""
    folder = home / ARCHIVES
    private_folder(folder)
    private_file(folder / _LOCK)
    with (folder / _LOCK).open("rb") as file:
        end = time.monotonic() + patience
        while not _locked(file.fileno()):
            if time.monotonic() >= end:
                raise Conflict(
                    "storage",
                    expected=Phrase("no other clean-up at the same time"),
                    got=Phrase("one that is going on"),
                    remedy=Phrase("try again once it has ended"),
                )
            time.sleep(0.05)
        yield


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def archive_path(home: Path, name: str) -> Path:
    """Where an archive is."""
    return home / ARCHIVES / name


def new_path(home: Path, name: str) -> Path:
    """Where an archive is until its removal is committed."""
    return home / ARCHIVES / f"{name}{_NEW}"


def removed_path(home: Path, removal_id: int) -> Path:
    """The folder of the files of a removal that can be undone."""
    return home / REMOVED / str(removal_id)


def settle_archives(home: Path, known: Iterable[str]) -> None:
    """Give archives of removals that are committed their names, and delete drafts of those that never were."""
    names = {*known}
    for path in (home / ARCHIVES).glob(f"*{_NEW}"):
        name = path.name.removesuffix(_NEW)
        if name in names:
            path.replace(archive_path(home, name))
        else:
            path.unlink(missing_ok=True)
    for path in (home / ARCHIVES).glob(".*.part"):
        path.unlink(missing_ok=True)
    for path in (home / REMOVED).glob(".*.part"):
        path.unlink(missing_ok=True)


def move(names: Iterable[str], source: Path, target: Path) -> None:
    """Move files, as far as they are at their source, and delete the folders that are empty then."""
    folders: set[Path] = set()
    for name in names:
        path = source / name
        if not path.exists():
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.replace(target / name)
        folders.update(parent for parent in Path(name).parents if len(parent.parts) > 1)
    for folder in sorted(folders, key=lambda each: -len(each.parts)):
        with suppress(OSError):  # which holds something else
            (source / folder).rmdir()
    _sync(target)


def delete_folder(path: Path) -> None:
    """Delete a folder with all that is in it, if it is there."""
    shutil.rmtree(path, ignore_errors=True)


def _sync(folder: Path) -> None:
    """Have the disk keep what was renamed into a folder."""
    if not folder.is_dir():
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
