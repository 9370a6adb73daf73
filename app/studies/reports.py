"""What people report to the experimenter, and what was done about it. Nothing here commits.

A report is an event in the log of its wave; a mark that somebody has read or handled it is one as well, of no person.
A report that comes after the wave was frozen is shown; it is in the export of what came since. Marks are in no export.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Invalid, NotFound, Phrase, either
from app.models import StudyEvent
from app.studies.progress import StudyProgress, lock_wave, note, note_in_wave

REPORT = "report"
WORDS = ("text",)  # what the log of a wave has of a person's own words
# What went wrong, as the page of a report asks.
REASONS = ("broken", "stuck", "upsetting", "unclear", "too long", "other")
NEW, READ, HANDLED = "new", "read", "handled"
# The kinds of the events by which an experimenter says that a report is read, handled or new again.
MARKS: Mapping[str, str] = {READ: "report read", HANDLED: "report handled", NEW: "report reopened"}


def read_reason(text: str) -> str:
    """What went wrong, as it was sent. Raises Invalid for none of the reasons."""
    if text not in REASONS:
        raise Invalid("reason", expected=Phrase("one of the answers"), got=Phrase("none"))
    return text


def keep_report(session: Session, progress: StudyProgress, reason: str, text: str, match_id: str | None = None) -> None:
    """Keep what went wrong, in a person's words if there are any, and the match that it is about, if it is one.

    The same report sent twice is kept once.
    """
    body: dict[str, Any] = {"reported": reason, "text": text, "step": progress.step.key}
    if match_id is not None:
        body["match"] = match_id
    last = select(StudyEvent.body).where(StudyEvent.enrolment_id == progress.enrolment.id, StudyEvent.kind == REPORT)
    if _same(session.scalar(last.order_by(StudyEvent.id.desc()).limit(1)), body):
        return
    if progress.enrolment.wave_id is not None:
        lock_wave(session, progress.enrolment.wave_id)  # of a freeze at the same moment it comes before, or after
    note(session, progress, REPORT, body)


def _same(last: Mapping[str, Any] | None, body: Mapping[str, Any]) -> bool:
    """Whether a report says what the last one did; whoever left with that is at another step since."""
    return last is not None and all(last.get(name) == body[name] for name in ("reported", "text"))


def has_reported(session: Session, progress: StudyProgress) -> bool:
    """Whether somebody has reported anything in this enrolment."""
    sent = select(StudyEvent.id).where(StudyEvent.enrolment_id == progress.enrolment.id, StudyEvent.kind == REPORT)
    return session.scalar(sent.limit(1)) is not None


def mark_report(session: Session, report_id: int, state: str, by: str) -> None:
    """Say that a report was read or handled, or is new again. Raises NotFound and Invalid."""
    if state not in MARKS:
        raise Invalid("action", expected=either(MARKS), got=state)
    event = _find_report(session, report_id)
    if _states(session, event.wave_id).get(event.id, NEW) != state:
        # Of no enrolment: it is no sign of life of the person.
        note_in_wave(session, event.wave_id, MARKS[state], {"report": report_id, "by": by})
        session.flush()


def mark_all_read(session: Session, report_id: int, by: str) -> None:
    """Say that all new reports of whoever sent this one, in its wave, were read. Raises NotFound."""
    event = _find_report(session, report_id)
    for each in unread_in(session, event.wave_id, event.enrolment_id):
        mark_report(session, each, READ, by)


def _find_report(session: Session, report_id: int) -> StudyEvent:
    event = session.get(StudyEvent, report_id)
    if event is None or event.kind != REPORT:
        raise NotFound("report", expected=Phrase("one that was sent"), got=report_id)
    return event


def unread_in(session: Session, wave_id: int | None, enrolment_id: int | None = None) -> Sequence[int]:
    """The reports of a wave, or of one person in it, that nobody has read."""
    sent = select(StudyEvent.id).where(StudyEvent.wave_id == wave_id, StudyEvent.kind == REPORT)
    if enrolment_id is not None:
        sent = sent.where(StudyEvent.enrolment_id == enrolment_id)
    states = _states(session, wave_id)
    return [each for each in session.scalars(sent.order_by(StudyEvent.id)) if states.get(each, NEW) == NEW]


def _states(session: Session, wave_id: int | None) -> dict[int, str]:
    """Whether the reports of a wave are new, read or handled; without those that nobody has marked."""
    events = select(StudyEvent.kind, StudyEvent.body).where(
        StudyEvent.wave_id == wave_id, StudyEvent.kind.in_(MARKS.values())
    )
    states = {kind: state for state, kind in MARKS.items()}
    return {row.body["report"]: states[row.kind] for row in session.execute(events.order_by(StudyEvent.id))}
