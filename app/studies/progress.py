"""A person's progress through a study: which step is due, what was answered, and how it ends. Nothing here commits.

A page is always that of the step that is due, wherever somebody comes from: back, a refresh, a second tab and another
device lead there. What is sent for another step than that changes nothing.
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

ENDING = "ending"  # the kind of the event that says how an enrolment ended
STEP = "step"  # the kind of the event that somebody goes on to a step
STILL_THERE = "still there"  # of one that says that a person was asked, and is


class StudyProgress:
    """An enrolment with the design that it goes by."""

    def __init__(self, enrolment: Enrolment, version: StudyVersion) -> None:
        self.enrolment = enrolment
        self.version = version
        self.design = design_of(version)
        self.steps = steps(self.design)

    @property
    def step(self) -> Step:
        """The step that is due."""
        return self.steps[self.enrolment.step]

    @property
    def can_leave(self) -> bool:
        """Whether anything is left to stop: the study has not ended, and there is more than its last pages."""
        return self.enrolment.ending is None and self.step.kind not in (DEBRIEF, DONE)

    @property
    def condition(self) -> Mapping[str, str] | None:
        """The labels of the condition of the match that is due or was last; None before the arm is drawn."""
        plan = self.enrolment.plan
        if plan is None:
            return None
        at = next((each.number for each in self.steps[self.enrolment.step :] if each.kind == "match"), None)
        found: Mapping[str, str] = plan["matches"][-1 if at is None else at]["condition"]
        return found

    def values(self, key: str) -> Mapping[str, Any]:
        """What was answered at a step; empty where nothing was."""
        found: Mapping[str, Any] = self.enrolment.answers.get(key, {}).get("values", {})
        return found

    @property
    def quiz_attempts(self) -> Sequence[Mapping[str, Any]]:
        """The attempts at the quiz that is due."""
        found: Sequence[Mapping[str, Any]] = self.values(self.step.key).get("attempts", [])
        return found


def find_progress(session: Session, enrolment_id: int, *, lock: bool = False) -> StudyProgress:
    """An enrolment and its progress; `lock` keeps others from changing it in this transaction. Raises NotFound."""
    enrolment = session.get(Enrolment, enrolment_id, with_for_update=lock, populate_existing=lock)
    if enrolment is None:
        raise NotFound("enrolment", expected=Phrase("one that exists"), got=enrolment_id)
    return StudyProgress(enrolment, session.get_one(StudyVersion, enrolment.study_version_id))


def find_progress_by_token(session: Session, token: str, *, lock: bool = False) -> StudyProgress:
    """An enrolment by its private link, with `lock` as `find_way` has it. Raises NotFound."""
    found = select(Enrolment).where(Enrolment.token == token)
    locked = found.with_for_update() if lock else found
    enrolment = session.scalar(locked, execution_options={"populate_existing": lock})
    if enrolment is None:
        raise unknown_link()
    return StudyProgress(enrolment, session.get_one(StudyVersion, enrolment.study_version_id))


def unknown_link() -> NotFound:
    """What is said of a link that Parlor did not give out, or has given to somebody else since."""
    return NotFound("link", expected=Phrase("one that Parlor gave out"), got=Phrase("another one"))


def answer(
    progress: StudyProgress, key: str, values: Mapping[str, Any], typed: Mapping[str, str] | None = None
) -> None:
    """Keep what was answered at a step; the last answers count. `typed` are numbers as they were written."""
    given: dict[str, Any] = {"at": datetime.now(UTC).isoformat(), "values": dict(values)}
    if typed:
        given["typed"] = dict(typed)
    progress.enrolment.answers = {**progress.enrolment.answers, key: given}
    progress.enrolment.seen_at = datetime.now(UTC)


def advance(session: Session, progress: StudyProgress, key: str) -> Step:
    """Go on from the step with that key, if it is the one that is due; returns the step that is due then."""
    if progress.step.key == key and progress.step.kind != DONE:
        _go_to(progress, progress.enrolment.step + 1)
        note(session, progress, STEP, {"step": progress.step.key})
    return progress.step


def end(session: Session, progress: StudyProgress, name: EndingName, **facts: Any) -> bool:
    """End an enrolment, once. False if it has ended before, which stays its ending.

    Whoever has played goes by the debrief to the page with the code, everybody else straight to it.
    """
    enrolment = progress.enrolment
    if enrolment.ending is not None:
        return False
    if enrolment.wave_id is not None and enrolment.arm_id is not None:
        lock_wave(
            session, enrolment.wave_id
        )  # so that the log has arms and freed places in the order in which they were
    ending = progress.design.ending(name, PROLIFIC)
    enrolment.ending, enrolment.ended_at = name, datetime.now(UTC)
    enrolment.holds_place = enrolment.holds_place and not ending.frees_place
    if progress.step.kind not in (DEBRIEF, DONE):
        kind = DEBRIEF if has_played(session, enrolment.id) else DONE
        _go_to(progress, next(at for at, step in enumerate(progress.steps) if step.kind == kind))
    note(session, progress, ENDING, {"ending": name, **facts})
    return True


def begin_anew(progress: StudyProgress) -> None:
    """Lead somebody to the first page again."""
    _go_to(progress, 0)


def has_played(session: Session, enrolment_id: int) -> bool:
    """Whether a match that counts has begun."""
    matches = select(MatchRow.id).join(SeatRow, SeatRow.match_id == MatchRow.id)
    counted = matches.where(SeatRow.enrolment_id == enrolment_id, MatchRow.position.is_not(None))
    return session.scalar(counted.limit(1)) is not None


def note(session: Session, progress: StudyProgress, kind: str, body: Mapping[str, Any]) -> None:
    """Keep in the log of its wave that something happened; a preview has none."""
    if progress.enrolment.wave_id is not None:
        note_in_wave(session, progress.enrolment.wave_id, kind, body, progress.enrolment.id)


def note_in_wave(
    session: Session, wave_id: int, kind: str, body: Mapping[str, Any], enrolment_id: int | None = None
) -> None:
    """Keep in the log of a wave that something happened, to the wave or in an enrolment."""
    now = datetime.now(UTC)
    session.add(StudyEvent(wave_id=wave_id, enrolment_id=enrolment_id, kind=kind, body=dict(body), at=now))


def by_whom(by: str | None) -> dict[str, str]:
    """What the log says of who did something, where that is known."""
    return {} if by is None else {"by": by}


def lock_enrolments(session: Session, enrolments: ColumnElement[bool]) -> Sequence[Enrolment]:
    """Enrolments as they are now, kept from others until the transaction ends.

    All locks are taken in the order enrolments by id, then participant or wave: no two wait for each other.
    """
    locked = select(Enrolment).where(enrolments).order_by(Enrolment.id).with_for_update()
    return session.scalars(locked, execution_options={"populate_existing": True}).all()


def lock_wave(session: Session, wave_id: int) -> Wave:
    """A wave as it is now, kept from others until the transaction ends; they may go on writing its log."""
    return session.get_one(Wave, wave_id, with_for_update={"key_share": True}, populate_existing=True)


def _go_to(progress: StudyProgress, at: int) -> None:
    progress.enrolment.step = at
    progress.enrolment.stage = progress.step.kind
    progress.enrolment.seen_at = datetime.now(UTC)
