"""The one task that runs jobs of any kind. A worker loads only the runners of its own queues."""

import structlog
from celery import shared_task

from app.core.queues import RUN_JOB
from app.job_kinds import find_kind
from workers.context import context_for_task

log = structlog.get_logger()


@shared_task(name=RUN_JOB, ignore_result=True)  # type: ignore[untyped-decorator]
def run(kind: str, number: int) -> None:
    """Run a job, or join in, until it is over, its worker is to end, or others take precedence."""
    try:
        found = find_kind(kind)
    except KeyError:  # from an earlier version with another name for the kind; upkeep sends it again
        log.warning("a message names a kind of job that there is not", kind=kind, number=number)
        return
    found.load_runner()(context_for_task(), number)
