"""The contents of a model, a dataset or a job: the files and rows that go with it, while its own row stays.

A file in a place where another thing keeps its own files belongs to both, and stays until both are gone: a folder may
be inside another, and two paths may lead to the same folder. The rows of calls stay too, without their texts, so that
the recorded spending stays true.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Table, Text, cast, func, or_, select, true
from sqlalchemy.orm import Session, defer

from app.alignments.job import ALIGNMENT
from app.assessments.job import ASSESSMENT
from app.benchmarks.files import folder_of
from app.benchmarks.job import BENCHMARK
from app.campaigns.job import CAMPAIGN
from app.core.errors import Invalid, Phrase, either
from app.datasets.store import FOLDER as DATASETS
from app.datasets.store import get_dataset
from app.finetuning.files import JobFiles
from app.finetuning.job import TRAINING
from app.inference.weights import base_of
from app.job_kinds import JOB_KINDS, find_kind
from app.models import BenchmarkJob, Dataset, LanguageModel, TrainingJob
from app.players.local.options import resolve
from app.registry import get_model_by_number
from app.registry.checkpoint_folders import is_for_checkpoints
from app.rounds.job import ROUND
from app.society.job import SOCIETY

MODEL, DATASET = "model", "dataset"
_KEPT = ("rehearsal", "publication")  # hold a study's copy, or nothing but their row
_JOBS = tuple(kind.name for kind in JOB_KINDS if kind.name not in _KEPT)
KINDS: Mapping[str, Phrase] = {
    MODEL: Phrase("Checkpoints of models"),
    DATASET: Phrase("Datasets"),
    **{name: Phrase(find_kind(name).plural.capitalize()) for name in _JOBS},
}


class RowSet(NamedTuple):
    """Rows of a table to delete or, given `emptied` columns with the values to put there, to empty.

    SQLite reuses the numbers of deleted rows. So only rows that nothing refers to by such a number are deleted, and
    `renumbered` ones come back under new numbers.
    """

    table: Table
    which: ColumnElement[bool]
    emptied: Mapping[str, Any] = {}
    renumbered: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that an archive must hold."""
        key = [column.name for column in self.table.primary_key]
        if self.emptied:
            return (*key, *self.emptied)
        return tuple(name for name in map(str, self.table.columns.keys()) if not (self.renumbered and name in key))

    @property
    def is_left(self) -> ColumnElement[bool]:
        """Whether a row was not taken yet. A thing's own row does not show this, and is emptied again."""
        if self.table.name == "generation":
            return self.table.columns["removal_id"].is_(None)
        if self.table.name not in ("society_interaction", "assessed_answer", "model_request"):
            return true()
        return or_(*(
            self.table.columns[name].is_not(None) if value is None
            else cast(self.table.columns[name], Text) != (value if isinstance(value, str) else json.dumps(value))
            for name, value in self.emptied.items()
        ))  # fmt: skip


def get_thing(session: Session, kind: str, number: int) -> Any:
    """The row of a thing. Raises Invalid for a kind that is not in KINDS, and NotFound."""
    if kind not in KINDS:
        raise Invalid("kind", expected=either(KINDS), got=kind)
    if kind == DATASET:
        return get_dataset(session, number)
    if kind != MODEL:
        return find_kind(kind).get(session, number)
    return get_model_by_number(session, number)


def subject_of(kind: str, number: int) -> Phrase:
    """The name of a thing in errors: "dataset 3"."""
    if kind == MODEL:
        return Phrase("model %(number)s", number=number)
    return Phrase("dataset %(number)s", number=number) if kind == DATASET else find_kind(kind).subject(number)


def name_of(kind: str, row: Any) -> str:
    """The name of a thing, or its kind and number if it has none."""
    if kind == DATASET:
        return str(row.reference)
    return getattr(row, "name", None) or str(subject_of(kind, row.id))


def files_of(home: Path, kind: str, row: Any) -> list[str]:
    """The existing files of a thing, relative to PARLOR_HOME, by name.

    A checkpoint that came with Parlor, or lies in a user's own folder, is not Parlor's to delete.
    """
    place = _place_of(home, kind, row)
    if place is None or not place.is_relative_to(home) or (kind == MODEL and not is_for_checkpoints(home, place)):
        return []
    return sorted(found.relative_to(home).as_posix() for found in _below(place))


def _place_of(home: Path, kind: str, row: Any) -> Path | None:
    """The file or folder of a thing, with symbolic links resolved."""
    if kind == MODEL:
        return resolve(home, str(row.options["path"])).resolve() if row.kind == "local" else None
    if kind == DATASET:
        return (home / DATASETS / f"{row.sha256}.jsonl").resolve()
    if kind == TRAINING.name:
        return JobFiles(home, row.id, row.name).folder.resolve()
    return folder_of(home, row).resolve() if kind == BENCHMARK.name else None


def _below(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    for found in place.rglob("*") if place.is_dir() else ():
        if found.is_file() and not found.is_symlink():
            yield found


class Owners:
    """The things that each file and folder belongs to, without removed ones."""

    def __init__(self, session: Session, home: Path) -> None:
        self._at: dict[Path, set[tuple[str, int]]] = defaultdict(set)
        self._home = home
        tables: tuple[tuple[str, type[Any]], ...] = (
            (MODEL, LanguageModel), (DATASET, Dataset), (TRAINING.name, TrainingJob), (BENCHMARK.name, BenchmarkJob),
        )  # fmt: skip
        for kind, table in tables:
            heavy = [defer(table.log)] if hasattr(table, "log") else []
            for row in session.scalars(select(table).where(table.removed_at.is_(None)).options(*heavy)):
                place = _place_of(home, kind, row)
                if place is None:
                    continue
                self._at[place].add((kind, row.id))
                if kind == MODEL and (base := base_of(place)) is not None:  # an adapter is loaded with its base
                    self._at[base.folder.resolve()].add((kind, row.id))

    def others_of(self, name: str, kind: str, number: int) -> set[tuple[str, int]]:
        """The other things that a file belongs to; `name` is relative to PARLOR_HOME."""
        path = self._home / name
        found = set().union(*(self._at[place] for place in (path, *path.parents) if place in self._at))
        return found - {(kind, number)}


# ---- The rows ------------------------------------------------------------------------


def row_sets(tables: Mapping[str, Table], kind: str, number: int, matches: Sequence[str] | None = None) -> list[RowSet]:
    """The rows of a thing, each table after those that it refers to. `tables`: those of the database, by name.

    For a round, all of its rows, or those of some of its `matches`.
    """
    if kind == ROUND.name:
        return [*_of_round(tables, number, matches)]
    found = _ROW_SETS.get(kind)
    return [] if found is None else [*found(tables, number)]


def _of_model(tables: Mapping[str, Table], number: int) -> Iterator[RowSet]:
    """The switches of a model, so that nothing uses it any more. One archived before keeps the time of that."""
    models, now = tables["language_model"], datetime.now(UTC).replace(tzinfo=None)
    switches = {"archived_at": func.coalesce(models.c.archived_at, now), "usable_in_rounds": False}
    yield RowSet(models, models.c.id == number, switches)


def _of_round(tables: Mapping[str, Table], number: int, matches: Sequence[str] | None) -> Iterator[RowSet]:
    match = tables["match"]
    ids: Any = select(match.c.id).where(match.c.round_id == number) if matches is None else matches
    yield RowSet(match, match.c.round_id == number if matches is None else match.c.id.in_(matches))
    for name in ("seat", "event", "match_text", "match_source"):
        yield RowSet(tables[name], tables[name].c.match_id.in_(ids), renumbered=name == "match_text")
    calls, rows = tables["generation"], tables["dataset_row"]
    yield RowSet(calls, calls.c.match_id.in_(ids), {"match_id": None, **_emptied_call_texts(calls)})
    yield RowSet(rows, rows.c.match_id.in_(ids), {"match_id": None})


def _of_society(tables: Mapping[str, Table], number: int) -> Iterator[RowSet]:
    interactions, calls = tables["society_interaction"], tables["generation"]
    texts = dict.fromkeys(("recall", "draft", "feedback", "revision", "observations"))
    yield RowSet(tables["society_agent"], tables["society_agent"].c.society_id == number)
    yield RowSet(interactions, interactions.c.society_id == number, {"question": "", **texts})
    ids = select(interactions.c.id).where(interactions.c.society_id == number)
    yield RowSet(calls, or_(calls.c.interaction_id.in_(ids), calls.c.society_id == number), _emptied_call_texts(calls))


def _of_assessment(tables: Mapping[str, Table], number: int) -> Iterator[RowSet]:
    answers, calls = tables["assessed_answer"], tables["generation"]
    yield RowSet(answers, answers.c.assessment_id == number, {"text": None})
    ids = select(answers.c.id).where(answers.c.assessment_id == number)
    yield RowSet(calls, calls.c.answer_id.in_(ids), _emptied_call_texts(calls))


def _of_benchmark(tables: Mapping[str, Table], number: int) -> Iterator[RowSet]:
    """The requests and answers of a benchmark, except those shared with another benchmark. Scores stay."""
    answers, requests, calls = tables["benchmark_answer"], tables["model_request"], tables["generation"]
    others = select(answers.c.request_id).where(answers.c.job_id != number)
    own = select(answers.c.request_id).where(answers.c.job_id == number, answers.c.request_id.not_in(others))
    yield RowSet(requests, requests.c.id.in_(own), {"messages": [], "result": None})
    yield RowSet(calls, calls.c.request_id.in_(own), _emptied_call_texts(calls))


def _of_training(tables: Mapping[str, Table], number: int) -> Iterator[RowSet]:
    yield RowSet(tables["training_job"], tables["training_job"].c.id == number, {"log": ""})
    yield RowSet(tables["training_event"], tables["training_event"].c.job_id == number)


def _row_set_of_material(name: str) -> Any:
    def rows(tables: Mapping[str, Table], number: int) -> Iterator[RowSet]:
        yield RowSet(tables[name], tables[name].c.id == number, {"material": {}})

    return rows


def _emptied_call_texts(calls: Table) -> dict[str, Any]:
    """The values that replace the texts in the rows of calls."""
    empty: dict[str, Any] = {"prompt": [], "sampling": {}}
    wanted = ("prompt", "text", "token_ids", "log_probs", "reasoning", "sampling")
    return {name: empty.get(name) for name in wanted if name in calls.columns}


_ROW_SETS = {
    MODEL: _of_model,
    SOCIETY.name: _of_society,
    ASSESSMENT.name: _of_assessment,
    BENCHMARK.name: _of_benchmark,
    TRAINING.name: _of_training,
    CAMPAIGN.name: _row_set_of_material(CAMPAIGN.name),
    ALIGNMENT.name: _row_set_of_material(ALIGNMENT.name),
}
