"""What a model, a dataset or a job holds: the files and the rows that go with it, while its own row stays.

The rows of calls stay too, without their texts, so that what was spent stays true.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Table, or_, select
from sqlalchemy.orm import Session

from app.alignments.job import ALIGNMENT
from app.assessments.job import ASSESSMENT
from app.benchmarks.job import BENCHMARK
from app.campaigns.job import CAMPAIGN
from app.core.errors import Invalid, Phrase, either
from app.datasets.store import FOLDER as DATASETS
from app.datasets.store import get_dataset
from app.finetuning.files import FOLDER as TRAININGS
from app.finetuning.job import TRAINING
from app.job_kinds import JOB_KINDS, find_kind
from app.models import Dataset, LanguageModel
from app.registry import get_model_by_number
from app.rounds.job import ROUND
from app.society.job import SOCIETY
from app.spend.storage import BENCHMARKS

MODEL, DATASET = "model", "dataset"
_KEPT = ("rehearsal", "publication")  # which hold a study's copy, or nothing but their row
_JOBS = tuple(kind.name for kind in JOB_KINDS if kind.name not in _KEPT)
KINDS: Mapping[str, Phrase] = {
    MODEL: Phrase("Checkpoints of models"),
    DATASET: Phrase("Datasets"),
    **{name: Phrase(find_kind(name).plural.capitalize()) for name in _JOBS},
}


class RowSet(NamedTuple):
    """Rows of a table. `emptied` are the columns that lose their values, each with what stands there then; without any
    the rows go.

    SQLite gives the numbers of rows that have gone to others. So those go that nothing names by such a number, and
    `renumbered` ones come back under new numbers.
    """

    table: Table
    which: ColumnElement[bool]
    emptied: Mapping[str, Any] = {}
    renumbered: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that an archive has to hold."""
        key = [column.name for column in self.table.primary_key]
        if self.emptied:
            return (*key, *self.emptied)
        return tuple(name for name in map(str, self.table.columns.keys()) if not (self.renumbered and name in key))


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
    """What errors call a thing: "dataset 3"."""
    if kind == MODEL:
        return Phrase("model %(number)s", number=number)
    return Phrase("dataset %(number)s", number=number) if kind == DATASET else find_kind(kind).subject(number)


def name_of(kind: str, row: Any) -> str:
    """What a thing is called: by its name where it has one."""
    if kind == DATASET:
        return f"{row.name}@{row.version}"
    return getattr(row, "name", None) or str(subject_of(kind, row.id))


def files_of(home: Path, kind: str, row: Any) -> list[str]:
    """The files of a thing that are there, relative to PARLOR_HOME, by name."""
    return sorted(found.relative_to(home).as_posix() for place in _places(home, kind, row) for found in _below(place))


def _places(home: Path, kind: str, row: Any) -> Iterator[Path]:
    if kind == MODEL and row.kind == "local":
        folder = home / str(row.options["path"])
        # Checkpoints that came with Parlor, or lie in a folder of somebody's own, are not Parlor's to delete.
        if folder.resolve().is_relative_to(home.resolve()):
            yield folder
    elif kind == DATASET:
        yield home / DATASETS / f"{row.sha256}.jsonl"
    elif kind in (TRAINING.name, BENCHMARK.name):
        yield home / (TRAININGS if kind == TRAINING.name else BENCHMARKS) / str(row.id)


def _below(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    for found in place.rglob("*") if place.is_dir() else ():
        if found.is_file() and not found.is_symlink():
            yield found


def shares_files(session: Session, kind: str, row: Any) -> list[Any]:
    """The other things that have the same files, and keep them as long as they are there themselves."""
    if kind == DATASET:
        same = select(Dataset).where(Dataset.sha256 == row.sha256, Dataset.id != row.id, Dataset.removed_at.is_(None))
        return [*session.scalars(same.order_by(Dataset.id))]
    if kind != MODEL or row.kind != "local":
        return []
    local = select(LanguageModel).where(
        LanguageModel.kind == "local", LanguageModel.id != row.id, LanguageModel.removed_at.is_(None)
    )
    return [each for each in session.scalars(local) if each.options["path"] == row.options["path"]]


# ---- The rows ------------------------------------------------------------------------


def row_sets(tables: Mapping[str, Table], kind: str, number: int) -> list[RowSet]:
    """The rows of a thing, each table after those that it refers to. `tables`: those of the database, by name."""
    found = _ROW_SETS.get(kind)
    return [] if found is None else [*found(tables, number)]


def _of_model(tables: Mapping[str, Table], number: int) -> Iterator[RowSet]:
    """Its switches, as nothing can use it any more."""
    now = datetime.now(UTC).replace(tzinfo=None)
    switches = {"archived_at": now, "usable_in_rounds": False}
    yield RowSet(tables["language_model"], tables["language_model"].c.id == number, switches)


def _of_round(tables: Mapping[str, Table], number: int) -> Iterator[RowSet]:
    match = tables["match"]
    ids = select(match.c.id).where(match.c.round_id == number)
    yield RowSet(match, match.c.round_id == number)
    for name in ("seat", "event", "match_text", "match_source"):
        yield RowSet(tables[name], tables[name].c.match_id.in_(ids), renumbered=name == "match_text")
    calls, rows = tables["generation"], tables["dataset_row"]
    yield RowSet(calls, calls.c.match_id.in_(ids), {"match_id": None, **_texts(calls)})
    yield RowSet(rows, rows.c.match_id.in_(ids), {"match_id": None})


def _of_society(tables: Mapping[str, Table], number: int) -> Iterator[RowSet]:
    interactions, calls = tables["society_interaction"], tables["generation"]
    texts = dict.fromkeys(("recall", "draft", "feedback", "revision", "observations"))
    yield RowSet(tables["society_agent"], tables["society_agent"].c.society_id == number)
    yield RowSet(interactions, interactions.c.society_id == number, {"question": "", **texts})
    ids = select(interactions.c.id).where(interactions.c.society_id == number)
    yield RowSet(calls, or_(calls.c.interaction_id.in_(ids), calls.c.society_id == number), _texts(calls))


def _of_assessment(tables: Mapping[str, Table], number: int) -> Iterator[RowSet]:
    answers, calls = tables["assessed_answer"], tables["generation"]
    yield RowSet(answers, answers.c.assessment_id == number, {"text": None})
    ids = select(answers.c.id).where(answers.c.assessment_id == number)
    yield RowSet(calls, calls.c.answer_id.in_(ids), _texts(calls))


def _of_benchmark(tables: Mapping[str, Table], number: int) -> Iterator[RowSet]:
    """What was asked and answered, but for what another benchmark has asked as well. Scores stay."""
    answers, requests, calls = tables["benchmark_answer"], tables["model_request"], tables["generation"]
    others = select(answers.c.request_id).where(answers.c.job_id != number)
    own = select(answers.c.request_id).where(answers.c.job_id == number, answers.c.request_id.not_in(others))
    yield RowSet(requests, requests.c.id.in_(own), {"messages": [], "result": None})
    yield RowSet(calls, calls.c.request_id.in_(own), _texts(calls))


def _of_training(tables: Mapping[str, Table], number: int) -> Iterator[RowSet]:
    yield RowSet(tables["training_job"], tables["training_job"].c.id == number, {"log": ""})
    yield RowSet(tables["training_event"], tables["training_event"].c.job_id == number)


def _material(name: str) -> Any:
    def rows(tables: Mapping[str, Table], number: int) -> Iterator[RowSet]:
        yield RowSet(tables[name], tables[name].c.id == number, {"material": {}})

    return rows


def _texts(calls: Table) -> dict[str, Any]:
    """What the rows of calls hold instead of what was said."""
    empty: dict[str, Any] = {"prompt": [], "sampling": {}}
    wanted = ("prompt", "text", "token_ids", "log_probs", "reasoning", "sampling")
    return {name: empty.get(name) for name in wanted if name in calls.columns}


_ROW_SETS = {
    MODEL: _of_model,
    ROUND.name: _of_round,
    SOCIETY.name: _of_society,
    ASSESSMENT.name: _of_assessment,
    BENCHMARK.name: _of_benchmark,
    TRAINING.name: _of_training,
    CAMPAIGN.name: _material(CAMPAIGN.name),
    ALIGNMENT.name: _material(ALIGNMENT.name),
}
