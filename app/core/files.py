"""Files and folders that are written completely or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

ARCHIVES, REMOVED = "archives", "removed"  # in PARLOR_HOME: archives of removed things, and their files
FETCHED = "pulled"  # in PARLOR_HOME: what is pulled from a hub, until it is registered


@contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` for writing a file or a folder, so that `path` is never incomplete.

    It replaces `path` when the block ends, and is deleted when the block raises. Raises OSError.
    """
    draft = path.with_name(f".{path.name[:80]}.{secrets.token_hex(4)}.part")
    try:
        yield draft
        draft.replace(path)
    except BaseException:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)
        raise


def replace_file(path: Path, pieces: Iterable[bytes], *, private: bool = False) -> None:
    """Write all pieces to a file, which is replaced completely or left as it was; `private` makes it readable by its
    owner only.

    Raises OSError.
    """
    with temporary_beside(path) as draft, draft.open("xb") as file:
        if private:
            draft.chmod(0o600)
        write_all(pieces, file)
        os.fsync(file.fileno())


def write_all(pieces: Iterable[bytes], into: BinaryIO) -> None:
    """Write all pieces."""
    for piece in pieces:
        into.write(piece)
    into.flush()


def private_folder(path: Path) -> None:
    """Create a folder, or change an existing one, so that only its owner can look into it. Raises OSError."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_mode & 0o077:
        path.chmod(0o700)


def private_file(path: Path) -> None:
    """Create a file, or change an existing one, so that only its owner can read it. Raises OSError."""
    path.touch(mode=0o600)
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


def file_problem(error: OSError | UnicodeDecodeError) -> str:
    """What was found in place of a file that can be read, in a few words without its path."""
    if isinstance(error, UnicodeDecodeError):
        return "one that is not UTF-8"
    return "a folder" if isinstance(error, IsADirectoryError) else (error.strerror or str(error)).lower()
