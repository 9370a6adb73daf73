"""Creating benchmarks from a spec."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.benchmarks import lifecycle
from app.benchmarks.spec import BenchmarkSpec
from app.jobs.creation import JobCreation, JobRequest
from app.jobs.kind import Requester
from app.models import BenchmarkJob


def _create_benchmark(
    session: Session, request: JobRequest[Any], *, queued: bool, requester: Requester | None
) -> Sequence[BenchmarkJob]:
    return [lifecycle.create(session, request.spec, queued=queued, home=request.home, requester=requester)]


CREATION = JobCreation(spec=BenchmarkSpec, create=_create_benchmark)
