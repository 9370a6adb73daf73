"""Upkeep: one loop, held by a lease, that ends matches whose clock ran out, and calls workers again for turns and jobs
whose message was lost or whose worker died.

Start it with `python -m workers.upkeep`; a second one waits until the first is gone.
"""

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.cleanup.restore import free_due
from app.core import logs
from app.core.config import Settings, load_settings
from app.core.extensions import open_engine, reading, writing
from app.core.queues import enqueue_request, enqueue_turn, make_publisher
from app.job_kinds import kinds_with_live_jobs
from app.jobs import leases
from app.matches import counts, live
from app.matches.outages import time_away
from app.matches.sweep import UPKEEP, abandoned_matches, overdue_matches, take_forgotten_turns, take_or_renew_lease
from app.model_calls.request_lifecycle import take_forgotten
from app.models import MatchRow
from app.notices.delivery import keep_sending
from app.spend import call_sums
from app.studies import idle, retention, wave_terms
from app.studies import matches as study_matches
from app.studies.bots.job import close_left_waves
from app.studies.forget import delete_unusable_files
from workers import heartbeat

log = structlog.get_logger()
_CLEANUP_SECONDS = 1.0  # per pass, for work left by killed clean-ups


def main() -> None:
    """Run until told to stop."""
    os.umask(0o077)
    logs.set_up()
    settings = load_settings()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    database = open_engine(settings.database_url, pool_pre_ping=True)
    owner = uuid.uuid4().hex
    tell = make_publisher(settings.redis_url)
    threading.Thread(target=keep_sending, args=(database, settings, stop), name="notices", daemon=True).start()
    away = False
    while not stop.is_set():
        try:
            look_after(database, settings, owner, tell)
            away = False
        except SQLAlchemyError as error:
            if not away:  # once, however long it takes
                log.warning("the database did not answer, trying again", error=str(getattr(error, "orig", error)))
            away = True
        rest_until = time.monotonic() + settings.UPKEEP_EVERY
        while not stop.is_set() and (left := rest_until - time.monotonic()) > 0:
            heartbeat.beat()
            stop.wait(min(heartbeat.EVERY, left))


def look_after(database: Engine, settings: Settings, owner: str, tell: Callable[[str, bool], None]) -> None:
    """Run one pass, unless another process holds the lease. `tell` informs the web processes of a match that was
    ended.
    """
    until = datetime.now(UTC) + timedelta(seconds=max(10, 3 * settings.UPKEEP_EVERY))
    # Several short transactions instead of one, because on SQLite others wait for each.
    with writing(database) as session:
        if not take_or_renew_lease(session, UPKEEP, owner, until):
            return
        _end_far_leases(session, settings)
        forgotten = take_forgotten_turns(session)
        unmade = take_forgotten(session, settings.TURN_SECONDS)
    with reading(database) as session:
        overdue = overdue_matches(session)
        before = _open_since(session, settings)
        untouched = abandoned_matches(session, before) if settings.OPEN_MATCH_HOURS else ()
        kinds = kinds_with_live_jobs(session)
    unattended = []
    for kind in kinds:
        with writing(database) as session:
            kind.end_distant_leases(session, settings)
            unattended += [(kind, number, kind.queue_of(session, number)) for number in kind.take_unattended(session)]
            kind.settle_cancelled(session)
    for match_id in forgotten:
        log.info("a turn was forgotten, sending it again", match=match_id)
        enqueue_turn(settings.broker_url, match_id)
    for number in unmade:
        log.info("a request to a model was forgotten, asking again", request=number)
        enqueue_request(settings.broker_url, number)
    for kind, number, queue in unattended:
        log.debug("a job is free, calling a worker", kind=kind.name, number=number)
        kind.enqueue(settings.broker_url, number, 1, queue=queue)
    for match_id in overdue:
        if live.end_overdue(database, match_id):
            log.info("a clock ran out", match=match_id)
            _settle_study_match(database, match_id)
            tell(match_id, False)
    _end_untouched(database, untouched, before, tell)
    _end_unanswered(database)
    _close_waves(database)
    _end_silent(database, tell)
    counts.merge(database)
    call_sums.keep_sums(database)
    _remove_what_is_due(database, settings)


def _open_since(session: Session, settings: Settings) -> datetime:
    """The cutoff time: a match last touched before it was left open for too long. Outages do not count."""
    now = datetime.now(UTC)
    before = now - timedelta(hours=settings.OPEN_MATCH_HOURS)
    return before - time_away(session, before, now)


def _end_far_leases(session: Session, settings: Settings) -> None:
    """End turn leases that a clock jump has set far into the future."""
    leases.end_distant(
        session, MatchRow, settings.TURN_LEASE, MatchRow.status == "playing", MatchRow.model_to_move.is_(True)
    )


def _end_untouched(
    database: Engine, untouched: Sequence[str], before: datetime, tell: Callable[[str, bool], None]
) -> None:
    for match_id in untouched:
        if live.abandon(database, match_id, before):
            log.info("a match was left open for too long", match=match_id)
            _settle_study_match(database, match_id)
            tell(match_id, False)


def _close_waves(database: Engine) -> None:
    with reading(database) as session:
        due = wave_terms.due_to_close(session)
    for number in due:
        with writing(database) as session:
            name = wave_terms.close_at_its_time(session, number)
        if name is not None:
            log.info("a wave closed at its time", wave=name)
    with writing(database) as session:
        left = close_left_waves(session)
    for name in left:
        log.info("closed the wave of a rehearsal that nobody runs", wave=name)


def _end_silent(database: Engine, tell: Callable[[str, bool], None]) -> None:
    """End the enrolments of inactive participants, each in its own transaction, so that others need not wait for
    all.
    """
    with reading(database) as session:
        silent = idle.silent(session)
    for number in silent:
        with writing(database) as session:
            ended = idle.end_silent(session, number)
        if ended is not None:
            log.info("an inactive participant was ended", enrolment=number)
        for match_id in ended or ():
            tell(match_id, False)


def _end_unanswered(database: Engine) -> None:
    """End participants who let a turn run out and did not say in time that they are still there."""
    with reading(database) as session:
        unanswered = study_matches.unanswered(session)
    for number in unanswered:
        with writing(database) as session:
            if study_matches.end_unanswered(session, number):
                log.info("a person did not come back to a match", enrolment=number)


def _settle_study_match(database: Engine, match_id: str) -> None:
    """Apply the end of a match to the study that it belongs to, if any."""
    with writing(database) as session:
        study_matches.end_after_silence(session, match_id)


def _remove_what_is_due(database: Engine, settings: Settings) -> None:
    """Delete the files of unusable datasets, and removed items that can no longer be restored; and, once an hour, data
    whose retention date has passed.
    """
    if files := delete_unusable_files(database, settings.home):
        log.info("deleted the files of unusable datasets", files=len(files))
    if freed := free_due(settings.home, database, seconds=_CLEANUP_SECONDS):
        log.info("freed the disk of what was removed", removals=freed)
    until = datetime.now(UTC) + retention.EVERY
    with writing(database) as session:
        if not take_or_renew_lease(session, retention.LEASE, uuid.uuid4().hex, until):
            return
        identities, prompts = retention.remove_what_is_due(session), retention.empty_late_prompts(session)
    with reading(database) as session:
        unlinked = retention.unlinked_people(session)  # of all waves, so not while others wait to write
    if unlinked:
        with writing(database) as session:
            retention.unlink(session, unlinked)
    if identities or prompts or unlinked:
        log.info(
            "removed what was kept until its day", recruiters_ids=identities, prompts=prompts, unlinked=len(unlinked)
        )


if __name__ == "__main__":
    main()
