"""Who receives which notices, and where: experimenters by their accounts, the installation by its settings."""

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parseaddr
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import Invalid, Phrase, either
from app.models import User
from app.notices.causes import KINDS

MAIL, WEBHOOK = "mail", "webhook"
INSTALLATION = ""  # the name of the recipient that is no experimenter
_LONGEST = 254  # characters of a mail address, per RFC 5321


class NoticeRecipient(NamedTuple):
    """A recipient of notices by one channel. `since`: earlier events are not reported; None: only those of the last day
    are.
    """

    name: str
    user_id: int | None
    channel: str
    kinds: Sequence[str]
    since: datetime | None


def find_recipients(session: Session, settings: Settings) -> list[NoticeRecipient]:
    """All recipients of notices; none if nobody has asked for any."""
    found = []
    if settings.SMTP_HOST:
        users = session.scalars(select(User).where(User.notice_mail.is_not(None)).order_by(User.id))
        found = [
            NoticeRecipient(each.name, each.id, MAIL, each.notice_kinds or (), each.notices_since) for each in users
        ]
        if settings.notice_mail_to:
            found.append(NoticeRecipient(INSTALLATION, None, MAIL, [*KINDS], None))
    if settings.NOTICE_WEBHOOK_URL:
        found.append(NoticeRecipient(INSTALLATION, None, WEBHOOK, [*KINDS], None))
    return found


def set_notices(user: User, mail: str, kinds: Sequence[str]) -> None:
    """Send an experimenter notices of these kinds at an address, from now on; without kinds, none.

    Raises Invalid for an invalid address or kind, and for kinds without an address.
    """
    if wrong := next((kind for kind in kinds if kind not in KINDS), None):
        raise Invalid("notice_kinds", expected=either(KINDS), got=wrong)
    if (mail and not is_address(mail)) or (kinds and not mail):
        raise Invalid("notice_mail", expected=Phrase("a mail address such as name@example.org"), got=mail)
    if not (user.notice_mail and user.notice_kinds):
        user.notices_since = datetime.now(UTC)
    user.notice_mail, user.notice_kinds = mail or None, [*kinds]


def is_address(text: str) -> bool:
    """Whether a text is a single mail address, without a name before it."""
    local, _, host = text.rpartition("@")
    plain = text.isascii() and text.isprintable() and not set(text) & set(' ,;:<>()"\\')
    return plain and bool(local and host) and len(text) <= _LONGEST and parseaddr(text)[1] == text
