"""Rehearsals as a job kind: one worker sends bots through a copy of a study. Nothing here commits."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta

from sqlalchemy import and_, case, func, or_, select
from sqlalchemy.orm import Session

from app.core.errors import Phrase
from app.core.queues import BATCH
from app.games.base import JSON
from app.jobs import states
from app.jobs.kind import JobKind, Progress, Requester
from app.models import Rehearsal, RehearsedBot, Wave
from app.studies import store, waves
from app.studies.bots.copies import open_rehearsal
from app.studies.bots.notes import BotNotes
from app.studies.bots.report import report
from app.studies.bots.spec import RehearsalSpec
from app.studies.progress import lock_wave

LEASE = 30.0  # seconds
_WITHOUT_JOB = timedelta(days=1)  # after which a rehearsal's copy without a job is closed


class RehearsalKind(JobKind[Rehearsal]):
    """See the module."""

    def progress_of(self, session: Session, rows: Sequence[Rehearsal]) -> Mapping[int, Progress]:
        """The number of finished bots, of all bots."""
        counted = (
            select(RehearsedBot.rehearsal_id, func.count())
            .where(RehearsedBot.rehearsal_id.in_([row.id for row in rows]))
            .group_by(RehearsedBot.rehearsal_id)
        )
        done = dict(session.execute(counted).all())
        return {row.id: (done.get(row.id, 0), row.bots) for row in rows}

    def release(self, session: Session, number: int, owner: str, error: str | None = None) -> None:
        """Release a rehearsal; the copy is closed if it failed or was cancelled."""
        super().release(session, number, owner, error)
        row = session.get_one(Rehearsal, number)
        if row.status in (states.FAILED, states.CANCELLED):
            close_wave(session, row)

    def reset(self, session: Session, row: Rehearsal) -> None:
        """Forget earlier workers, and let bots into the copy again."""
        super().reset(session, row)
        wave = lock_wave(session, row.wave_id)
        if wave.status == waves.CLOSED and wave.frozen_at is None:
            wave.status, wave.closed_at = waves.OPEN, None
            waves.log_action(session, wave, "reopened")


REHEARSAL = RehearsalKind(
    name="rehearsal",
    plural="rehearsals",
    numbered=lambda number: Phrase("rehearsal %(number)s", number=number),
    place=8,
    table=Rehearsal,
    queue=BATCH,
    runner="app.studies.bots.runner:run",
    facts=lambda row: {"bots": row.bots, "seed": row.seed, "live": row.live},
    spends=True,
    listing="app.studies.bots.listing:LIST",
    page="app.studies.bots.page:PAGE",
    creation="app.studies.bots.creation:CREATION",
    lease_seconds=lambda _settings: LEASE,
)


def create(
    session: Session, spec: RehearsalSpec, *, requester: Requester | None = None, queued: bool = True
) -> Rehearsal:
    """Open a wave of a copy of a version, and store a rehearsal, for workers if it is `queued`, else for the caller.

    Raises NotFound for an unknown version.
    """
    version = store.find_version(session, spec.study)
    row = REHEARSAL.new_row(
        queued=queued,
        requester=requester,
        spec=spec.to_json(),
        study_version_id=version.id,
        wave_id=open_rehearsal(session, spec.study, spec.bots, live=spec.live).id,
        bots=spec.bots,
        seed=spec.seed,
        live=spec.live,
        lease_count=0,
        **spec.budget.columns,
    )
    session.add(row)
    session.flush()
    return row


def notes_of(session: Session, number: int) -> list[BotNotes]:
    """The notes of finished bots, by number."""
    rows = select(RehearsedBot.notes).where(RehearsedBot.rehearsal_id == number).order_by(RehearsedBot.number)
    known = {each.name for each in fields(BotNotes)}
    return [BotNotes(**{name: value for name, value in raw.items() if name in known}) for raw in session.scalars(rows)]


def report_of(session: Session, row: Rehearsal) -> JSON:
    """Progress of a rehearsal."""
    return report(session, row.wave_id, notes_of(session, row.id), complete=row.status == states.DONE)


def close_wave(session: Session, row: Rehearsal) -> None:
    """Close the copied wave."""
    wave = session.get_one(Wave, row.wave_id)
    if wave.status != waves.CLOSED:
        waves.close(session, wave)


def stop_here(session: Session, number: int) -> None:
    """Mark a rehearsal that this process ran as cancelled, unless it is over, and close its copy."""
    row = REHEARSAL.get(session, number)
    session.refresh(row, with_for_update=True)
    if row.status in states.LIVE:
        row.status, row.ended_at = states.CANCELLED, datetime.now(UTC)
        row.lease_owner, row.lease_until = None, datetime.now(UTC)
    close_wave(session, row)


def close_left_waves(session: Session) -> Sequence[str]:
    """Close abandoned copies, whose rehearsal is over or whose process is gone; the names of their waves.

    Copies of rehearsals that wait for workers are left open.
    """
    now = datetime.now(UTC)
    starts = and_(Rehearsal.status == states.WAITING, Rehearsal.created_at > now - timedelta(seconds=LEASE))
    goes_on = and_(Rehearsal.status.in_(states.LIVE), or_(Rehearsal.queued, REHEARSAL.held(now), starts))
    left = (
        select(Wave)
        .outerjoin(Rehearsal, Rehearsal.wave_id == Wave.id)
        .where(Wave.rehearsal, Wave.status != waves.CLOSED, Wave.frozen_at.is_(None))
        .where(case((Rehearsal.id.is_(None), Wave.created_at < now - _WITHOUT_JOB), else_=~goes_on))
    )
    found = session.scalars(left).all()
    for wave in found:
        waves.close(session, wave)
    return [wave.name for wave in found]
