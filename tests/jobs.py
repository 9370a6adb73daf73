"""Training jobs for tests: datasets of a few short rows, models of a few thousand weights, run in this process."""

import re
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Engine, insert, select

from app.core.config import Settings
from app.core.extensions import reading, writing
from app.finetuning import lifecycle as jobs
from app.finetuning import listing
from app.finetuning.job import TRAINING
from app.finetuning.progress import line
from app.finetuning.runner import run_job
from app.games.base import JSON
from app.jobs.context import JobContext
from app.models import Dataset, LanguageModel, TrainingEvent, TrainingJob
from app.publication.job import PUBLICATION
from app.publication.spec import PublicationSpec
from app.registry import GAMES_USE
from tests.datasets import cut
from tests.rounds import make_round, play

SMALL = {
    "width": 16, "layers": 1, "heads": 2, "length": 512, "min_count": 1, "batch": 4, "threads": 1, "device": "cpu",
}  # fmt: skip


def make_dataset(engine: Engine, settings: Settings, name: str = "rows", game: str = "negotiation") -> Dataset:
    """Some two dozen rows in few words, of a round of the scripted player."""
    number = make_round(engine, "scripted", matches=12, game=game)
    play(engine, settings, number)
    return cut(engine, settings.home, name, rounds=[number], filter="all", style="compact")


def make_publication(engine: Engine, dataset: Dataset) -> int:
    """A push of a dataset to a hub that waits for a worker; its number."""
    spec = PublicationSpec.read({"dataset": str(dataset.id), "to": "lab/rows", "licence": "cc-by-4.0"})
    with writing(engine) as session:
        row = PUBLICATION.new_row(
            queued=True, requester=None, spec=spec.to_json(), language_model_id=None, dataset_id=dataset.id,
            name=dataset.name, target=str(spec.place), licence=spec.licence, size=1000, files=2, lease_count=0,
        )  # fmt: skip
        session.add(row)
        session.flush()
        return int(row.id)


def is_internal_error(error: str | None) -> bool:
    """Whether a job's reason says that the log has what broke, and nothing of Python's own."""
    return error is not None and re.fullmatch(r"internal error [0-9a-f]{8}: .*the log.*reference", error) is not None


def make_job(
    engine: Engine,
    dataset: Dataset,
    name: str = "small",
    *,
    queued: bool = False,
    base: str | None = None,
    **config: Any,
) -> int:
    """A job that makes a small model from nothing, or goes on from `base`; fields of its training by name."""
    method, fields = ("tiny", SMALL | config) if base is None else ("sft", config)
    wish = jobs.TrainingSpec(method=method, dataset=str(dataset.id), name=name, base=base, config=fields)
    with writing(engine) as session:
        return jobs.create(session, wish, queued=queued).id


def run(
    engine: Engine,
    settings: Settings,
    job_id: int,
    stop: threading.Event | None = None,
    notify: Callable[[list[JSON]], None] = lambda _: None,
) -> bool:
    """Run a job in this process, as a worker does."""
    return run_job(JobContext(engine, settings, uuid.uuid4().hex, stop or threading.Event()), job_id, notify)


def tell(
    engine: Engine, job_id: int, steps: int, of: int, *, figures: Mapping[str, float] | None = None, **values: Any
) -> None:
    """Have a job tell of so many steps, with an evaluation after each tenth, as if somebody trained.

    `figures` are what the loss of its method tells beside itself; they shrink with the steps.
    """
    told: list[JSON] = [
        {"event": "started", "at": 0.0, "device": "cpu (2 threads)", "rows": 40, "eval_rows": 4, "targets": 900,
         "parameters": 35_000, "shortened": 2, "cut": 3, "skipped": 1, "sequences": 40, "resumed_from": None,
         "method": "tiny", "config": {"batch": 32,
                    "schedule": "cosine", "warmup": 0.03, "seed": 0, "packing": False, "eval_every": None}}
    ]  # fmt: skip
    for step in range(1, steps + 1):
        facts = {"at": 2.0 * step, "step": step, "steps": of, "epoch": step / 30}
        told.append(
            {
                "event": "step",
                **facts,
                "loss": 1 + 3 / step,
                "lr": 2.1e-5,
                "gradient_norm": 0.5,
                "tokens_per_second": 812.3,
                "memory_mb": 640,
                **{name: value / step for name, value in (figures or {}).items()},
            }
        )
        if step % 10 == 0:
            told.append({"event": "eval", **facts, "loss": 2 + 3 / step})
            told.append({"event": "saved", "at": 2.0 * step, "step": step, "checkpoint": f"checkpoint-{step}"})
    with writing(engine) as session:
        rows = [{"job_id": job_id, "number": number, "body": body} for number, body in enumerate(told)]
        session.execute(insert(TrainingEvent), rows)
        row = TRAINING.get(session, job_id)
        row.device, row.step, row.steps, row.loss = told[0]["device"], steps, of, 1 + 3 / steps
        row.started_at = row.created_at
        row.log = "\n".join(line(each) for each in told[-40:])
        for name, value in values.items():
            setattr(row, name, value)


def row_of(engine: Engine, job_id: int) -> TrainingJob:
    with reading(engine) as session:
        return TRAINING.get(session, job_id)


def events_of(engine: Engine, job_id: int, kind: str | None = None) -> list[JSON]:
    """What a job has told, all or of one kind."""
    with reading(engine) as session:
        return [each for each in listing.events_of(session, job_id) if kind in (None, each["event"])]


def model_of(engine: Engine, name: str) -> LanguageModel | None:
    with reading(engine) as session:
        return session.scalar(select(LanguageModel).where(LanguageModel.name == name))


def models(engine: Engine) -> int:
    """How many models that play are registered."""
    with reading(engine) as session:
        return sum(GAMES_USE in uses for uses in session.scalars(select(LanguageModel.uses)))
