"""The outbox of notices: each is stored first, and marked as sent afterwards. Nothing here commits.

A notice is sent at least once: a batch whose process was killed between sending it and marking it is sent again, with
the same number, by which a program can recognise it. Tries become less frequent, and then the batch counts as failed.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import Conflict, Invalid, NotFound, Phrase, either
from app.models import Notice, User
from app.notices.causes import TEST, find_causes
from app.notices.recipients import MAIL, find_recipients

WAITING, SENT, FAILED, DISMISSED = "waiting", "sent", "failed", "dismissed"
RETRY, DISMISS = "retry", "dismiss"  # what can be done with failed ones
LATELY = timedelta(days=1)  # older causes are not reported
KEPT = timedelta(days=90)  # how long sent notices are kept
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=30), timedelta(hours=1)  # between two tries
_MOST = 1000  # notices in a batch
_BETWEEN = timedelta(minutes=1)  # between two tests, each of which is a mail
_SHOWN = 3  # on an experimenter's own page


def is_due(session: Session) -> bool:
    """Whether any notice is due to be sent."""
    waiting = select(Notice.id).where(Notice.status == WAITING, Notice.due_at <= datetime.now(UTC)).limit(1)
    return session.scalar(waiting) is not None


def new_notices(session: Session, settings: Settings) -> list[Notice]:
    """Notices that are due and not stored yet, as rows outside of any session. Only reads."""
    recipients, now = find_recipients(session, settings), datetime.now(UTC)
    if not recipients:
        return []
    earliest = now - LATELY
    causes = find_causes(session, settings, earliest)
    keys = [cause.key for cause in causes]
    told = select(Notice.cause, Notice.recipient, Notice.channel).where(Notice.cause.in_(keys))
    known = {(cause, recipient, channel) for cause, recipient, channel in session.execute(told)}
    return [
        Notice(
            cause=cause.key,
            recipient=each.name,
            user_id=each.user_id,
            channel=each.channel,
            kind=cause.kind,
            text=str(cause.text),
            path=cause.path,
            created_at=now,
            due_at=now,
            status=WAITING,
        )
        for each in recipients
        for cause in causes
        if cause.kind in each.kinds
        and cause.at >= (each.since or earliest)
        and (cause.key, each.name, each.channel) not in known
    ]


def add_test(session: Session, user: User, settings: Settings) -> None:
    """Have upkeep send an experimenter a test notice. Raises Conflict if that is not possible."""
    if not settings.SMTP_HOST:
        expected = Phrase("a server that sends mail")
        raise Conflict(
            "SMTP_HOST", expected=expected, got=Phrase("none"), remedy=Phrase("ask the administrator to set it")
        )
    if not user.notice_mail:
        raise Conflict("notice_mail", expected=Phrase("an address that is saved"), got=Phrase("none"))
    now, number = datetime.now(UTC), uuid.uuid4().hex
    lately = select(Notice.id).where(Notice.user_id == user.id, Notice.kind == TEST, Notice.created_at > now - _BETWEEN)
    if session.scalar(lately.limit(1)) is not None:
        raise Conflict("notice_mail", expected=Phrase("one test a minute"), got=Phrase("another one"))
    session.add(
        Notice(
            cause=f"test {number}", recipient=user.name, user_id=user.id, channel=MAIL, kind=TEST, text=TEST_TEXT,
            path="/account", created_at=now, due_at=now, status=WAITING, batch=number,
        )
    )  # fmt: skip


TEST_TEXT = str(Phrase("a test: notices of Parlor arrive here"))


def take_batch(session: Session, settings: Settings) -> list[Notice]:
    """The next notices to be sent together, with this try counted; none if none is due."""
    now = datetime.now(UTC)
    due = select(Notice).where(Notice.status == WAITING, Notice.due_at <= now).order_by(Notice.id)
    first = session.scalar(due.where(Notice.batch.is_not(None)).limit(1))
    if first is not None:
        batch = [*session.scalars(due.where(Notice.batch == first.batch))]
    else:
        before = now - timedelta(seconds=settings.NOTICE_GROUP_SECONDS)
        first = session.scalar(due.where(Notice.created_at <= before).limit(1))
        if first is None:
            return []
        same = due.where(Notice.recipient == first.recipient, Notice.channel == first.channel)
        batch = [*session.scalars(same.limit(_MOST))]
    number = first.batch or uuid.uuid4().hex
    for each in batch:
        each.batch, each.tries = number, each.tries + 1
        each.due_at = now + min(_FIRST_WAIT * 2 ** (each.tries - 1), _LONGEST_WAIT)
    session.flush()
    session.expunge_all()
    return batch


def mark_sent(session: Session, batch: str) -> None:
    """Mark the notices of a batch as sent."""
    now = datetime.now(UTC)
    session.execute(
        update(Notice).where(Notice.batch == batch).values(status=SENT, sent_at=now, error=None),
        execution_options={"synchronize_session": False},
    )


def mark_unsent(session: Session, batch: str, error: str, settings: Settings) -> None:
    """Store why a batch was not sent; after its last try it counts as failed."""
    status = FAILED if (tries_of(session, batch) or 0) >= settings.NOTICE_TRIES else WAITING
    session.execute(
        update(Notice).where(Notice.batch == batch, Notice.status == WAITING).values(status=status, error=error),
        execution_options={"synchronize_session": False},
    )


def tries_of(session: Session, batch: str) -> int | None:
    """The number of tries of a batch."""
    return session.scalar(select(func.max(Notice.tries)).where(Notice.batch == batch))


def last_notices(session: Session, user_id: int) -> Sequence[Notice]:
    """An experimenter's latest notices, sent or waiting."""
    own = select(Notice).where(Notice.user_id == user_id).order_by(Notice.id.desc())
    return session.scalars(own.limit(_SHOWN)).all()


def count_failed(session: Session) -> int:
    """The number of failed notices that nobody has dealt with yet."""
    return session.scalar(select(func.count(Notice.id)).where(Notice.status == FAILED)) or 0


def settle_failed(session: Session, action: str) -> int:
    """Retry all failed notices, or leave them unsent; return their number. Raises Invalid."""
    if action not in (RETRY, DISMISS):
        raise Invalid("action", expected=either((RETRY, DISMISS)), got=action)
    failed = [*session.scalars(select(Notice).where(Notice.status == FAILED))]
    for each in failed:
        each.status = WAITING if action == RETRY else DISMISSED
        each.tries, each.due_at = 0, datetime.now(UTC)
    return len(failed)


def remove_old(session: Session) -> None:
    """Delete old notices. Their events are older than LATELY, so they are not reported again.

    A limit that is still passed is reported again, as a reminder.
    """
    old = select(Notice).where(Notice.status != WAITING, Notice.created_at < datetime.now(UTC) - KEPT)
    for each in session.scalars(old.limit(_MOST)):
        session.delete(each)


def address_of(session: Session, notices: Sequence[Notice], settings: Settings) -> Sequence[str]:
    """The mail addresses for the notices of one recipient. Raises NotFound if there is none any more."""
    user = None if notices[0].user_id is None else session.get(User, notices[0].user_id)
    found = settings.notice_mail_to if notices[0].user_id is None else [user.notice_mail] if user else []
    if not (addresses := [each for each in found if each]):
        raise NotFound("notice_mail", expected=Phrase("an address"), got=Phrase("none"))
    return addresses
