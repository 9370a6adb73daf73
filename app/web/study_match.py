"""What the pages of a match say of the study that it belongs to."""

from typing import NamedTuple

from flask import url_for
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import MatchRow, SeatRow
from app.studies.progress import find_way


class StudyPart(NamedTuple):
    """Which of how many matches it is, None for practice; the study's language; where the person goes on after it; and
    where problems are reported.
    """

    number: int | None
    matches: int
    language: str
    way_back: str
    report: str


def study_part(session: Session, match_id: str, seat: int) -> StudyPart | None:
    """What is said of the study at a seat; None outside of studies."""
    row = session.execute(
        select(MatchRow.position, MatchRow.options, SeatRow.enrolment_id)
        .join(SeatRow, SeatRow.match_id == MatchRow.id)
        .where(MatchRow.id == match_id, SeatRow.seat == seat)
    ).one()
    if row.options is None or row.enrolment_id is None:
        return None
    way = find_way(session, row.enrolment_id)
    token = way.enrolment.token
    return StudyPart(
        number=None if row.position is None else row.position + 1,
        matches=row.options["matches"],
        language=way.design.language,
        way_back=url_for("study.way", token=token),
        report=url_for("study.send_report", token=token),
    )
