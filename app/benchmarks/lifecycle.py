"""The life of a benchmark: created, followed by a worker, ended. Nothing here commits."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app.benchmarks import tasks
from app.benchmarks.job import BENCHMARK
from app.benchmarks.listing import BenchmarkSettings, comparable_results, settings_of
from app.benchmarks.spec import BenchmarkSpec
from app.core.errors import Invalid, NotFound, Phrase
from app.games.base import JSON
from app.jobs import states
from app.jobs.holding import hold
from app.jobs.kind import Requester
from app.jobs.kind import finish as finish_job
from app.models import BenchmarkAnswer, BenchmarkJob, BenchmarkResult, LanguageModel, ModelRequest
from app.players.local.options import read_options, resolve
from app.registry import check_not_archived, get_model
from app.registry.prices import check_budget


def create(
    session: Session,
    spec: BenchmarkSpec,
    *,
    queued: bool,
    home: Path | None = None,
    requester: Requester | None = None,
) -> BenchmarkJob:
    """Create a waiting benchmark, for workers if `queued`. Raises as `new_job` does."""
    job = new_job(session, spec, queued=queued, home=home, requester=requester)
    hold(session, [session.get_one(LanguageModel, job.model_id)])
    session.add(job)
    session.flush()
    return job


def create_missing(
    session: Session,
    models: Sequence[LanguageModel],
    spec: BenchmarkSpec,
    *,
    home: Path | None = None,
    requester: Requester | None = None,
) -> list[BenchmarkJob]:
    """Create a benchmark of each model that lacks a task under the same settings; workers run them.

    A task counts if it is in a waiting or running job, or has a result that is still comparable with the others'.
    Archived models and those whose checkpoint is gone are left out. The model in `spec` is ignored. Raises as `new_job`
    does.
    """
    wanted = {*tasks.read_tasks(spec.tasks)}
    settings = BenchmarkSettings(spec.item_limit, spec.shots)
    found = {number: {*results} for number, results in comparable_results(session, models, settings).items()}
    numbers = [each.id for each in models]
    opened = select(BenchmarkJob).where(BenchmarkJob.model_id.in_(numbers), BenchmarkJob.status.in_(states.OPEN))
    for job in session.scalars(opened):
        if settings_of(job) == settings:
            found.setdefault(job.model_id, set()).update(job.tasks)
    created = [
        new_job(session, spec.model_copy(update={"model": model.name}), queued=True, home=home, requester=requester)
        for model in models
        if wanted - found.get(model.id, set()) and _can_be_scored(model, home)
    ]
    session.add_all(created)
    session.flush()
    return created


def _can_be_scored(model: LanguageModel, home: Path | None) -> bool:
    if model.archived_at is not None:
        return False
    return model.kind != "local" or home is None or folder_of(home, model).is_dir()


def new_job(
    session: Session,
    spec: BenchmarkSpec,
    *,
    queued: bool,
    home: Path | None = None,
    requester: Requester | None = None,
) -> BenchmarkJob:
    """A benchmark that is not in the session yet.

    With `home`, the model's checkpoint is looked up. Raises NotFound for an unknown model or a missing checkpoint,
    Conflict for an archived model, and Invalid for anything else that cannot be scored.
    """
    row = get_model(session, spec.model)
    check_not_archived(row)
    if row.kind == "scripted":
        raise Invalid(
            "model",
            expected=Phrase("a local model, or one behind an API"),
            got=Phrase("%(name)s, which is %(kind)s", name=row.name, kind=row.kind),
        )
    check_budget(spec.budget, [row])
    named = tasks.read_tasks(spec.tasks)
    tasks.check_shipped(named, row.kind)
    job = BENCHMARK.new_row(
        queued=queued,
        requester=requester,
        spec=spec.to_json(),
        model_id=row.id,
        tasks=named,
        item_limit=spec.item_limit,
        shots=spec.shots,
        batch=spec.batch,
        lease_count=0,
        **spec.budget.columns,
    )
    if job.shots is not None and not tasks.of_the_harness(named):
        raise Invalid(
            "shots",
            expected=Phrase("none for tasks that ship with Parlor, which take no examples"),
            got=job.shots,
            remedy=Phrase("leave it out"),
        )
    if row.kind == "local" and home is not None:
        checkpoint_of(home, row)
    return job


def folder_of(home: Path, row: LanguageModel) -> Path:
    """The expected folder of a local model's checkpoint."""
    return resolve(home, read_options(row.options).path)


def checkpoint_of(home: Path, row: LanguageModel) -> Path:
    """The folder of a local model. Raises NotFound if it is missing."""
    folder = folder_of(home, row)
    if not folder.is_dir():
        raise NotFound(
            "model",
            expected=Phrase("the checkpoint of %(name)s in %(folder)s", name=row.name, folder=folder),
            got=Phrase("none there"),
            remedy=Phrase("put it back"),
        )
    return folder


# ---- While a worker has it --------------------------------------------------------


def open_tasks(session: Session, row: BenchmarkJob) -> list[str]:
    """The tasks without a result yet, in their order."""
    done = {*session.scalars(select(BenchmarkResult.task).where(BenchmarkResult.job_id == row.id))}
    return [task for task in row.tasks if task not in done]


def store_results(session: Session, row: BenchmarkJob, told: Sequence[Mapping[str, Any]]) -> None:
    """Store the results that a run reported, once for each task: an earlier run may have been read late."""
    still_open = set(open_tasks(session, row))
    found = {each["task"]: each for each in told if each["task"] in still_open}
    rows = [
        {
            "job_id": row.id,
            **{name: each[name] for name in ("task", "metric", "n", "seconds", "source", "version", "scores")},
            **each["scores"][each["metric"]],
        }
        for each in found.values()
    ]
    if rows:
        session.execute(insert(BenchmarkResult), rows)
        row.lease_count = 0


def answers_of(session: Session, job_id: int) -> dict[str, str]:
    """The answers of a model so far, by what was asked."""
    answered = (
        select(BenchmarkAnswer.key, ModelRequest.result)
        .join(ModelRequest, ModelRequest.id == BenchmarkAnswer.request_id)
        .where(BenchmarkAnswer.job_id == job_id, ModelRequest.status == states.DONE)
    )
    return {key: str((result or {}).get("text", "")) for key, result in session.execute(answered)}


def run_config(session: Session, row: BenchmarkJob, home: Path) -> JSON:
    """The config of `python -m training.benchmarks` for the tasks that are left. Raises NotFound."""
    model = session.get_one(LanguageModel, row.model_id)
    found: JSON = {
        "tasks": [
            tasks.SHIPPED[name].as_config() if name in tasks.SHIPPED else {"name": name}
            for name in open_tasks(session, row)
        ],
        "limit": row.item_limit,
        "shots": row.shots,
        "batch": row.batch,
    }
    if model.kind == "local":
        options = read_options(model.options)
        found["checkpoint"] = {
            "path": str(checkpoint_of(home, model)),
            **{name: getattr(options, name) for name in ("sha256", "device", "dtype")},
        }
    return found


def count_death(session: Session, job_id: int) -> None:
    """Count a killed run; `lease_count` is the number of killed runs or workers since a task was last scored."""
    row = BENCHMARK.get(session, job_id)
    session.refresh(row, with_for_update=True)
    row.lease_count += 1
    session.flush()


def finish(session: Session, job_id: int, owner: str) -> None:
    """End a job that has the results of all its tasks. One that is being cancelled is cancelled."""
    row = BENCHMARK.locked(session, job_id, owner)
    if row is None:
        return
    row.step = None
    if row.status == states.CANCELLING:
        BENCHMARK.release(session, job_id, owner)
        return
    finish_job(row)
    row.lease_owner, row.lease_until = None, datetime.now(UTC)
    session.flush()
