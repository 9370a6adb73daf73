"""`flask train` and `flask job`: models trained on datasets, here or by the workers."""

import json
import signal
import threading
import uuid
from types import FrameType
from typing import Any

import click
from flask.cli import with_appcontext
from sqlalchemy.orm import Session

from app.cli.base import (
    Command,
    CommandFailed,
    Group,
    Interrupted,
    RepeatableOption,
    ensure_database,
    is_pair,
    print_json,
    read_pairs,
    settings,
)
from app.cli.progress_bar import TrainingBar
from app.cli.training_help import training_help
from app.extensions import db, reading, writing
from app.finetuning import lifecycle as jobs
from app.finetuning import listing
from app.finetuning.backends import backend_names
from app.finetuning.config import LOCAL
from app.finetuning.job import TRAINING
from app.finetuning.runner import TrainingContext, run_job
from app.jobs import states
from app.models import TrainingJob
from training.methods import all_methods

job = Group("job", help="List, show, cancel and resume training jobs; `flask train` makes them.")


@click.command(cls=Command, epilog=training_help())
@click.argument("method", metavar="|".join(all_methods()))
@click.option(
    "--dataset", required=True, metavar="D", help="Its number, its name (the latest version), or name@version."
)
@click.option("--base", metavar="MODEL", help="The local model to go on from.")
@click.option("--name", required=True, metavar="NAME", help="What the new model is called.")
@click.option(
    "--backend", type=click.Choice(backend_names()), default=LOCAL, show_default=True, help="Where it is trained."
)
@click.option(
    "--config", cls=RepeatableOption, belongs=is_pair, metavar="K=V", help="A field of the training: epochs=3."
)
@click.option("--queue", is_flag=True, help="Hand the job to the workers and return at once.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_appcontext
def train(method: str, config: tuple[str, ...], queue: bool, as_json: bool, **given: Any) -> None:
    """Train a model on a dataset, and register it.

    Exit code 0: the model is registered; 1: the training failed; 130: interrupted, and a line says how to resume.
    """
    wish = jobs.TrainingSpec(method, config=read_pairs(config, "--config"), **given)
    ensure_database()
    with writing() as session:
        job_id = jobs.create(session, wish, queued=queue, home=settings().home).id
    _go_on(job_id, queue, as_json)


@job.command()
@click.argument("job_id", metavar="JOB", type=int)
@click.option("--queue", is_flag=True, help="Hand the job to the workers and return at once.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def resume(job_id: int, queue: bool, as_json: bool) -> None:
    """Go on with a job that failed, was cancelled or interrupted, from its last checkpoint."""
    ensure_database()
    with writing() as session:
        TRAINING.resume(session, job_id, queued=queue)
    _go_on(job_id, queue, as_json)


job.add_command(resume, "retry")


@job.command()
@click.argument("job_id", metavar="JOB", type=int)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def cancel(job_id: int, as_json: bool) -> None:
    """Stop a job after the step it is in. Its last checkpoint stays, and it can be resumed."""
    ensure_database()
    with writing() as session:
        described = _described(session, TRAINING.cancel(session, job_id))
    if as_json:
        print_json(described)
    else:
        click.echo(
            f"Job {job_id} is {described['status']} at {_place(described)};"
            f" `flask job resume {job_id}` goes on from its last checkpoint."
        )


@job.command()
@click.argument("job_id", metavar="JOB", type=int)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(job_id: int, as_json: bool) -> None:
    """Show one job: what it trains, how far it is, and the last lines that it told."""
    ensure_database()
    with reading() as session:
        row = TRAINING.get(session, job_id)
        described, log = _described(session, row), row.log
    if as_json:
        print_json(described)
        return
    for name, value in described.items():
        text = json.dumps(value) if isinstance(value, dict) else value
        click.echo(f"{name.replace('_', ' '):<16}{'' if text is None else text}".rstrip())
    click.echo(log)


@job.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_(as_json: bool) -> None:
    """Show all jobs, the latest first."""
    ensure_database()
    with reading() as session:
        found = [_described(session, row) for row in listing.all_jobs(session)]
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("No jobs yet: flask train tiny --dataset 1 --name small")
    for each in found:
        learns = f"{each['name']} from {each['base'] or 'nothing'} on {each['dataset']}"
        click.echo(f"{each['job_id']:>5}  {each['method']:<6}{each['status']:<12} {_place(each):<20}  {learns}")


# ---- Running ------------------------------------------------------------------


def _go_on(job_id: int, queue: bool, as_json: bool) -> None:
    if not queue:
        _run_here(job_id, as_json)
        return
    TRAINING.enqueue(settings().broker_url, job_id)
    if as_json:
        print_json({"job_id": job_id, "queued": True})
    else:
        click.echo(f"Job {job_id} waits for a worker; `flask job show {job_id}` says how far it is.")


def train_here(job_id: int) -> bool:
    """Run a job in this process, with a bar. True if Ctrl-C came."""
    stop = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():  # the second time: now
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with TrainingBar(job_id) as bar:
            run_job(TrainingContext(db.engine, settings(), uuid.uuid4().hex, stop, bar.told), job_id)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return stop.is_set()


def _run_here(job_id: int, as_json: bool) -> None:
    train_here(job_id)
    with reading() as session:
        described = _described(session, TRAINING.get(session, job_id))
    _report(described, as_json)


def _report(described: dict[str, Any], as_json: bool) -> None:
    """What came of a job that was run here."""
    number, status = described["job_id"], described["status"]
    again = f"`flask job resume {number}` goes on from its last checkpoint"
    if status not in (states.DONE, states.FAILED, states.CANCELLED):
        raise Interrupted(f"Interrupted job {number} at {_place(described)}; {again}.")
    if as_json:
        print_json(described)
    elif status == states.DONE:
        step = described["registered_step"]
        best = (
            "" if step in (None, described["step"]) else f" Its weights are those of step {step}, the best evaluated."
        )
        click.echo(f"Job {number} made {described['model']}, {_place(described)}, in {described['checkpoint']}.{best}")
    if status == states.CANCELLED:
        raise CommandFailed(f"job {number} was cancelled at {_place(described)}; {again}")
    if status == states.FAILED:
        raise CommandFailed(f"job {number} stopped: {described['error']}; once that is mended, {again}")


def _place(described: dict[str, Any]) -> str:
    if described["steps"] is None:
        return "no step yet"
    loss = "" if described["loss"] is None else f", loss {described['loss']:.4g}"
    return f"step {described['step']} of {described['steps']}{loss}"


def _described(session: Session, row: TrainingJob) -> dict[str, Any]:
    """A job as JSON."""
    line, figures = listing.list_item(session, row), listing.figures_of(session, row)
    return {
        "job_id": row.id,
        "name": row.name,
        "method": row.method,
        "backend": row.backend,
        "dataset_id": row.dataset_id,
        "dataset": f"{line.dataset.name}@{line.dataset.version}",
        "base": line.base and line.base.name,
        "config": row.config,
        "recipe": listing.recipe_of(session, row),
        "status": line.state,
        "queued": row.queued,
        "device": row.device,
        "step": row.step,
        "steps": row.steps,
        "loss": row.loss,
        **{name: figures[name] for name in ("eval_loss", "best_loss", "best_step")},
        "registered_step": row.registered_step,
        "error": row.error,
        "model": line.model and line.model.name,
        "checkpoint": line.model and line.model.options["path"],
        "sha256": line.model and line.model.options["sha256"],
        "started_at": row.started_at and row.started_at.isoformat(),
        "ended_at": row.ended_at and row.ended_at.isoformat(),
    }
