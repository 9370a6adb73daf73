"""Training jobs, run by workers of a queue of their own. Each trains in a child process: the worker loads no torch."""

import threading
import uuid

from celery import shared_task
from celery.signals import worker_shutting_down

from app.finetuning.runner import TrainingContext, run_job
from app.queues import RUN_JOB
from workers.context import context_for_turn

_going_home = threading.Event()


@shared_task(name=RUN_JOB, ignore_result=True)  # type: ignore[untyped-decorator]
def run(job_id: int) -> None:
    """Run a job, if nobody else does, and stay until it is over."""
    desk = context_for_turn()
    run_job(TrainingContext(desk.database, desk.settings, uuid.uuid4().hex, _going_home), job_id)


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _go_home(**_: object) -> None:
    """A worker that is asked to stop ends its training with a checkpoint and gives the job back."""
    _going_home.set()
