"""The archive: all tables as CSV, the logs as JSON lines, the designs, a codebook, and the SHA-256 of each file.

Two archives of the same state are identical bytes: nothing in one says when or by whom it was made. The archive of a
frozen wave never changes; what came later has an archive of its own. Files are written while their rows are read from
the database, so memory does not grow with the study.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.csv_tables import CODEBOOK, ROWS_AT_ONCE, Column, CountedRows, to_csv, with_short_names
from app.core.files import temporary_beside
from app.core.r_and_stata import line_files
from app.core.zip_files import plain_entry
from app.models import Enrolment, Wave
from app.studies.export.analysis import analysis_columns, analysis_rows, person_answers
from app.studies.export.columns import DATA_OF, OF_WHOM, of_people, streamed
from app.studies.export.logs import IDS_EXPORTED, match_events, study_events
from app.studies.export.scope import DataTable, ExportScope
from app.studies.export.surveys import (
    CODES,
    ESCAPED,
    QUIZZES,
    REASONS,
    SURVEYS,
    PersonAnswers,
    answer_columns,
    answer_rows,
    quiz_rows,
    survey_rows,
)
from app.studies.export.tables import stored_tables, tables_since_freeze
from app.studies.progress import log_wave_event

_README = "README.txt"
_CODEBOOK = "codebook.csv"
_SINCE = """payments.csv has all payments as they are now, later adjustments among them, consents.csv all consents with
what was withdrawn since, and log.jsonl what happened in the waves after they were frozen. codebook.csv says what each
column means; read.R and read.do read the tables in R and in Stata."""
_SUMS = "SHA256SUMS"


class WrittenFile(NamedTuple):
    """A file of an archive."""

    name: str
    rows: int
    sha256: str


class _Archive:
    """An archive that is written file by file, each in pieces."""

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED)
        self.files: list[WrittenFile] = []

    def __enter__(self) -> "_Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def add(self, name: str, pieces: Iterable[bytes], rows: CountedRows | None = None) -> None:
        """Write a file from `pieces`, which are made from `rows`."""
        info = plain_entry(name)
        digest = hashlib.sha256()
        with self._zip.open(info, "w", force_zip64=True) as file:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
        self.files.append(WrittenFile(name, rows.seen if rows else 0, digest.hexdigest()))


def read_one_moment(session: Session) -> None:
    """Make a session that has read nothing yet see the database in its current state until it ends."""
    if session.get_bind().dialect.name == "postgresql":  # SQLite reads a single moment anyway
        session.connection(execution_options={"isolation_level": "REPEATABLE READ"})


def note_ids(session: Session, scope: ExportScope, by: str | None) -> None:
    """Log in each wave that the recruiter's ids are exported; to be committed before they are."""
    for wave_id in scope.waves:
        log_wave_event(session, wave_id, IDS_EXPORTED, {"by": by})
    session.flush()


def write_archive(
    session: Session, scope: ExportScope, path: Path, *, guard: bool = False, bom: bool = False
) -> Sequence[WrittenFile]:
    """Write an archive, all or nothing. `guard` and `bom` are those of `to_csv`. Raises OSError."""
    with temporary_beside(path) as draft:
        with _Archive(draft) as archive:
            draft.chmod(0o600)
            _write_all(session, scope, archive, guard=guard, bom=bom)
        return archive.files


def _write_all(session: Session, scope: ExportScope, archive: _Archive, *, guard: bool, bom: bool) -> None:
    columns: dict[str, Sequence[Column]] = {}
    archive.add(_README, [readme(scope).encode()])
    for table in _tables(session, scope):
        columns[table.name] = own = with_short_names(table.columns)
        rows = CountedRows(table.rows)
        archive.add(f"{table.name}.csv", to_csv(own, rows, guard=guard, bom=bom), rows)
    for name, events in _logs(session, scope):
        rows = CountedRows(events)
        archive.add(f"{name}.jsonl", _json_lines(rows), rows)
    for version in scope.versions.values():
        archive.add(f"design-{version.number}.json", [version.design["design"].encode()])
    described = CountedRows((name, column) for name, found in columns.items() for column in found)
    archive.add(_CODEBOOK, to_csv(CODEBOOK, described, guard=guard, bom=bom), described)
    every = {f"{name}.csv": found for name, found in {**columns, "codebook": CODEBOOK}.items()}
    for name, lines in line_files(every).items():
        archive.add(name, [lines])
    archive.add(_SUMS, ["".join(f"{each.sha256}  {each.name}\n" for each in archive.files).encode()])


def _logs(session: Session, scope: ExportScope) -> Iterator[tuple[str, Iterator[Mapping[str, Any]]]]:
    if not scope.since_freeze:
        yield "events", match_events(session, scope)
    yield "log", study_events(session, scope)


def _tables(session: Session, scope: ExportScope) -> Iterator[DataTable]:
    if scope.since_freeze:
        yield from tables_since_freeze(session, scope)
        return
    yield DataTable("analysis", analysis_columns(scope), analysis_rows(session, scope))
    public = scope.public
    yield DataTable("surveys", SURVEYS, survey_rows(_answers_of_people(session, scope), public=public))
    yield DataTable("answers", answer_columns(scope), answer_rows(_answers_of_people(session, scope), public=public))
    yield DataTable("quizzes", QUIZZES, quiz_rows(_answers_of_people(session, scope)))
    yield from stored_tables(session, scope)


def _answers_of_people(session: Session, scope: ExportScope) -> Iterator[PersonAnswers]:
    people = of_people(select(Enrolment.step, Enrolment.answers, *OF_WHOM, *DATA_OF), scope)
    return (person_answers(scope, row) for row in streamed(session, people))


def _json_lines(events: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    piece: list[str] = []
    for event in events:
        piece.append(json.dumps(event, sort_keys=True, ensure_ascii=False) + "\n")
        if len(piece) >= ROWS_AT_ONCE:
            yield "".join(piece).encode()
            piece.clear()
    yield "".join(piece).encode()


def readme(scope: ExportScope) -> str:
    """The contents of an archive, and how to read it."""
    versions = (
        f"  {scope.study.name}@{version.number}, design-{version.number}.json, sha256 {version.sha256}"
        for version in scope.versions.values()
    )
    waves = (
        f"  {wave.name}: version {scope.versions[wave.study_version_id].number}, {wave.status}, {_frozen(wave)}"
        for wave in scope.waves.values()
    )
    if scope.since_freeze:
        return "\n".join([f"What came after the freeze: {scope.study.name}", "", "Waves:", *waves, "", _SINCE, ""])
    codes = (f"  {code} {name}: {REASONS[name]}" for name, code in CODES.items())
    return "\n".join(
        [
            f"Data of the study {scope.study.name}",
            "",
            "Versions:", *versions,
            "Waves:", *waves,
            "",
            "Words of people: left out, as this export is public." if scope.public else "Words of people: included.",
            "Recruiter's ids: in ids.csv; keep it apart." if scope.with_ids else "Recruiter's ids: left out.",
            "Previews are not in it, and no person is left out:",
            "analysis.csv says in `data` and `excluded_by` who counts.",
            "",
            "codebook.csv says what each column of each CSV means. events.jsonl has the logs of all matches, log.jsonl",
            "what happened in the waves. Codes for what is missing in answers.csv; surveys.csv has them in words:",
            *codes,
            f"  {ESCAPED}",
            "",
            "All tables are CSV in UTF-8. Read ids, codes and answers as text, or programs lose leading zeros and",
            "long digits, and take NA for missing and 1-2 for a date.",
            "  pandas: read_csv(file, dtype=str, keep_default_na=False)",
            "  R: source('read.R') in this folder reads each table with the types of codebook.csv",
            "  Stata: do read.do does so, and saves each with its labels; both want tables that are not guarded",
            "  Excel: Data, From Text/CSV, all columns as text",
            "Names of columns have at most 32 characters. Where one was shortened, its meaning in codebook.csv begins",
            "with the whole name in brackets.",
            "",
            "Check the files with: sha256sum -c SHA256SUMS",
            "",
        ]
    )  # fmt: skip


def _frozen(wave: Wave) -> str:
    return "not frozen: data may still come" if wave.frozen_at is None else f"frozen on {wave.frozen_at.date()}"
