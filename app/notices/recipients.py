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
INSTALLATION = ""  # the name of a recipient that is no experimenter
_LONGEST = 254  # characters of a mail address, by RFC 5321


class NoticeRecipient(NamedTuple):
    """Somebody who is told by one channel. `since`: what came before is not told; None: what came in the last day."""

    name: str
    user_id: int | None
    channel: str
    kinds: Sequence[str]
    since: datetime | None


def find_recipients(session: Session, settings: Settings) -> list[NoticeRecipient]:
    """All who receive notices; none as long as nobody has asked for them."""
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
    """Have an experimenter told of these kinds of things at an address, from now on; none of them: of nothing.

    Raises Invalid for what is no address or kind, and for kinds without an address.
    """
    if wrong := next((kind for kind in kinds if kind not in KINDS), None):
        raise Invalid("notice_kinds", expected=either(KINDS), got=wrong)
    if (mail and not is_address(mail)) or (kinds and not mail):
        raise Invalid("notice_mail", expected=Phrase("a mail address such as name@example.org"), got=mail)
    if not (user.notice_mail and user.notice_kinds):
        user.notices_since = datetime.now(UTC)
    user.notice_mail, user.notice_kinds = mail or None, [*kinds]


def is_address(text: str) -> bool:
    """Whether a text is one mail address, without a name before it."""
    local, _, host = text.rpartition("@")
    plain = text.isascii() and text.isprintable() and not set(text) & set(' ,;:<>()"\\')
    return plain and bool(local and host) and len(text) <= _LONGEST and parseaddr(text)[1] == text
