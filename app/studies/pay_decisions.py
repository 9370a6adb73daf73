"""Decisions to pay or leave out a person whose pay is in doubt: each a row with a reason in the wave's log.

A decision applies only to the doubt that existed then. A later, different doubt needs a new decision.
"""

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import StudyEvent, Wave

PAY_DECISION = "pay decision"


def kept(session: Session, wave: Wave) -> Mapping[tuple[int, str], bool]:
    """Whether a person is paid despite a doubt, by enrolment and kind of doubt; the last decision counts."""
    rows = session.execute(
        select(StudyEvent.enrolment_id, StudyEvent.body)
        .where(StudyEvent.wave_id == wave.id, StudyEvent.kind == PAY_DECISION)
        .order_by(StudyEvent.id)
    )
    return {(number or 0, body["doubt"]): body["keep"] for number, body in rows}
