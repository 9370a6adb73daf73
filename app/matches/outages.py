"""Whether the web processes serve people, and for how long they did not: clocks do not run while people cannot move.

Each web process writes a heartbeat every second, in the row of a lease of its own. Its first sign after a longer
silence records the outage, and adds an event to every match with a clock, since any of their people may have been at
that process: the event restarts a turn's clock and extends a match's clock by the length of the outage. Until then
nobody's time runs out, whichever process checks; but a process that is silent while others serve holds clocks up for
five minutes only. Nothing here commits.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.matches.events import ServerAway
from app.matches.store import append
from app.matches.stored import load
from app.models import Lease, MatchRow, Outage

WEB = "web "  # what the names of leases begin with, followed by the process
EVERY = 1.0  # seconds between two heartbeats
GONE = timedelta(minutes=5)  # a process silent for so long while others are not is no longer waited for
RESTART = timedelta(seconds=2)  # after this silence, a restarted process's first sign ends an outage
SILENCE = timedelta(seconds=5)  # likewise for a process that kept running: a busy moment is no outage


def write_heartbeat(session: Session, process: str, owner: str, now: datetime | None = None) -> Sequence[str]:
    """Record that a web process serves people and, if it did not before, for how long. Returns the matches whose clocks
    moved.

    `process` stays the same when the process is restarted, such as its address; `owner` changes.
    """
    now, name = now or datetime.now(UTC), f"{WEB}{process}"[:40]
    lease = session.get(Lease, name, with_for_update=True)
    if lease is None:
        session.add(Lease(name=name, owner=owner, until=now + SILENCE))
        return ()
    last, patience = lease.until - SILENCE, SILENCE if lease.owner == owner else RESTART
    lease.owner, lease.until = owner, now + SILENCE
    if now - last <= patience:
        return ()
    session.add(Outage(began=last, ended=now))
    return _delay_clocks(session, (now - last).total_seconds(), now)


def was_served(session: Session, moment: datetime) -> bool:
    """Whether all web processes have written a heartbeat at that moment or later, except those that are gone.

    True if none ever gave one: the match is then played in a terminal or a test, where nobody can be away.
    """
    signs = _last_signs(session)
    return all(sign >= moment for sign in signs if sign >= max(signs) - GONE)


def time_away(session: Session, since: datetime, now: datetime) -> timedelta:
    """How long at least one web process did not serve people between `since` and `now`."""
    past = select(Outage.began, Outage.ended).where(Outage.ended > since, Outage.began < now).order_by(Outage.began)
    outages = [(row.began, row.ended) for row in session.execute(past)]
    signs = _last_signs(session)
    if signs and max(signs) + SILENCE < now:  # none of them serves people now
        outages.append((max(signs), now))
    total, counted = timedelta(), since  # outages of several processes may overlap
    for began, ended in outages:
        total += max(timedelta(), min(ended, now) - max(began, counted))
        counted = max(counted, ended)
    return total


def _last_signs(session: Session) -> list[datetime]:
    """The last heartbeat of each web process."""
    return [until - SILENCE for until in session.scalars(select(Lease.until).where(Lease.name.startswith(WEB)))]


def _delay_clocks(session: Session, seconds: float, now: datetime) -> Sequence[str]:
    """Log in each match with a clock that the server was away."""
    running = select(MatchRow.id).where(MatchRow.status == "playing", MatchRow.deadline.is_not(None))
    delayed = []
    for match_id in session.scalars(running.order_by(MatchRow.id)).all():
        record = load(session, match_id, lock=True)
        if record.deadline is not None:
            delayed.append((record.extended([ServerAway(round(seconds, 3))], now), len(record.log)))
    if delayed:
        append(session, delayed)
    return [record.id for record, _ in delayed]
