"""The file that a backup is: a ZIP of tables as JSON lines, of files, and of a manifest with the hash of each. Pure.

`manifest.json` names the format, the version of the tables, their columns and numbers of rows, and every file.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from app.core.errors import Invalid, Verbatim, shown
from app.core.validation import is_storable
from app.core.zip_files import BROKEN, check_entries, check_tree

FORMAT = 1
_MANIFEST, _MANIFEST_HASH = "manifest.json", "manifest.sha256"
_PIECE = 1 << 20
_LONGEST_MANIFEST = 1 << 24  # bytes: some 80,000 files
_LONGEST_ROW = 1 << 26  # bytes
_MOST_VALUES = 2_000_000  # per row, including those in lists and mappings: memory depends on these, not on bytes
_ROWS_AT_ONCE, _BYTES_AT_ONCE = 2000, 1 << 23
_DATABASE = "parlor.db"
_RESERVED = ("run", _DATABASE)  # entries of a PARLOR_HOME other than files of rows
_LEVEL = 1  # a tenth of the size in little time


_Count = Annotated[int, Field(ge=0, lt=2**63)]
_Name = Annotated[str, Field(min_length=1, max_length=63)]  # of a table or a column
_Line = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[\x20-\x7e]*$")]


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """A table or a file of the archive: its sha256 and its size in bytes."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: _Count


@dataclass(frozen=True, slots=True)
class TableEntry(ArchiveEntry):
    """A table; each line holds the values of a row in the order of its columns."""

    columns: tuple[_Name, ...] = ()
    rows: _Count = 0


@dataclass(slots=True)
class Manifest:
    """The contents of an archive. `left_out` lists what its rows point to but it lacks, each with the reason."""

    revision: _Line  # of the tables, as the migrations number them
    created_at: _Line
    parlor: _Line  # the version that wrote it
    database: Literal["sqlite", "postgresql"]  # an archive of either can be restored into either
    tables: dict[_Name, TableEntry] = field(default_factory=dict)
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
    """Reads an archive. Raises Invalid for any other file, a changed one, or one written by a newer Parlor.

    Memory holds at most a manifest and a few thousand rows, however much the archive unpacks to.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
            text = self._read_entry(_MANIFEST, _LONGEST_MANIFEST)
            intact = self._read_entry(_MANIFEST_HASH, 100).decode() == hashlib.sha256(text).hexdigest()
        except OSError as error:
            raise Invalid(
                None, expected="a backup that can be read", got=Verbatim(error.strerror or error), subject=path
            ) from None
        except BROKEN:
            raise self._broken_backup_error("no manifest") from None
        if not intact:
            raise self._broken_backup_error("a manifest that was changed")
        self.manifest = self._manifest(text)
        self._check_names()

    def check(self) -> None:
        """Read everything once. Raises Invalid where something is missing or has another hash."""
        for name in self.manifest.tables:
            for _ in self.table(name):
                pass
        for name in self.manifest.files:
            for _ in self.file(name):
                pass

    def table(self, name: str) -> Iterator[list[list[Any]]]:
        """The rows of a table, a few thousand at a time. Raises Invalid at the end if they are not those written."""
        entry, count = self.manifest.tables[name], 0
        rows: list[list[Any]] = []
        size = 0
        for line in self._entry_lines(f"tables/{name}.jsonl", entry):
            count += 1
            rows.append(self._parse_row(line, name, entry, count))
            size += len(line)
            if len(rows) == _ROWS_AT_ONCE or size > _BYTES_AT_ONCE:
                yield rows
                rows, size = [], 0
        if count != entry.rows:
            raise self._broken_backup_error(f"{count} rows of {name}, expected {entry.rows}")
        if rows:
            yield rows

    def file(self, name: str) -> Iterator[bytes]:
        """The bytes of a file. Raises Invalid at the end if it differs from what was written."""
        return self._checked_pieces(f"files/{name}", self.manifest.files[name])

    @property
    def unpacked(self) -> int:
        """The size of all tables and files in bytes."""
        return sum(each.size for each in (*self.manifest.tables.values(), *self.manifest.files.values()))

    # ---- The manifest

    def _manifest(self, text: bytes) -> Manifest:
        try:
            form = _FORM.validate_json(text)
            version = form.get("format")
            if version != FORMAT or isinstance(version, bool):
                raise Invalid(
                    None,
                    expected=f"a backup of format {FORMAT}",
                    got=version,
                    remedy="use a newer Parlor",
                    subject=self._path,
                )
            if missing := [name for name in ("tables", "files") if name not in form]:
                raise self._broken_backup_error(f"a manifest without {missing[0]}")
            return _CONTENTS.validate_json(text, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = shown(".".join(map(str, first["loc"]))) if first["loc"] else "it"
            raise self._broken_backup_error(f"a manifest in which {place} is wrong ({first['msg']})") from None

    def _check_names(self) -> None:
        """Raises Invalid for files outside the places where a backup puts them."""
        for name in self.manifest.files:
            first, *_ = parts = name.split("/")
            odd = any(part in ("", ".", "..") or len(part.encode(errors="replace")) > 255 for part in parts)
            if (
                odd
                or "\\" in name
                or not is_storable(name)
                or first.casefold() in _RESERVED  # some disks ignore case
                or first.casefold().startswith((".", f"{_DATABASE}-"))
            ):
                raise self._broken_backup_error(f"the file name {shown(name)}")
        for name in self.manifest.tables:
            if not name.isidentifier():
                raise self._broken_backup_error(f"the table {shown(name)}")
        try:
            check_tree(list(self.manifest.files), "files")
            check_entries(self._zip.infolist(), "files")
        except Invalid as error:
            raise self._broken_backup_error(error.message) from None

    # ---- The bytes

    def _read_entry(self, name: str, most: int) -> bytes:
        """A whole entry of at most `most` bytes. Raises ValueError for a longer one."""
        with self._zip.open(name) as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise ValueError(name)
        return content

    def _parse_row(self, line: bytes, name: str, entry: TableEntry, number: int) -> list[Any]:
        if sum(map(line.count, (b",", b"[", b"{"))) > _MOST_VALUES:
            raise self._broken_backup_error(f"more than {_MOST_VALUES} values in row {number} of {name}")
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, list) or len(row) != len(entry.columns):
            raise self._broken_backup_error(f"no row of {len(entry.columns)} values as row {number} of {name}")
        return row

    def _entry_lines(self, name: str, entry: ArchiveEntry) -> Iterator[bytes]:
        begun: list[bytes] = []
        for piece in self._checked_pieces(name, entry):
            first, *others = piece.split(b"\n")
            begun.append(first)
            if sum(map(len, begun)) > _LONGEST_ROW:
                raise self._broken_backup_error(f"a row of more than {_LONGEST_ROW >> 20} MB in {name}")
            for other in others:
                yield b"".join(begun)
                begun = [other]
        if any(begun):
            raise self._broken_backup_error(f"a row of {name} that breaks off")

    def _checked_pieces(self, name: str, entry: ArchiveEntry) -> Iterator[bytes]:
        seen, size = hashlib.sha256(), 0
        try:
            with self._zip.open(name) as file:
                while piece := file.read(_PIECE):
                    size += len(piece)
                    if size > entry.size:
                        break
                    seen.update(piece)
                    yield piece
        except BROKEN as error:
            raise self._broken_backup_error(f"{name}, which cannot be read ({error})") from None
        if size != entry.size or seen.hexdigest() != entry.sha256:
            raise self._broken_backup_error(f"other bytes in {name} than were written")

    def _broken_backup_error(self, what: str) -> Invalid:
        return Invalid(
            None, expected="a whole backup", got=Verbatim(what), remedy="take another one", subject=self._path
        )


_CONTENTS = TypeAdapter(Manifest)
_FORM = TypeAdapter(dict[str, Any])
