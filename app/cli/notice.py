"""`flask notice`: notices to experimenters by mail or webhook."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app import accounts
from app.cli.base import CommandFailed, Group, ensure_database, settings
from app.cli.lists import list_options, print_list
from app.core.errors import Conflict, Phrase
from app.core.extensions import db, reading, writing
from app.models import Notice
from app.notices import outbox
from app.notices.causes import TEST
from app.notices.delivery import send
from app.notices.listing import NOTICES
from app.notices.recipients import MAIL, WEBHOOK
from app.notices.sending import NotSent

notice = Group("notice", help="List what experimenters were told by mail or webhook, and test that it arrives.")


@notice.command("list")
@click.option("--failed", is_flag=True, help="Only those that could not be sent.")
@list_options
def list_(failed: bool, **given: Any) -> None:
    """Show the notices: to whom, about what, and whether they were sent."""

    def where(_session: Session) -> Sequence[ColumnElement[bool]]:
        return [Notice.status == outbox.FAILED] if failed else []

    print_list(NOTICES, "flask notice list", "No notices yet.", where=where, **given)


@notice.command()
@click.option("--user", metavar="NAME", help="An experimenter, in place of the addresses in the settings.")
def test(user: str | None) -> None:
    """Send a test now, to an experimenter or to all that the settings name, and say whether it was accepted."""
    ensure_database()
    known = settings()
    with reading() as session:
        found = None if user is None else accounts.find_user(session, user)
        user_id = None if found is None else found.id
        channels = [MAIL] if found is not None or known.notice_mail_to else []
    channels += [WEBHOOK] if user is None and known.NOTICE_WEBHOOK_URL else []
    if not channels or (MAIL in channels and not known.SMTP_HOST):
        expected = Phrase("SMTP_HOST, and NOTICE_MAIL_TO or an experimenter’s address; or NOTICE_WEBHOOK_URL")
        raise Conflict("settings", expected=expected, got=Phrase("none of them"))
    failures = 0
    for channel in channels:
        now = datetime.now(UTC)
        row = Notice(
            recipient=user or "", user_id=user_id, channel=channel, kind=TEST, text=outbox.TEST_TEXT,
            path="/account", batch=uuid.uuid4().hex, created_at=now,
        )  # fmt: skip
        try:
            send(db.engine, known, [row])
            click.echo(f"{channel}: sent")
        except NotSent as error:
            failures += 1
            click.echo(f"{channel}: not sent: {error}", err=True)
    if failures:
        raise CommandFailed("the test did not arrive everywhere; mend the settings and test again")


@notice.command()
def retry() -> None:
    """Retry all notices that could not be sent."""
    _settle_failed_notices(outbox.RETRY, "Upkeep tries {} again.")


@notice.command()
def dismiss() -> None:
    """Dismiss all notices that could not be sent, and their warning."""
    _settle_failed_notices(outbox.DISMISS, "{} dismissed.")


def _settle_failed_notices(action: str, said: str) -> None:
    ensure_database()
    with writing() as session:
        count = outbox.settle_failed(session, action)
    click.echo(said.format(f"{count} notice" if count == 1 else f"{count} notices"))
