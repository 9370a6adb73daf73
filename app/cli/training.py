"""`flask training`, also `flask train` and `flask job`: train models on datasets, here or by the workers."""

import uuid
from typing import Any

import click

from app import training_part
from app.cli.base import (
    CommandFailed,
    Interrupted,
    ensure_database,
    json_option,
    print_json,
    settings,
    warn_of_bfloat16,
)
from app.cli.jobs import Described, JobCommands, create, prepared, queue_option, stop_on_signals
from app.cli.progress_bar import TrainingBar
from app.cli.spec_options import spec_options
from app.cli.training_help import TrainingCommand
from app.core import write_priority
from app.core.extensions import db, reading, writing
from app.finetuning.config import LOCAL
from app.finetuning.creation import CREATION
from app.finetuning.job import TRAINING
from app.finetuning.runner import run_job
from app.finetuning.spec import TrainingSpec
from app.jobs import states
from app.jobs.context import JobContext
from app.models import TrainingJob


@click.command(cls=TrainingCommand)
@spec_options(TrainingSpec)
@queue_option
@json_option
def train(spec: TrainingSpec, queue: bool, as_json: bool) -> None:
    """Train a model on a dataset, and register it.

    Exit code 0: the model is registered; 1: the training failed; 130: interrupted, and a line says how to resume.
    """
    ensure_database()
    if spec.backend == LOCAL:
        warn_of_bfloat16("precision", spec.config.get("precision"), spec.config.get("device"))
    if not queue and spec.backend == LOCAL:
        training_part.require()
    [number] = create(CREATION, prepared(CREATION, spec), queued=queue)
    _JOBS.go_on(number, queue, as_json)


class _TrainingCommands(JobCommands[TrainingJob]):
    """See `flask training`."""

    help = "Have models trained on datasets; list, show, cancel and resume trainings."
    none_yet = "No jobs yet: flask train tiny --dataset 1 --name small"
    resume_help = (
        "Resume a job that failed, was cancelled or interrupted, from its last checkpoint. Where a command was"
        " killed while it cancelled a job at a vendor, finish that."
    )
    cancel_help = "Cancel a job after its current step. Its last checkpoint is kept, and it can be resumed."
    show_help = "Show one job: what it trains, how far it is, and the last lines of its log."
    list_help = "Show the jobs, the latest first."

    def print_tables(self, number: int) -> None:
        """Print the last lines of its log."""
        with reading() as session:
            click.echo(TRAINING.get(session, number).log)

    def stopped(self, described: Described) -> str:
        """The step at which it stopped."""
        return f" at {_progress(described)}"

    def goes_on(self, number: int) -> str:
        """How to resume a job."""
        again = super().goes_on(number)
        return f"{again} from its last checkpoint" if self.read(number)["backend"] == LOCAL else again

    def resume(self, number: int, queue: bool, as_json: bool, **budget: Any) -> None:
        """Resume as for all kinds; but a job whose process died while it was being cancelled is cancelled, not
        trained.
        """
        with reading() as session:
            row = TRAINING.get(session, number)
            left = row.status == states.CANCELLING and not TRAINING.has_worker(session, row)
        if not left:
            super().resume(number, queue, as_json, **budget)
        elif queue:
            self.go_on(number, queue, as_json)
        else:
            with writing() as session:
                TRAINING.cancel(session, number)
            train_here(number)
            self.report_cancelled(number, as_json)

    def end_outside(self, number: int) -> None:
        """Cancel the job at its vendor, if the process that followed it in a terminal is gone."""
        with reading() as session:
            row = TRAINING.get(session, number)
            alone = row.status == states.CANCELLING and not row.queued and not TRAINING.has_worker(session, row)
        if alone:
            train_here(number)

    def run_here(self, number: int, as_json: bool) -> None:
        """Train in this process, with a progress bar."""
        train_here(number)
        _report(self.read(number), as_json)


_JOBS = _TrainingCommands(TRAINING)
training = _JOBS.group()
training.add_command(train, "run")
training.add_command(training.commands["resume"], "retry")


# ---- Running ------------------------------------------------------------------


def train_here(job_id: int) -> bool:
    """Run a job in this process, with a progress bar. True after Ctrl-C."""
    write_priority.give_way()
    with stop_on_signals() as stop, TrainingBar(job_id) as bar:
        run_job(JobContext(db.engine, settings(), uuid.uuid4().hex, stop), job_id, bar.show)
    return stop.is_set()


def _report(described: dict[str, Any], as_json: bool) -> None:
    """Print the result of a job that ran here."""
    number, status = described["job_id"], described["status"]
    again = _JOBS.goes_on(number)
    if status not in (states.DONE, states.FAILED, states.CANCELLED):
        where = (
            "" if described["remote_job"] is None else f"{described['remote_job']} goes on at {described['device']}, "
        )
        raise Interrupted(f"Interrupted job {number} at {_progress(described)}; {where}{again}.")
    if as_json:
        print_json(described)
    elif status == states.DONE:
        step = described["registered_step"]
        best = (
            "" if step in (None, described["step"]) else f" Its weights are those of step {step}, the best evaluated."
        )
        if described["remote_model"] is not None:
            called = f"which {described['device']} calls {described['remote_model']}"
            click.echo(f"Job {number} made {described['model']}, {_progress(described)}, {called}.{_paid(described)}")
        else:
            where = f"in {described['checkpoint']}"
            click.echo(f"Job {number} made {described['model']}, {_progress(described)}, {where}.{best}")
    if status == states.CANCELLED:
        raise CommandFailed(f"job {number} was cancelled at {_progress(described)}; {again}")
    if status == states.FAILED:
        raise CommandFailed(f"job {number} stopped: {described['error']}; after that is repaired, {again}")


def _paid(described: dict[str, Any]) -> str:
    """The number of tokens that a vendor trained, and their cost if its price is known."""
    if described["trained_tokens"] is None:
        return ""
    cost = "" if described["cost"] is None else f", ${described['cost']:.2f}"
    return f" It trained {described['trained_tokens']} tokens{cost}."


def _progress(described: dict[str, Any]) -> str:
    if described["steps"] is None:
        return "no step yet"
    loss = "" if described["loss"] is None else f", loss {described['loss']:.4g}"
    return f"step {described['step']} of {described['steps']}{loss}"
