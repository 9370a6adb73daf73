"""Jobs that have steps, run in this process together with the jobs that they wait for."""

import asyncio
import uuid
from collections.abc import Callable

import click

from app.cli.base import settings
from app.cli.jobs import run_job_here
from app.cli.round import play_here
from app.cli.training import train_here
from app.core import write_priority
from app.core.extensions import db
from app.finetuning.job import TRAINING
from app.jobs.chained import AwaitedJob
from app.jobs.context import JobContext
from app.rounds.job import ROUND
from app.rounds.runner import freeze_garbage_collector


def run_steps(
    take_steps: Callable[[JobContext, int], AwaitedJob | None],
    number: int,
    called: Callable[[AwaitedJob], str] = lambda job: str(job.kind.subject(job.number)),
) -> bool:
    """Run a job to its end, and print the name of each step's job, as `called` gives it. True after Ctrl-C."""
    write_priority.give_way()
    freeze_garbage_collector()
    context = JobContext(db.engine, settings(), uuid.uuid4().hex)
    while (awaited := take_steps(context, number)) is not None:
        click.echo(called(awaited), err=True)
        if _run(awaited):
            return True
    return False


def _run(awaited: AwaitedJob) -> bool:
    """Run the job of a step. True after Ctrl-C."""
    if awaited.kind is ROUND:
        return asyncio.run(play_here(awaited.number))
    return train_here(awaited.number) if awaited.kind is TRAINING else run_job_here(awaited.kind, awaited.number)
