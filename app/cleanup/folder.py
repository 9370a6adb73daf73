"""The places of removed things in PARLOR_HOME: their archives and, until undoing ends, their files.

One process at a time changes what is there.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from app.core.errors import Conflict, Phrase
from app.core.files import ARCHIVES, FETCHED, REMOVED, private_file, private_folder

_LOCK = ".lock"
_NEW = ".new"  # suffix of an archive whose removal may not be committed yet
_PATIENCE = 3.0  # seconds
STOPPED_PULLS_KEPT = timedelta(days=7)  # so that the next pull of the same thing resumes


@contextmanager
def cleanup_lock(home: Path, patience: float = _PATIENCE) -> Iterator[None]:
    """Keep all other clean-ups out; the lock ends with the process. Raises Conflict while another has it."""
    folder = home / ARCHIVES
    private_folder(folder)
    private_file(folder / _LOCK)
    with (folder / _LOCK).open("rb") as file:
        end = time.monotonic() + patience
        while not _try_to_lock(file.fileno()):
            if time.monotonic() >= end:
                raise Conflict(
                    "storage",
                    expected=Phrase("no other clean-up at the same time"),
                    got=Phrase("one that is going on"),
                    remedy=Phrase("try again once it has ended"),
                )
            time.sleep(0.05)
        yield


def _try_to_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def archive_path(home: Path, name: str) -> Path:
    """The path of an archive."""
    return home / ARCHIVES / name


def new_path(home: Path, name: str) -> Path:
    """The path of an archive until its removal is committed."""
    return home / ARCHIVES / f"{name}{_NEW}"


def removed_path(home: Path, removal_id: int) -> Path:
    """The folder of the files of a removal that can be undone."""
    return home / REMOVED / str(removal_id)


def settle_archives(home: Path, known: Iterable[str]) -> None:
    """Give the archives of committed removals their names, and delete the drafts of those never committed."""
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


def keep_archive(home: Path, name: str) -> None:
    """Sync an archive to disk before its contents are deleted. Raises OSError."""
    for path in (archive_path(home, name), home / ARCHIVES, home):
        sync(path)


def copy_ahead(names: Iterable[str], source: Path, target: Path, until: float) -> bool:
    """Copy the files still at their source that are to move to another disk, so that `move` only renames.

    False if `until`, of time.monotonic(), came before all were copied: the next call continues. Raises OSError.
    """
    for name in names:
        path, draft = source / name, _draft_of(target / name)
        if not path.exists():
            continue
        _make_parent(draft)
        if path.stat().st_dev != draft.parent.stat().st_dev and not _is_copy(draft, path):
            _copy_to_draft(path, draft)
            if time.monotonic() >= until:
                return False
    return True


def move(names: Iterable[str], source: Path, target: Path) -> None:
    """Move the files still at their source, and delete the folders that are empty then.

    Whenever it is killed, each file is whole at its source, at its target, or at both. Raises OSError.
    """
    emptied, filled, copied = set[Path](), set[Path](), list[Path]()
    for name in names:
        path, new = source / name, target / name
        _draft_of(path).unlink(missing_ok=True)  # left by a killed move in the other direction
        if path.exists():
            _make_parent(new)
            if not _renamed(path, new):
                copied.append(path)
            emptied.update(parent for parent in Path(name).parents if len(parent.parts) > 1)
            filled.update(target / parent for parent in Path(name).parents)
        _draft_of(new).unlink(missing_ok=True)
    if filled and target.parent.is_relative_to(source):
        filled |= {target.parent, source}  # they may contain new folders
    for folder in filled:
        sync(folder)
    for path in copied:  # once their copies are on disk
        path.unlink()
    for folder in sorted(emptied, key=lambda each: -len(each.parts)):
        with suppress(OSError):  # not empty
            (source / folder).rmdir()


def _renamed(path: Path, new: Path) -> bool:
    """Rename a file; False if it lies on another disk, and its copy has the new name instead."""
    try:
        path.replace(new)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        draft = _draft_of(new)
        if not _is_copy(draft, path):
            _copy_to_draft(path, draft)
        draft.replace(new)
        return False
    return True


def _draft_of(path: Path) -> Path:
    """The temporary name of a file being copied to `path`, always the same, so that a later run can continue."""
    return path.with_name(f".{hashlib.sha256(path.name.encode()).hexdigest()[:32]}.copy")


def _make_parent(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)


def _copy_to_draft(path: Path, draft: Path) -> None:
    draft.unlink(missing_ok=True)
    try:
        shutil.copyfile(path, draft)
        sync(draft)
        shutil.copystat(path, draft)  # last: it tells `_is_copy` that the copy is complete
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _is_copy(draft: Path, path: Path) -> bool:
    if not draft.exists():
        return False
    own, other = draft.stat(), path.stat()
    return (own.st_size, own.st_mtime_ns) == (other.st_size, other.st_mtime_ns)


def delete_folder(path: Path) -> None:
    """Delete a folder with everything in it, if it exists."""
    shutil.rmtree(path, ignore_errors=True)


def delete_stopped_pulls(home: Path) -> None:
    """Delete what stopped pulls have fetched, once they have not been continued for STOPPED_PULLS_KEPT."""
    before = time.time() - STOPPED_PULLS_KEPT.total_seconds()
    for path in (home / FETCHED).glob("*"):
        with suppress(FileNotFoundError):
            if max(each.stat().st_mtime for each in (path, *path.rglob("*"))) < before:
                delete_folder(path)


def sync(path: Path) -> None:
    """Sync a file's contents, or the names in a folder, to disk. Raises OSError."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
