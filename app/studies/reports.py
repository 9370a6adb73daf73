"""What people report to the experimenter. Nothing here commits.

A report that comes after the wave was frozen is kept beside what was frozen: it is shown, and in no export.
"""

from typing import Any

from sqlalchemy.orm import Session

from app.studies.progress import Way, lock_wave, note

REPORT, LATE_REPORT = "report", "late report"


def keep_report(session: Session, way: Way, text: str, match_id: str | None = None) -> None:
    """Keep a person's words, and the match that they are about, if it is one."""
    body: dict[str, Any] = {"text": text, "step": way.step.key}
    if match_id is not None:
        body["match"] = match_id
    wave_id = way.enrolment.wave_id
    frozen = wave_id is not None and lock_wave(session, wave_id).frozen_at is not None
    note(session, way, LATE_REPORT if frozen else REPORT, body)
