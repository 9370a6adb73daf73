"""The hashes of files and checkpoints. Loads no torch, so code that passes checkpoints on can check them."""

import hashlib
from pathlib import Path

PROVENANCE = "parlor.json"


def file_hash(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checkpoint_hash(folder: Path) -> str:
    """The sha256 of a checkpoint: of its files' names and hashes in order, excluding its own `parlor.json`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != PROVENANCE)
    lines = "".join(f"{file_hash(path)}  {path.relative_to(folder).as_posix()}\n" for path in files)
    return hashlib.sha256(lines.encode()).hexdigest()
