"""Push to a folder. The folder is replaced as a whole or not at all; files that a killed push copied are not copied
again.
"""

import shutil
from pathlib import Path

from app.core.disk import is_full
from app.core.errors import Conflict, Phrase
from app.publication.bundle import MANIFEST, Bundle
from training.hashes import file_hash


def push_to_folder(folder: Path, bundle: Bundle) -> None:
    """Write all files into a folder: a new or empty one, or one that an earlier push wrote.

    Raises Conflict for a folder with other content, and if the disk is full or the folder cannot be written.
    """
    if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or (folder / MANIFEST).is_file())):
        expected = Phrase("an empty folder, or one of an earlier push")
        raise Conflict("to", expected=expected, got=Phrase("something else"), subject=folder)
    part, old = folder.with_name(f".{folder.name}.part"), folder.with_name(f".{folder.name}.old")
    try:
        for name, content in bundle.files.items():
            _write_unless_same(part / name, content, _hash_of(bundle, name))
        for path in sorted(part.rglob("*")):
            if path.is_file() and path.relative_to(part).as_posix() not in bundle.files:
                path.unlink()
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.replace(old)
        part.replace(folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        if is_full(error):
            expected, remedy = Phrase("room for %(size)s bytes", size=bundle.size), Phrase("make room and try again")
            raise Conflict("to", expected=expected, got=Phrase("less"), remedy=remedy, subject=folder) from None
        expected, got = Phrase("a folder that can be written"), error.strerror or type(error).__name__
        raise Conflict("to", expected=expected, got=got, subject=folder) from None


def _hash_of(bundle: Bundle, name: str) -> str:
    return bundle.manifest.sha256 if name == MANIFEST else bundle.manifest.files[name].sha256


def _write_unless_same(path: Path, content: Path | bytes, sha256: str) -> None:
    if path.is_file() and file_hash(path) == sha256:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        shutil.copyfile(content, path)
    if (found := file_hash(path)) != sha256:  # it changed while it was copied
        expected = Phrase("%(name)s with the hash %(sha256)s", name=path.name, sha256=sha256)
        raise Conflict("to", expected=expected, got=found, subject=path)
