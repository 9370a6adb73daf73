"""Import of a file of rows made elsewhere as a dataset: read once, checked row by row, written in our format.

A file with bad rows is refused unless they are to be skipped. A file imported before gives the same dataset.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import BinaryIO

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Invalid, NotFound, Phrase, Verbatim
from app.core.extensions import Transact
from app.datasets import register
from app.datasets.import_tally import ImportTally
from app.datasets.importers.spec import DatasetImportSpec
from app.datasets.importers.training_rows import FORMATS
from app.datasets.row_files import read_rows
from app.datasets.store import UnregisteredDataset, path_of, write_file
from app.models import Dataset, MatchRow

_SHOWN = 3  # bad rows in one line
_IDS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class RowImport:
    """A file to import, open for reading from its beginning, and how to import it.

    The spec has its name at its origin. `most` is the maximum of unpacked bytes.
    """

    file: BinaryIO
    spec: DatasetImportSpec
    most: int | None = None


@dataclass(frozen=True, slots=True)
class ReadImport:
    """The result of reading: an existing dataset (`dataset_id`), or a draft to register; neither if it was refused.

    `tally` has the bad rows; None if nothing had to be read.
    """

    tally: ImportTally
    dataset_id: int | None = None
    draft: UnregisteredDataset | None = None


def read_import(session: Session, home: Path, wanted: RowImport) -> ReadImport:
    """Read a file and write its rows to a dataset file.

    Raises Invalid for a file that cannot be read to its end, and for one without a good row; bad rows are part of the
    result.
    """
    wanted.file.seek(0)
    sha256 = hashlib.file_digest(wanted.file, "sha256").hexdigest()  # type: ignore[arg-type]  # has readinto
    size = wanted.file.tell()
    file_name, row_format = wanted.spec.file, wanted.spec.format
    known, tally = _imported_before(session, sha256, row_format), ImportTally(FORMATS[row_format])
    if known is not None and _has_file(home, known):
        return ReadImport(tally, known.id)

    def lines() -> Iterator[bytes]:
        yield from tally.lines(read_rows(wanted.file, file_name, wanted.most))
        if tally.bad and not wanted.spec.skip_bad:
            raise _Refused
        if not tally.rows:
            raise _without_rows(wanted, tally)

    try:
        path = write_file(home, lines(), tally)
    except _Refused:
        return ReadImport(tally)
    if known is not None and known.sha256 == tally.sha256:
        return ReadImport(tally, known.id)  # its file was missing and has been restored
    called = _printable(PurePath(file_name).name)
    source = {"file": called, "format": row_format, "sha256": sha256, "size": size, "refused": tally.bad}
    return ReadImport(tally, draft=tally.draft(path, source, _matches_here(session, tally.groups)))


def register_read(transact: Transact, wanted: RowImport, found: ReadImport) -> int:
    """The number of the dataset that was read, which is registered if it is a new one. Raises Invalid for bad rows."""
    if found.dataset_id is not None:
        return found.dataset_id
    if found.draft is None:
        raise refusal(wanted, found.tally)
    return register.save(transact, found.draft, wanted.spec.name or default_name(wanted.spec.file))


def refusal(wanted: RowImport, found: ImportTally) -> Invalid:
    """The error for a file refused because of bad rows: the first of them in one line."""
    first = Verbatim("; ".join(f"row {each.number}: {each.error.message}" for each in found.refused[:_SHOWN]))
    more = found.bad - len(found.refused[:_SHOWN])
    listed = Phrase("%(rows)s; and %(more)s more", rows=first, more=more) if more else first
    return Invalid(
        None,
        expected=Phrase("rows of the format %(format)s", format=wanted.spec.format),
        got=Phrase("%(bad)s of %(all)s that are not (%(rows)s)", bad=found.bad, all=found.read, rows=listed),
        remedy=Phrase("fix them, or leave them out (--skip-bad)"),
        subject=Verbatim(wanted.spec.file),
    )


def default_name(file_name: str) -> str:
    """The default name for the dataset of a file."""
    stem = PurePath(file_name).name
    for ending in (".gz", ".jsonl", ".json"):
        stem = stem.removesuffix(ending)
    return _printable(stem).strip()[:80].strip() or "import"


def _printable(text: str) -> str:
    return "".join(each for each in text if each.isprintable())


class _Refused(Exception):
    """The file has bad rows and is therefore refused as a whole."""


def _without_rows(wanted: RowImport, found: ImportTally) -> Invalid:
    if found.bad:
        return refusal(wanted, found)
    expected = Phrase("rows of the format %(format)s", format=wanted.spec.format)
    return Invalid(None, expected=expected, got=Phrase("none"), subject=Verbatim(wanted.spec.file))


# ---- Before -----------------------------------------------------------------------


def _imported_before(session: Session, sha256: str, format_name: str) -> Dataset | None:
    source = Dataset.spec["imported"]
    same = source["sha256"].as_string() == sha256, source["format"].as_string() == format_name
    return session.scalar(select(Dataset).where(Dataset.complete, *same).order_by(Dataset.id.desc()).limit(1))


def _has_file(home: Path, row: Dataset) -> bool:
    try:
        return path_of(home, row).is_file()
    except NotFound:
        return False


# ---- Where rows are from ----------------------------------------------------------


def _matches_here(session: Session, groups: Sequence[tuple[str, int] | None]) -> set[str]:
    """The matches that exist in this database: their rows link to them."""
    return {
        match
        for part in _batches_of_ids(sorted({each[0] for each in groups if each}))
        for match in _existing_match_ids(session, part)
    }


def _existing_match_ids(session: Session, ids: Sequence[str]) -> Iterator[str]:
    yield from session.scalars(select(MatchRow.id).where(MatchRow.id.in_(ids)))


def _batches_of_ids(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), _IDS_AT_ONCE):
        yield ids[start : start + _IDS_AT_ONCE]
