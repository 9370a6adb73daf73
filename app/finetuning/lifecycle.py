"""A training job's life: created, taken by lease, cancelled, resumed, ended. Nothing here commits.

`app/states.py` says how the states follow each other.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, and_, case, or_, select, update
from sqlalchemy.orm import Session

from app import leases, states
from app.datasets.store import find_dataset, path_of
from app.errors import Conflict, Invalid, NotFound, Phrase, either, shown
from app.finetuning.config import BACKENDS, LOCAL, TINY, check_model_name, read_config, read_method
from app.finetuning.files import JobFiles
from app.models import Dataset, LanguageModel, TrainingJob
from app.players.local.options import read_options, resolve
from app.players.prompts import USUAL_STYLE
from app.registry import PERSON, add_local_model, get_model

MOST_DEATHS = 5  # a job whose worker or training died this often, with no new step between, is given up
PATIENCE = timedelta(seconds=30)  # between two rings for a job, which may wait long behind another one


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
    _refuse_taken(session, wish.name)
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


def _refuse_taken(session: Session, name: str, but: int | None = None) -> None:
    """Raises Conflict for a name that a model has or another open job will give."""
    if name == PERSON or session.scalar(select(LanguageModel.id).where(LanguageModel.name == name)) is not None:
        raise Conflict(
            "name",
            expected=Phrase("one that is not taken"),
            got=name,
            remedy=Phrase("`flask model list` shows them all"),
        )
    other = select(TrainingJob.id).where(
        TrainingJob.name == name, TrainingJob.status.in_(states.LIVE), TrainingJob.id != (but or 0)
    )
    if (number := session.scalar(other.limit(1))) is not None:
        raise Conflict(
            "name",
            expected=Phrase("one that no other job makes"),
            got=Phrase("%(name)s, which job %(number)s does", name=shown(name), number=number),
        )


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


def get_job(session: Session, job_id: int) -> TrainingJob:
    """The job of that number. Raises NotFound."""
    row = session.get(TrainingJob, job_id) if 0 < job_id < 2**31 else None
    if row is None:
        raise NotFound(
            "job",
            expected=Phrase("the number of one that exists"),
            got=job_id,
            remedy=Phrase("`flask job list` shows them"),
        )
    return row


# ---- The lease -------------------------------------------------------------------


def take(session: Session, job_id: int, owner: str, seconds: float) -> bool:
    """Take a job that is to be run and that nobody runs, for that long. One conditional UPDATE decides."""
    now = datetime.now(UTC)
    taken = session.scalar(
        update(TrainingJob)
        .where(TrainingJob.id == job_id, TrainingJob.status.in_(states.OPEN), leases.free(TrainingJob, now))
        .values(
            status=states.RUNNING,
            lease_owner=owner,
            lease_until=now + timedelta(seconds=seconds),
            lease_count=case(
                (TrainingJob.lease_owner.is_(None), TrainingJob.lease_count), else_=TrainingJob.lease_count + 1
            ),
        )
        .returning(TrainingJob.id)
        .execution_options(synchronize_session=False)
    )
    _set(session, TrainingJob.id == taken, TrainingJob.started_at.is_(None), started_at=now)
    return taken is not None


def renew(session: Session, job_id: int, owner: str, seconds: float, **values: Any) -> str | None:
    """Renew a lease, and set further values. The job's status; None if the lease is somebody else's."""
    status: str | None = session.scalar(
        update(TrainingJob)
        .where(TrainingJob.id == job_id, TrainingJob.lease_owner == owner)
        .values(lease_until=datetime.now(UTC) + timedelta(seconds=seconds), **values)
        .returning(TrainingJob.status)
        .execution_options(synchronize_session=False)
    )
    return status


def count_death(session: Session, job_id: int) -> int:
    """A training was killed; how many were, or their workers, since the job last came to a new step."""
    row = get_job(session, job_id)
    session.refresh(row, with_for_update=True)
    row.lease_count += 1
    session.flush()
    return row.lease_count


def release(session: Session, job_id: int, owner: str, error: str | None = None) -> None:
    """Let go of a job: it is cancelled if that was asked for, failed for `error`, else free for the next worker."""
    row = _held(session, job_id, owner)
    if row is None:
        return
    if row.status == states.CANCELLING:
        row.status, row.ended_at = states.CANCELLED, datetime.now(UTC)
    elif error is not None:
        row.status, row.ended_at, row.error = states.FAILED, datetime.now(UTC), error
    row.lease_owner = row.lease_until = row.rung_at = None
    session.flush()


def finish(session: Session, files: JobFiles, owner: str) -> None:
    """Register what a job has made, and end it. Raises Conflict where the name was taken meanwhile."""
    row = _held(session, files.job_id, owner)
    if row is None:
        return
    if row.status == states.CANCELLING:
        release(session, row.id, owner)
        return
    games, style = _plays(session, row)
    made = json.loads((files.output / "parlor.json").read_text(encoding="utf-8"))
    options = {"path": files.output_name, "sha256": made["checkpoint_sha256"]}
    row.registered_step = made.get("step")
    row.model_id = add_local_model(session, row.name, None, games, options, prompt_style=style).id
    row.status, row.ended_at, row.error = states.DONE, datetime.now(UTC), None
    row.lease_owner = row.lease_until = None
    session.flush()


def _held(session: Session, job_id: int, owner: str) -> TrainingJob | None:
    row = session.get(TrainingJob, job_id, with_for_update=True, populate_existing=True)
    return row if row is not None and row.lease_owner == owner else None


def _plays(session: Session, row: TrainingJob) -> tuple[list[str], str]:
    """The games and the prompt style of a job's model: its base's, or those of the rows that it began with."""
    if row.base_id is not None:
        base = session.get_one(LanguageModel, row.base_id)
        return list(base.games), base.prompt_style or USUAL_STYLE
    spec = session.get_one(Dataset, row.dataset_id).spec
    return sorted(spec["prompts"]), spec["style"]


# ---- From state to state ---------------------------------------------------------


def cancel(session: Session, job_id: int) -> TrainingJob:
    """Ask whoever runs a job to stop; its last checkpoint stays. Raises NotFound, and Conflict when it is over."""
    row = get_job(session, job_id)
    if leases.request_stop(
        session, row, Phrase("job %(number)s", number=job_id), Phrase("one that is waiting or running")
    ):
        settle_cancelled(session, job_id)
        session.refresh(row)
    return row


def settle_cancelled(session: Session, job_id: int | None = None) -> None:
    """Call jobs that are being cancelled, or one of them, cancelled where nobody runs them any more."""
    now = datetime.now(UTC)
    which = TrainingJob.status == states.CANCELLING
    one = which if job_id is None else and_(which, TrainingJob.id == job_id)
    _set(
        session,
        one,
        leases.free(TrainingJob, now),
        status=states.CANCELLED,
        ended_at=now,
        lease_owner=None,
        lease_until=None,
    )


def resume(session: Session, job_id: int, *, queued: bool) -> TrainingJob:
    """Let a failed, cancelled or interrupted job go on from its last checkpoint.

    Raises NotFound, and Conflict when it is done, being run, or its name was given to another model.
    """
    row = get_job(session, job_id)
    session.refresh(row, with_for_update=True)
    if row.status == states.DONE:
        raise Conflict(
            "job",
            expected=Phrase("one that is not done"),
            got=Phrase("one that made %(name)s", name=row.name),
            subject=Phrase("job %(number)s", number=job_id),
        )
    if row.status == states.CANCELLING:
        raise Conflict(
            "job",
            expected=Phrase("one that nobody runs"),
            got=Phrase("one that is just being cancelled"),
            subject=Phrase("job %(number)s", number=job_id),
        )
    if leases.is_held(row):
        raise Conflict(
            "job",
            expected=Phrase("one that nobody runs"),
            got=Phrase("one that is running"),
            remedy=Phrase("cancel it first"),
            subject=Phrase("job %(number)s", number=job_id),
        )
    _refuse_taken(session, row.name, but=row.id)
    row.status, row.queued, row.ended_at, row.error, row.rung_at = states.WAITING, queued, None, None, None
    row.lease_owner, row.lease_until, row.lease_count = None, None, 0
    session.flush()
    return row


def state_of(row: TrainingJob) -> str:
    """The status, or that it was interrupted: nobody runs it, and nobody will come by himself."""
    return (
        states.INTERRUPTED
        if row.status == states.RUNNING and not row.queued and not leases.is_held(row)
        else row.status
    )


def take_forgotten(session: Session) -> Sequence[int]:
    """Ids of queued jobs that nobody runs, and that should be rung for again. Marks them as rung.

    At once where a lease has run out since the last ring, else after a while.
    """
    now = datetime.now(UTC)
    last = TrainingJob.rung_at
    quiet = or_(last.is_(None), last < now - PATIENCE, last < TrainingJob.lease_until)
    waits = and_(TrainingJob.queued, TrainingJob.status.in_(states.OPEN), quiet, leases.free(TrainingJob, now))
    return leases.mark_enqueued(session, TrainingJob, waits, now)


def _set(session: Session, *which: ColumnElement[bool], **values: Any) -> None:
    statement = update(TrainingJob).where(*which).values(**values)
    session.execute(statement, execution_options={"synchronize_session": False})
