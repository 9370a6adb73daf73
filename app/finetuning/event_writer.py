"""Stores the events of a job in groups: at most two short transactions per second, each of which renews the lease.

A worker that has lost the lease writes nothing more.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import structlog
from sqlalchemy import Engine, insert, select
from sqlalchemy.orm import Session

from app.core.extensions import DATABASE_AWAY, reading, reason_of, transact_with_retry, writing
from app.finetuning.job import TRAINING
from app.finetuning.progress import line
from app.games.base import JSON
from app.jobs import states
from app.models import TrainingEvent, TrainingJob

AWAY = 600.0  # seconds that a job's end waits for an unavailable database
_LINES = 60  # of the log on the job's row
_LONGEST = 400  # characters per line

T = TypeVar("T")
log = structlog.get_logger()


class TrainingLeaseLost(Exception):
    """Another worker has taken the job, or it was cancelled after the lease had expired."""


class TrainingEventWriter:
    """Writes the events of one job for one worker. `notify` is called with the new events after each transaction."""

    def __init__(
        self, database: Engine, job_id: int, owner: str, lease: float, notify: Callable[[list[JSON]], None]
    ) -> None:
        self._database = database
        self._job_id = job_id
        self._owner = owner
        self._lease = lease
        self._notify = notify
        self._events: list[tuple[int, JSON]] = []
        self._renew_at = 0.0
        self._says_more = False
        with reading(database) as session:
            row = TRAINING.get(session, job_id)
            self._log = deque(row.log.splitlines(), _LINES)
            before = select(TrainingEvent).where(TrainingEvent.job_id == job_id).order_by(TrainingEvent.number)
            events = session.scalars(before).all()
        self.following = events[-1].number + 1 if events else 0  # the number of the next event
        self._furthest = max((each.body["step"] for each in events if each.body["event"] == "step"), default=0)

    def add(self, number: int, event: JSON) -> None:
        """Add an event, with its number among all of the job's."""
        self.following = number + 1
        self._events.append((number, event))
        self.say(line(event))

    def say(self, text: str) -> None:
        """Add a line to the log."""
        self._log.append(text[:_LONGEST])
        self._says_more = True

    def keep(self) -> str:
        """Store new events and lines, or renew the lease if it is due, and return the job's status. Raises Lost.

        While the database is unavailable, the job continues and nothing is lost.
        """
        try:
            if self._events or self._says_more or time.monotonic() >= self._renew_at:
                with writing(self._database) as session:
                    status = self._write_events(session)
                self._after_write()
                return status
            with reading(self._database) as session:
                row = session.execute(
                    select(TrainingJob.status, TrainingJob.lease_owner).where(TrainingJob.id == self._job_id)
                ).one()
            if row.lease_owner != self._owner or row.status not in states.LIVE:
                raise TrainingLeaseLost
            return str(row.status)
        except DATABASE_AWAY as error:
            log.warning("the database is away, the training goes on", job=self._job_id, error=reason_of(error))
            return states.RUNNING

    def settle(self, also: Callable[[Session], T]) -> T:
        """Store new events and lines, and run `also` in the same transaction. Raises Lost, and what `also` raises."""

        def work(session: Session) -> T:
            self._write_events(session)
            return also(session)

        found = transact_with_retry(self._database, work, AWAY)
        self._after_write()
        return found

    def _write_events(self, session: Session) -> str:
        values: dict[str, Any] = {"log": "\n".join(self._log)}
        for _, event in self._events:
            values |= _row_changes(event)
        if self._newest() > self._furthest:
            values["lease_count"] = 0
        status = TRAINING.renew(session, self._job_id, self._owner, self._lease, **values)
        if status not in states.LIVE:
            raise TrainingLeaseLost
        if self._events:
            rows = [{"job_id": self._job_id, "number": number, "body": event} for number, event in self._events]
            session.execute(insert(TrainingEvent), rows)
        return status

    def _after_write(self) -> None:
        self._furthest = max(self._furthest, self._newest())
        events, self._events = [event for _, event in self._events], []
        self._says_more = False
        self._renew_at = time.monotonic() + self._lease / 3
        self._notify(events)

    def _newest(self) -> int:
        return max((event["step"] for _, event in self._events if event["event"] == "step"), default=0)


def _row_changes(event: Mapping[str, Any]) -> dict[str, Any]:
    """The changes that an event makes to the job's row."""
    if event["event"] in ("started", "created"):
        return {"device": str(event["device"])[:120]}
    trained = {"trained_tokens": event["trained_tokens"]} if "trained_tokens" in event else {}
    if event["event"] == "step":
        return {"step": event["step"], "steps": event["steps"], "loss": event["loss"], **trained}
    return trained
