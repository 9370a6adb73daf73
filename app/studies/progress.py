"""A person's progress through a study: the due step, the answers, and the ending. Nothing here commits.

A page always shows the due step, however the person gets there: back, a refresh, a second tab and another device all
lead to it. A form for any other step changes nothing.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from app.core.errors import NotFound, Phrase
from app.models import Enrolment, MatchRow, SeatRow, StudyEvent, StudyVersion, Wave
from app.studies.endings import PROLIFIC, EndingName
from app.studies.participant_steps import DEBRIEF, DONE, Step, steps
from app.studies.store import design_of

ENDING = "ending"  # the kind of the event that records how an enrolment ended
STEP = "step"  # the kind of the event that records a person's next step
STILL_THERE = "still there"  # the kind of the event that a person, when asked, is still there


class StudyProgress:
    """An enrolment with its design."""

    def __init__(self, enrolment: Enrolment, version: StudyVersion) -> None:
        self.enrolment = enrolment
        self.version = version
        self.design = design_of(version)
        self.steps = steps(self.design)

    @property
    def step(self) -> Step:
        """The due step."""
        return self.steps[self.enrolment.step]

    @property
    def can_leave(self) -> bool:
        """Whether anything is left to stop: the study has not ended, and there is more than its last pages."""
        return self.enrolment.ending is None and self.step.kind not in (DEBRIEF, DONE)

    @property
    def condition(self) -> Mapping[str, str] | None:
        """The condition's labels for the due match, or for the last one; None before the arm is drawn."""
        plan = self.enrolment.plan
        if plan is None:
            return None
        at = next((each.number for each in self.steps[self.enrolment.step :] if each.kind == "match"), None)
        found: Mapping[str, str] = plan["matches"][-1 if at is None else at]["condition"]
        return found

    def values(self, key: str) -> Mapping[str, Any]:
        """The answers given at a step; empty if there are none."""
        found: Mapping[str, Any] = self.enrolment.answers.get(key, {}).get("values", {})
        return found

    @property
    def quiz_attempts(self) -> Sequence[Mapping[str, Any]]:
        """The attempts at the due quiz."""
        found: Sequence[Mapping[str, Any]] = self.values(self.step.key).get("attempts", [])
        return found


def find_progress(session: Session, enrolment_id: int, *, lock: bool = False) -> StudyProgress:
    """An enrolment and its progress; `lock` prevents changes by others during this transaction. Raises NotFound."""
    enrolment = session.get(Enrolment, enrolment_id, with_for_update=lock, populate_existing=lock)
    if enrolment is None:
        raise NotFound("enrolment", expected=Phrase("one that exists"), got=enrolment_id)
    return StudyProgress(enrolment, session.get_one(StudyVersion, enrolment.study_version_id))


def find_progress_by_token(session: Session, token: str, *, lock: bool = False) -> StudyProgress:
    """An enrolment by its private link; `lock` is that of `find_progress`. Raises NotFound."""
    found = select(Enrolment).where(Enrolment.token == token)
    locked = found.with_for_update() if lock else found
    enrolment = session.scalar(locked, execution_options={"populate_existing": lock})
    if enrolment is None:
        raise unknown_link()
    return StudyProgress(enrolment, session.get_one(StudyVersion, enrolment.study_version_id))


def unknown_link() -> NotFound:
    """The error for a link that Parlor did not give out, or has since given to another person."""
    return NotFound("link", expected=Phrase("one that Parlor gave out"), got=Phrase("another one"))


def answer(
    progress: StudyProgress, key: str, values: Mapping[str, Any], typed: Mapping[str, str] | None = None
) -> None:
    """Store the answers given at a step; the last ones count. `typed` are numbers as they were typed."""
    given: dict[str, Any] = {"at": datetime.now(UTC).isoformat(), "values": dict(values)}
    if typed:
        given["typed"] = dict(typed)
    progress.enrolment.answers = {**progress.enrolment.answers, key: given}
    progress.enrolment.seen_at = datetime.now(UTC)


def advance(session: Session, progress: StudyProgress, key: str) -> Step:
    """Move on from the step with that key, if it is the due one; returns the step that is due then."""
    if progress.step.key == key and progress.step.kind != DONE:
        _go_to(progress, progress.enrolment.step + 1)
        log_event(session, progress, STEP, {"step": progress.step.key})
    return progress.step


def end(session: Session, progress: StudyProgress, name: EndingName, **facts: Any) -> bool:
    """End an enrolment, once. False if it has already ended; that ending stays.

    People who have played get the debrief and then the page with the code, everybody else only the latter.
    """
    enrolment = progress.enrolment
    if enrolment.ending is not None:
        return False
    if enrolment.wave_id is not None and enrolment.arm_id is not None:
        lock_wave(session, enrolment.wave_id)  # so that the log has arms and freed places in their true order
    ending = progress.design.ending(name, PROLIFIC)
    enrolment.ending, enrolment.ended_at = name, datetime.now(UTC)
    enrolment.holds_place = enrolment.holds_place and not ending.frees_place
    if progress.step.kind not in (DEBRIEF, DONE):
        kind = DEBRIEF if has_played(session, enrolment.id) else DONE
        _go_to(progress, next(at for at, step in enumerate(progress.steps) if step.kind == kind))
    log_event(session, progress, ENDING, {"ending": name, **facts})
    return True


def begin_anew(progress: StudyProgress) -> None:
    """Return a person to the first page."""
    _go_to(progress, 0)


def has_played(session: Session, enrolment_id: int) -> bool:
    """Whether a match that counts has begun."""
    matches = select(MatchRow.id).join(SeatRow, SeatRow.match_id == MatchRow.id)
    counted = matches.where(SeatRow.enrolment_id == enrolment_id, MatchRow.position.is_not(None))
    return session.scalar(counted.limit(1)) is not None


def log_event(session: Session, progress: StudyProgress, kind: str, body: Mapping[str, Any]) -> None:
    """Log an event of an enrolment in its wave; a preview has no log."""
    if progress.enrolment.wave_id is not None:
        log_wave_event(session, progress.enrolment.wave_id, kind, body, progress.enrolment.id)


def log_wave_event(
    session: Session, wave_id: int, kind: str, body: Mapping[str, Any], enrolment_id: int | None = None
) -> None:
    """Log an event in a wave, of the wave itself or of an enrolment."""
    now = datetime.now(UTC)
    session.add(StudyEvent(wave_id=wave_id, enrolment_id=enrolment_id, kind=kind, body=dict(body), at=now))


def by_whom(by: str | None) -> dict[str, str]:
    """The log entry for who did something, if that is known."""
    return {} if by is None else {"by": by}


def lock_enrolments(session: Session, enrolments: ColumnElement[bool]) -> Sequence[Enrolment]:
    """The current state of enrolments, locked until the transaction ends.

    All locks are taken in the order enrolments by id, then participant or wave, so no two wait for each other.
    """
    locked = select(Enrolment).where(enrolments).order_by(Enrolment.id).with_for_update()
    return session.scalars(locked, execution_options={"populate_existing": True}).all()


def lock_wave(session: Session, wave_id: int) -> Wave:
    """The current state of a wave, locked until the transaction ends; others may still write to its log."""
    return session.get_one(Wave, wave_id, with_for_update={"key_share": True}, populate_existing=True)


def _go_to(progress: StudyProgress, at: int) -> None:
    progress.enrolment.step = at
    progress.enrolment.stage = progress.step.kind
    progress.enrolment.seen_at = datetime.now(UTC)
