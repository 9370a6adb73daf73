"""Collect and send notices, for upkeep and commands: find what is due, send it, and mark it as sent."""

import threading
import uuid
from datetime import UTC, datetime, timedelta

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import NotFound
from app.core.extensions import reading, writing
from app.matches.sweep import take_or_renew_lease
from app.models import Notice
from app.notices import outbox
from app.notices.messages import NoticeLine, body_of, mail_of, signature
from app.notices.recipients import MAIL
from app.notices.sending import NotSent, post, send_mail

LEASE, LEASE_SECONDS = "notices", 120  # longer than any single try may take
EVERY = 5.0  # seconds between two looks
_AT_ONCE = 20  # batches per look
log = structlog.get_logger()


def keep_sending(database: Engine, settings: Settings, stop: threading.Event) -> None:
    """Send notices to experimenters until `stop`. Runs in a thread, as a mail server may be slow."""
    owner = uuid.uuid4().hex
    while not stop.wait(EVERY):
        try:
            send_due(database, settings, owner)
        except SQLAlchemyError as error:
            log.debug("notices wait for the database", error=str(getattr(error, "orig", error)))
        except Exception:  # whatever it is, it may be gone at the next look; a dead thread would report nothing
            log.exception("notices could not be looked for")


def send_due(database: Engine, settings: Settings, owner: str) -> int:
    """Collect notices and send those that are due, unless another process does; return the number of batches sent."""
    with reading(database) as session:
        new = outbox.new_notices(session, settings)
        if not new and not outbox.is_due(session):
            return 0
    with writing(database) as session:
        if not _hold(session, owner):
            return 0
        session.add_all(new)
        outbox.remove_old(session)
    sent = 0
    for _ in range(_AT_ONCE):
        with writing(database) as session:
            batch = outbox.take_batch(session, settings) if _hold(session, owner) else []
        if not batch:
            break
        sent += send_batch(database, settings, batch)
    return sent


def send_batch(database: Engine, settings: Settings, batch: list[Notice]) -> bool:
    """Send notices that were taken together, and record whether that succeeded."""
    number, error = batch[0].batch or "", ""
    try:
        send(database, settings, batch)
    except (NotSent, NotFound) as found:
        error = str(found)
        log.warning("notices were not sent", channel=batch[0].channel, count=len(batch), error=error)
    with writing(database) as session:
        if error:
            outbox.mark_unsent(session, number, error, settings)
        else:
            outbox.mark_sent(session, number)
    return not error


def send(database: Engine, settings: Settings, batch: list[Notice]) -> None:
    """Send notices by their channel. Raises NotSent, and NotFound where their address is gone."""
    now, number, url = datetime.now(UTC), batch[0].batch or "", settings.public_url
    lines = [NoticeLine(each.kind, each.text, f"{url}{each.path}") for each in batch]
    if batch[0].channel == MAIL:
        with reading(database) as session:
            to = outbox.address_of(session, batch, settings)
        send_mail(mail_of(number, lines, settings.notice_sender, to, now, f"{url}/account"), settings)
        return
    body = body_of(number, lines, now, settings.NOTICE_WEBHOOK_FORM)
    secret = settings.NOTICE_WEBHOOK_SECRET
    headers = signature(secret, body, now) if secret else {}
    post(settings.NOTICE_WEBHOOK_URL, body, headers, private=settings.NOTICE_PRIVATE_ADDRESSES)


def _hold(session: Session, owner: str) -> bool:
    return take_or_renew_lease(session, LEASE, owner, datetime.now(UTC) + timedelta(seconds=LEASE_SECONDS))
