"""Rehearsals as a kind of jobs: one worker sends bots through a copy of a study. Nothing here commits."""

from collections.abc import Mapping, Sequence
from dataclasses import fields

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.games.base import JSON
from app.jobs import states
from app.jobs.kind import JobKind, Progress, Requester
from app.models import Rehearsal, RehearsedBot, Wave
from app.queues import BATCH
from app.studies import store, waves
from app.studies.bots.copies import open_rehearsal
from app.studies.bots.notes import BotNotes
from app.studies.bots.report import report
from app.validation import whole_number

MOST_BOTS = 2000
LEASE = 30.0  # seconds


class RehearsalKind(JobKind[Rehearsal]):
    """See the module."""

    def progress_of(self, session: Session, rows: Sequence[Rehearsal]) -> Mapping[int, Progress]:
        """Bots that are at the end of their way, of all."""
        counted = (
            select(RehearsedBot.rehearsal_id, func.count())
            .where(RehearsedBot.rehearsal_id.in_([row.id for row in rows]))
            .group_by(RehearsedBot.rehearsal_id)
        )
        done = dict(session.execute(counted).all())
        return {row.id: (done.get(row.id, 0), row.bots) for row in rows}


REHEARSAL = RehearsalKind(
    name="rehearsal",
    plural="rehearsals",
    table=Rehearsal,
    queue=BATCH,
    runner="app.studies.bots.runner:run",
    facts=lambda row: {"bots": row.bots, "seed": row.seed, "live": row.live},
    lease_seconds=lambda _settings: LEASE,
)


def create(
    session: Session,
    reference: str,
    bots: int | str,
    seed: int | str,
    *,
    live: bool,
    requester: Requester | None = None,
) -> Rehearsal:
    """Open a wave of a copy of a version, and write down a rehearsal that workers run. Numbers may have come as text.

    Raises NotFound for an unknown version and Invalid for numbers that cannot be.
    """
    count = whole_number(bots, "bots", 1, MOST_BOTS)
    drawn = whole_number(seed, "seed", 0, 2**31 - 1)
    version = store.find_version(session, reference)
    row = REHEARSAL.new_row(
        queued=True,
        requester=requester,
        study_version_id=version.id,
        wave_id=open_rehearsal(session, reference, count, live=live).id,
        bots=count,
        seed=drawn,
        live=live,
        lease_count=0,
    )
    session.add(row)
    session.flush()
    return row


def notes_of(session: Session, number: int) -> list[BotNotes]:
    """What the bots saw that are at their end, by number."""
    rows = select(RehearsedBot.notes).where(RehearsedBot.rehearsal_id == number).order_by(RehearsedBot.number)
    known = {each.name for each in fields(BotNotes)}
    return [BotNotes(**{name: value for name, value in raw.items() if name in known}) for raw in session.scalars(rows)]


def report_of(session: Session, row: Rehearsal) -> JSON:
    """What has come of a rehearsal so far."""
    return report(session, row.wave_id, notes_of(session, row.id), complete=row.status == states.DONE)


def close_wave(session: Session, row: Rehearsal) -> None:
    """Let nobody into the copy any more, when all bots are at their end."""
    wave = session.get_one(Wave, row.wave_id)
    if wave.status != waves.CLOSED:
        waves.close(session, wave)
