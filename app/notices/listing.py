"""The list of notices: who was told what, and what could not be sent."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.core.errors import Phrase
from app.core.lists import COMMANDS, NOWHERE, English, ListColumn, Listing, State, attribute
from app.models import Notice
from app.notices.outbox import DISMISSED, FAILED, SENT, WAITING

STATES = {
    WAITING: Phrase("waiting"),
    SENT: Phrase("sent"),
    FAILED: Phrase("not sent"),
    DISMISSED: Phrase("dismissed"),
}
_MARKS = {WAITING: "open", SENT: "good", FAILED: "bad", DISMISSED: ""}


@dataclass(frozen=True)
class NoticeListItem:
    """A notice in a list."""

    row: Notice


def _notice_items(_session: Session, rows: Sequence[Notice]) -> list[NoticeListItem]:
    return [NoticeListItem(row) for row in rows]


NOTICES: Listing[Notice] = Listing(
    name="notices",
    table=Notice,
    columns=(
        ListColumn("text", Phrase("Notice"), lambda each: English(each.row.text), sort=Notice.text),
        attribute(Notice.id, Phrase("Number"), "notice_id", numeric=True, seen=COMMANDS),
        ListColumn(
            "status",
            Phrase("State"),
            lambda each: State(each.row.status, _MARKS[each.row.status], STATES[each.row.status]),
            sort=Notice.status,
            notes=lambda each: [English(each.row.error)] if each.row.error else [],
        ),
        ListColumn(
            "recipient",
            Phrase("To"),
            lambda each: each.row.recipient or None,
            sort=Notice.recipient,
            none=Phrase("the whole installation"),
        ),
        attribute(Notice.channel, Phrase("By")),
        attribute(Notice.tries, Phrase("Tries"), numeric=True),
        attribute(Notice.created_at, Phrase("When, UTC"), numeric=True),
        attribute(Notice.sent_at, Phrase("Sent, UTC"), numeric=True, seen=NOWHERE),
        attribute(Notice.kind, Phrase("Kind"), seen=NOWHERE),
        attribute(Notice.batch, Phrase("Message"), seen=NOWHERE),
        ListColumn("error", Phrase("Error"), lambda each: each.row.error and English(each.row.error), seen=NOWHERE),
    ),
    items=_notice_items,
)
