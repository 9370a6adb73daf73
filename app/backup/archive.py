"""The file that a backup is: a ZIP of tables as JSON lines, of files, and of a manifest with the hash of each. Pure.

`manifest.json` names the format, the version of the tables, their columns and numbers of rows, and every file.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from app.errors import Invalid, Verbatim

FORMAT = 1
_MANIFEST, _MANIFEST_HASH = "manifest.json", "manifest.sha256"
_PIECE = 1 << 20
_LEVEL = 1  # a tenth of the size in little time


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """A table or a file of the archive: the sha256 and the number of its bytes."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class TableEntry(ArchiveEntry):
    """A table; each line holds the values of a row in the order of its columns."""

    columns: tuple[str, ...] = ()
    rows: int = 0


@dataclass(slots=True)
class Manifest:
    """What an archive holds. `left_out` names what its rows point to and it does not hold, each with the reason."""

    revision: str  # of the tables, as the migrations number them
    created_at: str
    parlor: str  # the version that wrote it
    database: str  # sqlite | postgresql; an archive of either can be restored into either
    tables: dict[str, TableEntry] = field(default_factory=dict)
    files: dict[str, ArchiveEntry] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}


class ArchiveWriter:
    """Writes an archive; `close` adds the manifest."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self._zip = zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
        self.manifest = manifest

    def add_table(self, name: str, columns: tuple[str, ...], rows: Iterable[list[Any]]) -> None:
        """Write a table, row by row."""
        count = 0

        def lines() -> Iterator[bytes]:
            nonlocal count
            for row in rows:
                count += 1
                yield json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

        entry = self._pour(f"tables/{name}.jsonl", lines())
        self.manifest.tables[name] = TableEntry(entry.sha256, entry.size, columns, count)

    def add_file(self, name: str, path: Path) -> None:
        """Write a file of PARLOR_HOME under its relative name. Raises OSError."""
        with path.open("rb") as file:
            self.manifest.files[name] = self._pour(f"files/{name}", iter(lambda: file.read(_PIECE), b""))

    def close(self) -> None:
        text = json.dumps(self.manifest.to_json(), indent=1).encode()
        self._zip.writestr(_MANIFEST, text)
        self._zip.writestr(_MANIFEST_HASH, hashlib.sha256(text).hexdigest())
        self._zip.close()

    def _pour(self, name: str, pieces: Iterable[bytes]) -> ArchiveEntry:
        seen, size = hashlib.sha256(), 0
        with self._zip.open(name, "w", force_zip64=True) as into:
            for piece in pieces:
                into.write(piece)
                seen.update(piece)
                size += len(piece)
        return ArchiveEntry(seen.hexdigest(), size)


class ArchiveReader:
    """Reads an archive. Raises Invalid for a file that is none, was changed, or was written by a newer Parlor."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
            text = self._zip.read(_MANIFEST)
            intact = self._zip.read(_MANIFEST_HASH).decode() == hashlib.sha256(text).hexdigest()
            raw = json.loads(text)
        except OSError as error:
            raise Invalid(
                None, expected="a backup that can be read", got=Verbatim(error.strerror or error), subject=path
            ) from None
        except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, EOFError):
            raise self._broken("no manifest") from None
        if not intact:
            raise self._broken("a manifest that was changed")
        if raw["format"] != FORMAT:
            raise Invalid(
                None,
                expected=f"a backup of format {FORMAT}",
                got=raw["format"],
                remedy="use a newer Parlor",
                subject=path,
            )
        tables = {
            name: TableEntry(**{**each, "columns": tuple(each["columns"])}) for name, each in raw["tables"].items()
        }
        files = {name: ArchiveEntry(**each) for name, each in raw["files"].items()}
        for name in files:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise self._broken(f"the file name {name!r}")
        known = {name: raw[name] for name in ("revision", "created_at", "parlor", "database", "left_out")}
        self.manifest = Manifest(**known, tables=tables, files=files)

    def check(self) -> None:
        """Read everything once. Raises Invalid where something is missing or has another hash."""
        for name in self.manifest.tables:
            for _ in self.table(name):
                pass
        for name in self.manifest.files:
            for _ in self.file(name):
                pass

    def table(self, name: str) -> Iterator[list[Any]]:
        """The rows of a table. Raises Invalid at its end where it is not what was written."""
        entry, count, rest = self.manifest.tables[name], 0, b""
        for piece in self._pieces(f"tables/{name}.jsonl", entry):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                count += 1
                yield json.loads(line)
        if rest or count != entry.rows:
            raise self._broken(f"{count} rows of {name}, expected {entry.rows}")

    def file(self, name: str) -> Iterator[bytes]:
        """The bytes of a file. Raises Invalid at its end where it is not what was written."""
        return self._pieces(f"files/{name}", self.manifest.files[name])

    def _pieces(self, name: str, entry: ArchiveEntry) -> Iterator[bytes]:
        seen = hashlib.sha256()
        try:
            with self._zip.open(name) as file:
                while piece := file.read(_PIECE):
                    seen.update(piece)
                    yield piece
        except (zipfile.BadZipFile, KeyError, OSError, EOFError, ValueError) as error:
            raise self._broken(f"{name}, which cannot be read ({error})") from None
        except Exception as error:  # zlib.error, which zipfile passes on
            if type(error).__name__ != "error":
                raise
            raise self._broken(f"{name}, which cannot be read ({error})") from None
        if seen.hexdigest() != entry.sha256:
            raise self._broken(f"other bytes in {name} than were written")

    def _broken(self, what: str) -> Invalid:
        return Invalid(
            None, expected="a whole backup", got=Verbatim(what), remedy="take another one", subject=self._path
        )
