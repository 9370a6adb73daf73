"""One stop for all spending: jobs that may call models are cancelled, and no call of a paid model begins.

Matches that people are playing go on, as the people cannot help it. When the stop ends, the jobs resume where they
stopped.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.errors import AppError, Conflict, Phrase
from app.core.lists import Reference
from app.job_kinds import JOB_KINDS, find_kind
from app.jobs import states
from app.jobs.chained import ChainedKind
from app.jobs.kind import JobKind
from app.jobs.page import job_references
from app.models import MatchRow, SpendingStop
from app.registry.spending import open_stop

COMMAND_LINE = "the command line"


class JobRef(NamedTuple):
    """A job, its name, and, if it was not resumed, the reason."""

    kind: JobKind[Any]
    number: int
    cell: Reference
    refused: str = ""


class StopEffect(NamedTuple):
    """What a stop would cancel, and what would still go on: other jobs, and matches with people in them."""

    stops: Sequence[JobRef]
    goes_on: Sequence[JobRef]
    people: int


def effect_of_stop(session: Session) -> StopEffect:
    """What a stop would do just now."""
    stops: list[JobRef] = []
    goes_on: list[JobRef] = []
    for kind in _parents_first():
        live = select(kind.table).where(kind.table.status.in_(states.OPEN)).order_by(kind.table.id)
        rows = session.scalars(live).all()
        cells = job_references(session, kind, [row.id for row in rows])
        for row in rows:
            (stops if kind.may_spend(row) else goes_on).append(JobRef(kind, row.id, cells[row.id]))
    # Found by their status, as few are in progress, and not by their source.
    playing = select(func.count()).where(MatchRow.status == "playing", func.coalesce(MatchRow.source, "") == "live")
    return StopEffect(stops, goes_on, session.scalar(playing) or 0)


def stop_spending(session: Session, by: str) -> SpendingStop:
    """Cancel all jobs that may spend, and block new calls of paid models. Raises Conflict if a stop is in force.

    If two stops are requested at once, the slower transaction fails with IntegrityError and is retried.
    """
    if (found := open_stop(session)) is not None:
        raise Conflict(
            "spend",
            expected=Phrase("spending that goes on"),
            got=Phrase("a stop since %(moment)s UTC", moment=f"{found.at:%Y-%m-%d %H:%M}"),
            remedy=Phrase("`flask spend resume` ends it"),
        )
    stop = SpendingStop(at=datetime.now(UTC), by=by, jobs=[])
    session.add(stop)
    session.flush()  # first, so that anyone else who stops waits before any job is locked
    cancelled: list[list[str | int]] = []
    for kind, number, *_ in effect_of_stop(session).stops:
        row = session.get(kind.table, number, with_for_update=True, populate_existing=True)
        # A job may have ended meanwhile, and the job that another one waits for is cancelled with it.
        if row is not None and row.status in states.OPEN and kind.may_cancel(row):
            kind.cancel(session, number)
            cancelled.append([kind.name, number])
    stop.jobs = cancelled
    session.flush()
    return stop


class Resumed(NamedTuple):
    """The jobs of a stop that has ended: those that resume, with their queues, and those that do not."""

    jobs: Sequence[tuple[JobRef, str]]
    left: Sequence[JobRef]

    def enqueue(self, broker_url: str) -> None:
        """Send the resumed jobs to the workers, once the transaction is committed."""
        for job, queue in self.jobs:
            job.kind.enqueue(broker_url, job.number, queue=queue)


def end_stop(session: Session) -> Resumed:
    """Allow calls again, and resume the jobs on the workers where they stopped.

    Raises Conflict if there is no stop, or if a worker is still ending one of its jobs: then nothing is changed.
    """
    stop = open_stop(session)
    if stop is not None:
        session.refresh(stop, with_for_update=True)
    if stop is None or stop.ended_at is not None:  # somebody else may have ended it meanwhile
        raise Conflict("spend", expected=Phrase("a stop to end"), got=Phrase("none"))
    jobs = [(find_kind(str(name)), int(number)) for name, number in stop.jobs]
    for kind, number in [each for job in jobs for each in _with_awaited(session, *job)]:
        kind.settle_cancelled(session, number)
        row = session.get(kind.table, number, populate_existing=True)
        if row is not None and row.status == states.CANCELLING:
            raise Conflict(
                "spend",
                expected=Phrase("jobs that have stopped"),
                got=Phrase("%(job)s, which a worker is just ending", job=_ref(session, kind, number).cell.words),
                remedy=Phrase("try again in half a minute"),
            )
    stop.ended_at, stop.in_force = datetime.now(UTC), None
    session.flush()
    resumed, left = [], []
    for kind, number in jobs:
        try:
            with session.begin_nested():  # a job that cannot resume stays as it is, even if what it waits for refuses
                row = kind.get(session, number)
                if kind.may_resume(row, kind.state_of(session, row)):
                    kind.resume(session, number, queued=True)
                    resumed.append((_ref(session, kind, number), kind.queue_of(session, number)))
        except AppError as error:  # such as an exhausted budget: the others resume
            left.append(_ref(session, kind, number)._replace(refused=error.message))
    return Resumed(resumed, left)


def _ref(session: Session, kind: JobKind[Any], number: int) -> JobRef:
    return JobRef(kind, number, job_references(session, kind, [number])[number])


def _with_awaited(session: Session, kind: JobKind[Any], number: int) -> Iterator[tuple[JobKind[Any], int]]:
    """A job, and those that are resumed with it: the one that it waits for, and so on."""
    yield kind, number
    part = kind.awaited_jobs(session, [number]).get(number) if isinstance(kind, ChainedKind) else None
    if part is not None:
        yield from _with_awaited(session, part.kind, part.number)


def _parents_first() -> list[JobKind[Any]]:
    """All job kinds, those whose jobs start others first."""
    return sorted(JOB_KINDS, key=lambda kind: not isinstance(kind, ChainedKind))
