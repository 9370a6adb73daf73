"""The text of a batch of notices, as a mail and as the body of a webhook request. Pure: it sends nothing."""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import NamedTuple

_MOST = 50  # lines in a message
SLACK = "slack"


class NoticeLine(NamedTuple):
    """One notice: its kind, its text, and the address of the page that it leads to."""

    kind: str
    text: str
    url: str


def subject_of(lines: Sequence[NoticeLine]) -> str:
    """The subject of a message."""
    return f"Parlor: {lines[0].text}" if len(lines) == 1 else f"Parlor: {len(lines)} notices"


def mail_of(
    batch: str, lines: Sequence[NoticeLine], sender: str, to: Sequence[str], at: datetime, account: str
) -> EmailMessage:
    """The mail of a batch, with the same Message-ID at each try."""
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = sender, ", ".join(to), subject_of(lines)
    mail["Date"], mail["Message-ID"] = format_datetime(at), f"<{batch}@{sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{text_of(lines)}\n\nChoose your notices at {account}\n")
    return mail


def text_of(lines: Sequence[NoticeLine]) -> str:
    """The lines of a message, each with its address."""
    shown = [f"{line.text[:1].upper()}{line.text[1:]}\n{line.url}" for line in lines[:_MOST]]
    further = len(lines) - len(shown)
    return "\n\n".join([*shown, *([f"and {further} more"] if further else [])])


def body_of(batch: str, lines: Sequence[NoticeLine], at: datetime, form: str) -> bytes:
    """The body of a webhook request, as JSON. `form` slack has only the text, as chat programs expect."""
    if form == SLACK:
        return json.dumps({"text": f"{subject_of(lines)}\n{text_of(lines)}"}).encode()
    notices = [line._asdict() for line in lines]
    said = {"id": batch, "at": at.isoformat(timespec="seconds"), "count": len(lines), "notices": notices}
    return json.dumps({**said, "text": subject_of(lines)}).encode()


def signature(secret: str, body: bytes, at: datetime) -> Mapping[str, str]:
    """The headers that prove to a receiver that we sent a body, and when: HMAC-SHA256 of "seconds.body".

    Source: https://docs.stripe.com/webhooks#verify-manually, whose scheme this is, in two headers.
    """
    seconds = str(int(at.timestamp()))
    made = hmac.new(secret.encode(), seconds.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {"X-Parlor-Timestamp": seconds, "X-Parlor-Signature": f"sha256={made}"}
