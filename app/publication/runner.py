"""A worker for one push: checks again that all of it may be published, records whose games it holds, and sends it."""

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import structlog
from sqlalchemy.orm import Session

from app.core.config import ROOT, Settings
from app.core.errors import AppError
from app.core.extensions import DATABASE_AWAY, reading, transact_with_retry, writing
from app.core.internal_errors import internal_error
from app.jobs import states
from app.jobs.context import JobContext
from app.jobs.kind import finish
from app.publication import lifecycle
from app.publication.bundle import Bundle
from app.publication.folders import push_to_folder
from app.publication.job import LEASE, PUBLICATION
from app.publication.places import PublicationPlace
from app.publication.published import note_people
from app.publication.spec import PRIVATE, PublicationSpec

TICK = 0.5  # seconds between two checks whether the push should stop
AWAY = 120.0  # seconds that a result waits for an unavailable database

log = structlog.get_logger()


def run(context: JobContext, number: int) -> None:
    """Run a push until it is over, or it or the worker is stopped; do nothing if another worker has it."""
    with writing(context.database) as session:
        if not PUBLICATION.take(session, number, context.owner, LEASE):
            return
    error = None
    try:
        _check_and_push(context, number)
    except DATABASE_AWAY:  # upkeep calls a worker once the database is back
        raise
    except AppError as problem:
        error = problem.message
    except Exception as problem:
        error = internal_error("a worker at a push broke", problem, job=number)
    transact_with_retry(
        context.database, lambda session: PUBLICATION.release(session, number, context.owner, error), AWAY
    )


def _check_and_push(context: JobContext, number: int) -> None:
    with reading(context.database) as session:
        row = PUBLICATION.get(session, number)
        spec, by = PublicationSpec.of_json(row.spec), row.requested_by
        planned = lifecycle.plan(session, context.settings.home, spec)
    bundle = planned.bundle

    def begin(session: Session) -> bool:
        """Checks consents in the transaction that records whose games are published."""
        if PUBLICATION.renew(session, number, context.owner, LEASE) != states.RUNNING:
            return False
        lifecycle.check_again(session, planned)
        row = PUBLICATION.get(session, number)
        row.sent_at = row.sent_at or datetime.now(UTC)
        row.manifest, row.size, row.files = bundle.manifest.sha256, bundle.size, len(bundle.files)
        note_people(session, number, planned.release.participants)
        return True

    if not transact_with_retry(context.database, begin, AWAY):
        return
    if spec.place.folder is not None:
        push_to_folder(spec.place.folder, bundle)
        revision = None
    else:
        request = _request_line(context.settings, spec.place, bundle, private=spec.visibility == PRIVATE)
        revision = _send_to_hub(context, number, request)
        if revision is None:
            return
    transact_with_retry(context.database, lambda session: _finish_push(session, number, context.owner, revision), AWAY)
    facts = {"publication": number, "what": planned.name, "to": str(spec.place), "revision": revision, "by": by}
    log.info("something was published", **facts)


def _send_to_hub(context: JobContext, number: int, request: bytes) -> str | None:
    """The commit that the hub made; None if the push was stopped. Raises AppError with the process's message."""
    command = [sys.executable, "-m", "app.publication.sending"]
    # Code that loads torch in this process sets the hub offline; the push contacts it on purpose.
    environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    with subprocess.Popen(  # noqa: S603 - our own
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("expected a process with pipes")
        try:
            process.stdin.write(request)
            process.stdin.flush()
            renewed, status = 0.0, None
            while process.poll() is None:
                if time.monotonic() - renewed > LEASE / 6:
                    status = transact_with_retry(
                        context.database, lambda session: _renew(context, session, number), AWAY
                    )
                    renewed = time.monotonic()
                if status != states.RUNNING or context.stopping.wait(TICK):
                    return None
            answer = process.stdout.read()
        finally:
            process.kill()
    said = json.loads(answer) if answer else {"error": "the process that sends ended without a word; try again"}
    if "error" in said:
        raise AppError(said["error"])
    return str(said["revision"])


def _request_line(settings: Settings, place: PublicationPlace, bundle: Bundle, *, private: bool) -> bytes:
    """The line that the process reads."""
    texts = {name: content.decode() for name, content in bundle.files.items() if isinstance(content, bytes)}
    paths = {name: str(content) for name, content in bundle.files.items() if isinstance(content, Path)}
    said = {
        "endpoint": settings.HF_ENDPOINT, "token": settings.HF_TOKEN, "repository": place.repository,
        "revision": place.revision, "private": private, "manifest": bundle.manifest.model_dump(), "texts": texts,
        "paths": paths, "size": bundle.size,
    }  # fmt: skip
    return json.dumps(said).encode() + b"\n"


def _renew(context: JobContext, session: Session, number: int) -> str | None:
    return PUBLICATION.renew(session, number, context.owner, LEASE)


def _finish_push(session: Session, number: int, owner: str, revision: str | None) -> None:
    row = PUBLICATION.locked(session, number, owner)
    if row is not None:
        row.revision = revision
        finish(row)
        row.lease_owner, row.lease_until = None, datetime.now(UTC)
