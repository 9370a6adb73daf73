"""People's reports to the experimenter, and how they were handled. Nothing here commits.

A report is an event in the log of its wave; so is each step that an experimenter takes with it, which belongs to no
person: it is assigned, answered, closed or new again, or gets a note. Undoing a step adds one that restores the
previous state, so the log keeps who did what. A report that arrives after the wave was frozen is shown; it is in the
export of what came since. Steps are in no export.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from app.accounts import find_user
from app.core.errors import Conflict, Invalid, NotFound, Phrase, Verbatim, either
from app.models import StudyEvent
from app.studies.progress import StudyProgress, lock_wave, log_event, log_wave_event

REPORT = "report"
WORDS = ("text",)  # the keys of a person's own words in a wave's log
# The problems that a report's page offers.
REASONS = ("broken", "stuck", "upsetting", "unclear", "too long", "other")
NEW, ASSIGNED, ANSWERED, CLOSED = "new", "assigned", "answered", "closed"
# The kinds of events by which an experimenter sets a report's state.
MARKS: Mapping[str, str] = {
    NEW: "report reopened", ASSIGNED: "report assigned", ANSWERED: "report answered", CLOSED: "report closed",
}  # fmt: skip
NOTE = "report note"
STEPS = (*MARKS.values(), NOTE)  # all actions of experimenters on reports
WAYS = ("recruiter", "mail", "phone", "in person", "other")  # how a person was answered
_MOST_WORDS = 2000  # in an answer or a note
_LARGEST = 2**31 - 1  # the largest event number


def read_reason(text: str) -> str:
    """The submitted reason of a report. Raises Invalid if it is not one of the reasons."""
    if text not in REASONS:
        raise Invalid("reason", expected=Phrase("one of the answers"), got=Phrase("none"))
    return text


def keep_report(session: Session, progress: StudyProgress, reason: str, text: str, match_id: str | None = None) -> None:
    """Store what went wrong, the person's words, if any, and the match that it is about, if any.

    The same report sent twice is stored once.
    """
    body: dict[str, Any] = {"reported": reason, "text": text, "step": progress.step.key}
    if match_id is not None:
        body["match"] = match_id
    last = select(StudyEvent.body).where(StudyEvent.enrolment_id == progress.enrolment.id, StudyEvent.kind == REPORT)
    if _is_repeated_report(session.scalar(last.order_by(StudyEvent.id.desc()).limit(1)), body):
        return
    if progress.enrolment.wave_id is not None:
        lock_wave(session, progress.enrolment.wave_id)  # so that it comes before or after a simultaneous freeze
    log_event(session, progress, REPORT, body)


def _is_repeated_report(last: Mapping[str, Any] | None, body: Mapping[str, Any]) -> bool:
    """Whether a report repeats the last one; the step is ignored, because a person who left with it is at another
    step.
    """
    return last is not None and all(last.get(name) == body[name] for name in ("reported", "text"))


def has_reported(session: Session, progress: StudyProgress) -> bool:
    """Whether somebody has reported anything in this enrolment."""
    sent = select(StudyEvent.id).where(StudyEvent.enrolment_id == progress.enrolment.id, StudyEvent.kind == REPORT)
    return session.scalar(sent.limit(1)) is not None


def check_seen(session: Session, report_id: int, seen: int | None, by: str) -> None:
    """Raises Conflict if a colleague has changed a report since `by` looked at it. Raises NotFound as well.

    `seen` is the number of the step that had last set its state then, None if there was none.
    """
    last = _last_mark(session, _locked_report(session, report_id))
    if last is None or last.id == seen or last.body["by"] == by:
        return
    state = _STATES[last.kind]
    raise Conflict(
        "report",
        expected=Phrase("one unchanged since it was last seen"),
        got=Phrase("one that %(name)s takes care of now", name=Verbatim(last.body["to"]))
        if state == ASSIGNED
        else Phrase("one that %(name)s has marked as %(state)s", name=Verbatim(last.body["by"]), state=Phrase(state)),
        remedy=Phrase("look at what was done, and do it again if you still want to"),
    )


def assigned_to(session: Session, report_id: int) -> str | None:
    """The name of the experimenter who handles a report. Raises NotFound."""
    return _assigned_to(session, find_event(session, report_id))


def assign_report(session: Session, report_id: int, to: str, by: str) -> None:
    """Assign a report to an experimenter: `to` is the name of an account. Raises NotFound."""
    find_user(session, to)
    _record_report_state(session, report_id, ASSIGNED, by, to=to)


def answer_report(session: Session, report_id: int, way: str, text: str, by: str) -> None:
    """Record that the person of a report was answered: in which of WAYS, and the text. Raises NotFound and Invalid."""
    if way not in WAYS:
        raise Invalid("way", expected=either(WAYS), got=way)
    event = _locked_report(session, report_id)
    to = _assigned_to(session, event) or by
    _record_report_state(session, report_id, ANSWERED, by, to=to, way=way, text=_read_words_of_step(text))


def close_report(session: Session, report_id: int, by: str) -> None:
    """Mark a report as closed: nothing is left to do. Raises NotFound."""
    _record_report_state(session, report_id, CLOSED, by, to=_assigned_to(session, _locked_report(session, report_id)))


def reopen_report(session: Session, report_id: int, by: str) -> None:
    """Mark a report as new again, and assigned to nobody. Raises NotFound."""
    _record_report_state(session, report_id, NEW, by, to=None)


def note_on_report(session: Session, report_id: int, text: str, by: str) -> None:
    """Add a note to a report. Raises NotFound and Invalid."""
    event = find_event(session, report_id)
    log_wave_event(session, event.wave_id, NOTE, {"report": report_id, "by": by, "text": _read_words_of_step(text)})


def undo_step(session: Session, report_id: int, by: str, step: int | None = None) -> None:
    """Return a report to its state before its last step; notes do not count as steps.

    `step` is the step to undo, None for the last one. Raises NotFound, and Conflict if another step was taken since, or
    none is left.
    """
    event = _locked_report(session, report_id)
    standing = standing_steps(steps_of(session, event))
    if not standing:
        raise Conflict("report", expected=Phrase("one with a step to undo"), got=Phrase("one without any steps"))
    last = standing[-1]
    if step not in (None, last.id):
        expected, remedy = Phrase("the last step of the report"), Phrase("look at what was done since")
        raise Conflict("report", expected=expected, got=Phrase("an earlier one"), remedy=remedy)
    before = standing[-2] if len(standing) > 1 else None
    said = {} if before is None else {name: before.body.get(name) for name in ("to", "way", "text")}
    kind = MARKS[NEW] if before is None else before.kind
    log_wave_event(session, event.wave_id, kind, {**said, "report": report_id, "by": by, "undoes": last.id})


def assign_all(session: Session, report_id: int, to: str, by: str) -> None:
    """Assign all new reports of this report's sender in its wave. Raises NotFound."""
    event = _locked_report(session, report_id)
    for each in new_in(session, event.wave_id, event.enrolment_id):
        assign_report(session, each, to, by)


def steps_of(session: Session, report: StudyEvent) -> Sequence[StudyEvent]:
    """The experimenters' steps with a report, the first one first."""
    return _report_steps_where(session, StudyEvent.wave_id == report.wave_id, report.id == _REPORT)


def empty_steps(session: Session, report_ids: Sequence[int]) -> None:
    """Remove the words of answers and notes, which may repeat what the person wrote."""
    for row in _report_steps_where(session, _REPORT.in_(report_ids)):
        row.body = {name: value for name, value in row.body.items() if name not in WORDS}


_REPORT = StudyEvent.body["report"].as_integer()


def _report_steps_where(session: Session, *which: ColumnElement[bool]) -> Sequence[StudyEvent]:
    return session.scalars(select(StudyEvent).where(StudyEvent.kind.in_(STEPS), *which).order_by(StudyEvent.id)).all()


def standing_steps(steps: Sequence[StudyEvent]) -> list[StudyEvent]:
    """The steps of a report that change its state and are not undone."""
    found: list[StudyEvent] = []
    for each in steps:
        if "undoes" in each.body:
            found = [other for other in found if other.id != each.body["undoes"]]
        elif each.kind != NOTE:
            found.append(each)
    return found


def _record_report_state(session: Session, report_id: int, state: str, by: str, **said: Any) -> None:
    """Record a report's state, unless it is already in that state with the same details."""
    event = _locked_report(session, report_id)
    last = _last_mark(session, event)
    now = (NEW, None) if last is None else (_STATES[last.kind], last.body.get("to"))
    if (state, said["to"]) != now or state == ANSWERED:
        # Not of an enrolment: it is no sign of life of the person.
        log_wave_event(session, event.wave_id, MARKS[state], {"report": report_id, "by": by, **said})
        session.flush()


def _last_mark(session: Session, report: StudyEvent) -> StudyEvent | None:
    return next((each for each in reversed(steps_of(session, report)) if each.kind != NOTE), None)


def _assigned_to(session: Session, report: StudyEvent) -> str | None:
    last = _last_mark(session, report)
    return None if last is None else last.body.get("to")


def _read_words_of_step(text: str) -> str:
    words = text.strip()
    if not 1 <= len(words) <= _MOST_WORDS:
        expected = Phrase("1 to %(most)s characters", most=_MOST_WORDS)
        raise Invalid("text", expected=expected, got=Verbatim(len(words)))
    return words


def _locked_report(session: Session, report_id: int) -> StudyEvent:
    """A report, locked against steps by others until the transaction ends, so that no step is undone twice."""
    event = find_event(session, report_id)
    lock_wave(session, event.wave_id)
    return event


def find_event(session: Session, report_id: int) -> StudyEvent:
    """The event of a report. Raises NotFound."""
    event = session.get(StudyEvent, report_id) if report_id <= _LARGEST else None
    if event is None or event.kind != REPORT:
        raise NotFound("report", expected=Phrase("one that was sent"), got=report_id)
    return event


def new_in(session: Session, wave_id: int | None, enrolment_id: int | None = None) -> Sequence[int]:
    """The reports of a wave, or of one person in it, that nobody has taken care of."""
    sent = select(StudyEvent.id).where(StudyEvent.wave_id == wave_id, StudyEvent.kind == REPORT)
    if enrolment_id is not None:
        sent = sent.where(StudyEvent.enrolment_id == enrolment_id)
    marks = select(StudyEvent.kind, StudyEvent.body).where(
        StudyEvent.wave_id == wave_id, StudyEvent.kind.in_(MARKS.values())
    )
    states = {row.body["report"]: _STATES[row.kind] for row in session.execute(marks.order_by(StudyEvent.id))}
    return [each for each in session.scalars(sent.order_by(StudyEvent.id)) if states.get(each, NEW) == NEW]


_STATES = {kind: state for state, kind in MARKS.items()}
