"""Jobs of any kind in lists and on pages: a page of them, how far each is, and its figures for a page that is open.

No statement here is made for one job of many.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.jobs import states
from app.jobs.kind import JobKind

R = TypeVar("R", bound=Any)


class JobListItem(NamedTuple):
    """A job in a list: what its status is called, and how much of it is done, `of` how much where that is known."""

    row: Any
    state: str
    done: int
    of: int | None

    @property
    def percent(self) -> int:
        return 100 * self.done // max(1, self.of or 0)


def latest_jobs(
    session: Session, kind: JobKind[R], limit: int | None = None, *, before: int | None = None, offset: int = 0
) -> tuple[list[R], bool]:
    """So many jobs, all without `limit`, the latest first, and whether there are older ones.

    `before`: only those with a lower number. `offset`: how many are left out first.
    """
    statement = select(kind.table).order_by(kind.table.id.desc()).offset(offset)
    if before is not None:
        statement = statement.where(kind.table.id < before)
    if limit is not None:
        statement = statement.limit(limit + 1)
    rows = [*session.scalars(statement)]
    return rows[:limit], limit is not None and len(rows) > limit


def failed_jobs(session: Session, kind: JobKind[R], since: datetime, most: int) -> list[R]:
    """The jobs that have failed since then, the latest first."""
    table = kind.table
    failed = select(table).where(table.status == states.FAILED, table.ended_at >= since)
    return [*session.scalars(failed.order_by(table.ended_at.desc()).limit(most))]


def job_items(session: Session, kind: JobKind[R], rows: Sequence[R]) -> list[JobListItem]:
    """Jobs as items of a list."""
    found, progress = kind.states_of(session, rows), kind.progress_of(session, rows)
    return [JobListItem(row, found[row.id], *progress[row.id]) for row in rows]


def job_figures(item: JobListItem) -> dict[str, Any]:
    """What changes of a job while it runs, by name: for pages that follow it."""
    return {
        "status": item.state,
        "done": item.done,
        "of": item.of,
        "percent": item.percent,
        "error": item.row.error,
    }


def job_facts(kind: JobKind[R], item: JobListItem) -> dict[str, Any]:
    """All that lists and the command line say of a job of a kind that has nothing of its own to say, as JSON."""
    row = item.row
    times = {name: getattr(row, name) for name in ("created_at", "started_at", "ended_at")}
    return {
        f"{kind.name}_id": row.id,
        **kind.facts(row),
        **job_figures(item),
        "queued": row.queued,
        "requested_by": row.requested_by,
        **{name: at and at.isoformat(timespec="seconds") for name, at in times.items()},
    }
