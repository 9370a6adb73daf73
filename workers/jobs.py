"""The one task that runs jobs, whatever their kind. A worker loads the runners of its own queues only."""

from importlib import import_module

from celery import shared_task

from app.job_kinds import find_kind
from app.queues import RUN_JOB
from workers.context import context_for_task


@shared_task(name=RUN_JOB, ignore_result=True)  # type: ignore[untyped-decorator]
def run(kind: str, number: int) -> None:
    """Run a job, or join in, until it is over, its worker is to end, or others have to be let first."""
    module, _, function = find_kind(kind).runner.partition(":")
    getattr(import_module(module), function)(context_for_task(), number)
