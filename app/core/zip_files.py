"""Archives: the allowed entries of foreign archives, the errors of reading them, and entries of our own. Pure."""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence

from app.core.errors import Invalid, Phrase, Verbatim

# Raised by zipfile for a file that is no archive, truncated, inconsistent or locked by a password.
BROKEN: tuple[type[Exception], ...] = (
    OSError, zipfile.BadZipFile, zlib.error, struct.error, RuntimeError, EOFError, ValueError, LookupError,
    OverflowError,
)  # fmt: skip
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others allocate dictionaries as large as the archive says
_ENCRYPTED = 0x1
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # that zip can store


def plain_entry(name: str) -> zipfile.ZipInfo:
    """An entry for writing an archive: without a time, so that the same content gives the same bytes, and with
    permissions that let its owner read the unpacked file.
    """
    entry = zipfile.ZipInfo(name, _EARLIEST)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
    return entry


def zipped(folder: str, files: Mapping[str, bytes]) -> bytes:
    """An archive of files by name, in a folder with the given name; the same files give the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, found in files.items():
            archive.writestr(plain_entry(f"{folder}/{name}"), found)
    return content.getvalue()


def check_entries(entries: Sequence[zipfile.ZipInfo], field: str) -> None:
    """Raises Invalid unless all entries are plain files with unique names."""
    for entry in entries:
        if entry.flag_bits & _ENCRYPTED:
            raise _invalid_entry(field, Phrase("files without a password"), entry)
        if entry.compress_type not in _PACKINGS:
            raise _invalid_entry(field, Phrase("files that are stored or deflated"), entry)
        if (kind := stat.S_IFMT(entry.external_attr >> 16)) and kind != stat.S_IFREG:
            raise _invalid_entry(field, Phrase("files, not links"), entry)
    check_tree([entry.filename for entry in entries], field)


def check_tree(names: Sequence[str], field: str) -> None:
    """Raises Invalid for a duplicate name, or a name of both a file and a folder."""
    seen: set[str] = set()
    folders: set[str] = set()
    for name in names:
        if name in seen:
            raise Invalid(field, expected=Phrase("each file once"), got=name)
        seen.add(name)
        parts = name.split("/")
        folders.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
    for name in names:
        if name in folders:
            raise Invalid(field, expected=Phrase("files and folders with names of their own"), got=name)


def _invalid_entry(field: str, expected: Phrase, entry: zipfile.ZipInfo) -> Invalid:
    return Invalid(field, expected=expected, got=Verbatim(entry.filename[:200]))
