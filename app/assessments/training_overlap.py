"""What a model was asked in its trainings here, so that no such question is mistaken for a held-out one."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets import store
from app.models import Dataset, TrainingJob
from app.registry import get_model
from app.society.comparisons import group_of
from training.methods.base import SUPERVISED_DATA


class HeldOutQuestions(NamedTuple):
    """Questions that no model was trained on, those that one was, and the datasets checked (NAME@VERSION)."""

    unknown: Sequence[str]
    known: Sequence[str]
    datasets: Sequence[str] = ()


def held_out(session: Session, home: Path, models: Sequence[str], questions: Sequence[str]) -> HeldOutQuestions:
    """Which questions these models, by name, were not trained on, each once.

    Reads everything they were trained on here. Raises NotFound for an unknown model, and for a dataset whose file is
    gone.
    """
    datasets = training_data(session, [get_model(session, name).id for name in models])
    unknown, known = split_by_training_overlap(home, datasets, list(dict.fromkeys(each.strip() for each in questions)))
    return HeldOutQuestions(unknown, known, [each.reference for each in datasets])


def training_data(session: Session, model_ids: Iterable[int]) -> list[Dataset]:
    """The datasets that these models, by number, or the models they came from were trained on here."""
    found: dict[int, Dataset] = {}
    seen: set[int] = set()
    wanted = set(model_ids)
    while wanted:
        seen |= wanted
        jobs = session.scalars(select(TrainingJob).where(TrainingJob.model_id.in_(wanted))).all()
        numbers = {number for job in jobs for number in (job.dataset_id, job.config.get(SUPERVISED_DATA))}
        for row in session.scalars(select(Dataset).where(Dataset.id.in_(numbers - {None}))):
            found[row.id] = row
        wanted = {job.base_id for job in jobs if job.base_id is not None} - seen
    return [found[number] for number in sorted(found)]


def split_by_training_overlap(
    home: Path, datasets: Sequence[Dataset], questions: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The questions in no row of these datasets, and those in one. Raises NotFound for a missing file.

    A row asks a question if it is the whole of a user's message or of a query, or its first paragraph, regardless of
    spaces and capitals; or if the row came from an interaction about it.
    """
    # A society's rows are grouped by the exact question.
    by_text, by_group = {_folded(each) for each in questions}, {group_of(each): _folded(each) for each in questions}
    known: set[str] = set()
    for row in datasets:
        with store.path_of(home, row).open("rb") as file:
            for raw in file:
                line = json.loads(raw)
                known |= by_text.intersection(map(_folded, _questions_in_row(line)))
                if (question := by_group.get(line.get("group", ""))) is not None:
                    known.add(question)
    unknown = [each for each in questions if _folded(each) not in known]
    return unknown, [each for each in questions if _folded(each) in known]


def _questions_in_row(row: Mapping[str, Any]) -> Iterator[str]:
    """The questions in a row: each text, and the first paragraph of each."""
    said = [message["content"] for message in row.get("messages", ()) if message["role"] == "user"]
    said += [message["content"] for message in row.get("history", ()) if message["role"] == "user"]
    if isinstance(row.get("query"), str):
        said.append(row["query"])
    for text in said:
        yield text
        yield text.split("\n\n", 1)[0]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
