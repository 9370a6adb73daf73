"""A training job's life: created, taken by lease, cancelled, resumed, ended. Nothing here commits.

`app/jobs/states.py` says how the states follow each other.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app.datasets.store import find_dataset, path_of
from app.errors import Conflict, Invalid, NotFound, Phrase, either, shown
from app.finetuning.config import BACKENDS, LOCAL, TINY, check_model_name, read_config, read_method
from app.finetuning.files import JobFiles
from app.finetuning.job import TRAINING, refuse_taken
from app.jobs import states
from app.jobs.kind import finish as finish_job
from app.models import Dataset, LanguageModel, TrainingJob
from app.players.local.options import read_options, resolve
from app.players.prompts import USUAL_STYLE
from app.registry import add_local_model, get_model

MOST_DEATHS = 5  # a job whose worker or training died this often, with no new step between, is given up


@dataclass(frozen=True, slots=True)
class TrainingSpec:
    """A job as somebody wishes for it. `dataset` is a number, a name or name@version; `name` is the new model's."""

    method: str
    dataset: str
    name: str
    base: str | None = None  # a local model; none for a method that begins from nothing
    config: Mapping[str, Any] = field(default_factory=dict)
    backend: str = LOCAL


def create(session: Session, wish: TrainingSpec, *, queued: bool, home: Path | None = None) -> TrainingJob:
    """Write down a job that waits to be run, by workers if it is `queued`.

    With `home`, the files that it needs are looked for as well. Raises NotFound for an unknown dataset or base,
    Conflict for a taken name, and Invalid for all else that cannot be trained.
    """
    method = read_method(wish.method)
    if wish.backend not in BACKENDS:
        raise Invalid("backend", expected=either(BACKENDS), got=wish.backend)
    config = read_config(method, wish.config)
    dataset = find_dataset(session, wish.dataset)
    base = _base(session, method, wish.base)
    check_model_name(wish.name)
    refuse_taken(session, wish.name)
    if home is not None:
        _look_for_files(home, dataset, base, wish.name)
    row = TrainingJob(
        name=wish.name,
        method=method,
        backend=wish.backend,
        dataset_id=dataset.id,
        base_id=None if base is None else base.id,
        config=config,
        status=states.WAITING,
        queued=queued,
        lease_count=0,
        log="",
        created_at=datetime.now(UTC),
    )
    session.add(row)
    session.flush()
    return row


def _base(session: Session, method: str, name: str | None) -> LanguageModel | None:
    if method == TINY:
        if name:
            raise Invalid(
                "base", expected=Phrase("none with %(method)s, which begins from nothing", method=TINY), got=name
            )
        return None
    if not name:
        raise Invalid(
            "base", expected=Phrase("the local model that %(method)s goes on from", method=method), got=Phrase("none")
        )
    base = get_model(session, name)
    if base.kind != LOCAL:
        raise Invalid(
            "base",
            expected=Phrase("a local model, which has weights to train"),
            got=Phrase("%(name)s, which is %(kind)s", name=name, kind=base.kind),
        )
    return base


def _look_for_files(home: Path, dataset: Dataset, base: LanguageModel | None, name: str) -> None:
    path_of(home, dataset)
    if base is not None:
        base_folder(home, base)
    if (output := JobFiles(home, 0, name).output).exists():
        raise Conflict(
            "name",
            expected=Phrase("one without a checkpoint"),
            got=Phrase("%(name)s, which has %(output)s", name=shown(name), output=output),
            remedy=Phrase("remove it"),
        )


def base_folder(home: Path, base: LanguageModel) -> Path:
    """The checkpoint of a local model. Raises NotFound when it was taken away."""
    folder = resolve(home, read_options(base.options).path)
    if not folder.is_dir():
        raise NotFound(
            "base",
            expected=Phrase("the checkpoint of %(name)s in %(folder)s", name=base.name, folder=folder),
            got=Phrase("none there"),
            remedy=Phrase("put it back"),
        )
    return folder


# ---- While a worker has it --------------------------------------------------------


def count_death(session: Session, job_id: int) -> int:
    """A training was killed; how many were, or their workers, since the job last came to a new step."""
    row = TRAINING.get(session, job_id)
    session.refresh(row, with_for_update=True)
    row.lease_count += 1
    session.flush()
    return row.lease_count


def finish(session: Session, files: JobFiles, owner: str) -> None:
    """Register what a job has made, and end it. Raises Conflict where the name was taken meanwhile."""
    row = TRAINING.locked(session, files.job_id, owner)
    if row is None:
        return
    if row.status == states.CANCELLING:
        TRAINING.release(session, row.id, owner)
        return
    games, style = _plays(session, row)
    made = json.loads((files.output / "parlor.json").read_text(encoding="utf-8"))
    options = {"path": files.output_name, "sha256": made["checkpoint_sha256"]}
    row.registered_step = made.get("step")
    row.model_id = add_local_model(session, row.name, None, games, options, prompt_style=style).id
    finish_job(row)
    row.lease_owner = row.lease_until = None
    session.flush()


def _plays(session: Session, row: TrainingJob) -> tuple[list[str], str]:
    """The games and the prompt style of a job's model: its base's, or those of the rows that it began with."""
    if row.base_id is not None:
        base = session.get_one(LanguageModel, row.base_id)
        return list(base.games), base.prompt_style or USUAL_STYLE
    spec = session.get_one(Dataset, row.dataset_id).spec
    return sorted(spec["prompts"]), spec["style"]
