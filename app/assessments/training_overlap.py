"""What a model has been asked in its trainings here, so that nobody takes a question for held out that is not."""

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
    """Questions that no model has learnt from, those that one has, and the datasets (NAME@VERSION) that say so."""

    unknown: Sequence[str]
    known: Sequence[str]
    datasets: Sequence[str] = ()


def held_out(session: Session, home: Path, models: Sequence[str], questions: Sequence[str]) -> HeldOutQuestions:
    """Which questions these models, by name, have not learnt from, each once. Reads all that they were trained on here.

    Raises NotFound for an unknown model, and for a dataset whose file is gone.
    """
    datasets = training_data(session, [get_model(session, name).id for name in models])
    unknown, known = sort_out(home, datasets, list(dict.fromkeys(each.strip() for each in questions)))
    return HeldOutQuestions(unknown, known, [each.reference for each in datasets])


def training_data(session: Session, model_ids: Iterable[int]) -> list[Dataset]:
    """The datasets that these models were trained on here, or the models that they came from, by their numbers."""
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


def sort_out(home: Path, datasets: Sequence[Dataset], questions: Sequence[str]) -> tuple[list[str], list[str]]:
    """The questions that are in no row of these datasets, and those that are in one. Raises NotFound for a lost file.

    A row asks a question where it is the whole of what a user says or of a query, or its first paragraph, however
    spaces and capitals are set; and where the row came of an interaction about it.
    """
    # A society's rows are grouped by the question to the letter.
    by_text, by_group = {_folded(each) for each in questions}, {group_of(each): _folded(each) for each in questions}
    known: set[str] = set()
    for row in datasets:
        with store.path_of(home, row).open("rb") as file:
            for raw in file:
                line = json.loads(raw)
                known |= by_text.intersection(map(_folded, _asked(line)))
                if (question := by_group.get(line.get("group", ""))) is not None:
                    known.add(question)
    unknown = [each for each in questions if _folded(each) not in known]
    return unknown, [each for each in questions if _folded(each) in known]


def _asked(row: Mapping[str, Any]) -> Iterator[str]:
    """What a row asks: each text, and the first paragraph of each."""
    said = [message["content"] for message in row.get("messages", ()) if message["role"] == "user"]
    said += [message["content"] for message in row.get("history", ()) if message["role"] == "user"]
    if isinstance(row.get("query"), str):
        said.append(row["query"])
    for text in said:
        yield text
        yield text.split("\n\n", 1)[0]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
