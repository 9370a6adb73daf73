"""What the pages of a match say of the study that it belongs to."""

from datetime import timedelta
from decimal import Decimal
from typing import NamedTuple

from flask import render_template
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.extensions import reading
from app.models import MatchRow, SeatRow
from app.studies import lapses, matches
from app.studies.endings import INACTIVE, WITHDRAWN
from app.studies.payments import owed_now
from app.studies.progress import StudyProgress, find_progress
from app.studies.waves import wave_file_of
from app.web.language import use_language


class StudyPart(NamedTuple):
    """The match's number (None for practice) and the number of matches; the study's language; the private link's token;
    whom to ask.

    `pay` is the base and the bonus for leaving now; None once the study has `ended` for the person, or only its last
    pages are left.
    """

    number: int | None
    matches: int
    language: str
    token: str
    mail: str
    currency: str
    ended: bool
    asked: bool  # whether this match ended because the person was silent, and they have not continued since
    lapses: int  # in matches that count
    pay: tuple[Decimal, Decimal] | None
    inactive: tuple[Decimal, Decimal] | None  # the same if the study ends because the person was silent
    grace: timedelta
    warns_after: float  # the elapsed share of a turn at which the page warns


def study_part(session: Session, match_id: str, seat: int) -> StudyPart | None:
    """What a seat is shown of the study; None outside of studies."""
    row = session.execute(
        select(MatchRow.position, MatchRow.options, SeatRow.enrolment_id)
        .join(SeatRow, SeatRow.match_id == MatchRow.id)
        .where(MatchRow.id == match_id, SeatRow.seat == seat)
    ).one()
    if row.options is None or row.enrolment_id is None:
        return None
    progress = find_progress(session, row.enrolment_id)
    return StudyPart(
        number=None if row.position is None else row.position + 1,
        matches=row.options["matches"],
        language=progress.design.language,
        token=str(progress.enrolment.token),
        mail=progress.design.contact.mail,
        currency=progress.design.pay.currency,
        ended=not progress.can_leave,
        asked=_is_asked(session, progress, match_id),
        lapses=lapses.count(session, row.enrolment_id),
        inactive=owed_now(session, progress, INACTIVE) if progress.can_leave else None,
        pay=owed_now(session, progress, WITHDRAWN) if progress.can_leave else None,
        grace=lapses.grace_of(session, progress),
        warns_after=progress.design.same_for_all.warns_after,
    )


def _is_asked(session: Session, progress: StudyProgress, match_id: str) -> bool:
    """Whether the person is asked after this match if they are there, or the study has ended by their silence in it."""
    if progress.enrolment.ending != INACTIVE:
        lapse = matches.lapse_to_ask_about(session, progress)
        return lapse is not None and lapse.row.id == match_id
    counted = (
        select(MatchRow)
        .join(SeatRow, SeatRow.match_id == MatchRow.id)
        .where(SeatRow.enrolment_id == progress.enrolment.id, MatchRow.position.is_not(None))
    )
    last = session.scalar(counted.order_by(MatchRow.position.desc(), MatchRow.started_at.desc()).limit(1))
    return last is not None and last.id == match_id and lapses.was_silent(session, last)


def page_elsewhere(match_id: str) -> str | None:
    """The page that explains how to continue, for a browser that opens a match of a study without a seat in it.

    None for a match that is in no study, or that does not exist: nothing is revealed about those.
    """
    with reading() as session:
        enrolment = session.scalar(
            select(SeatRow.enrolment_id).where(SeatRow.match_id == match_id, SeatRow.enrolment_id.is_not(None))
        )
        if enrolment is None:
            return None
        progress = find_progress(session, enrolment)
        file = wave_file_of(session, progress)
    use_language(progress.design.language)
    return render_template("study/elsewhere.html", design=progress.design, recruiter=file and file.provider.name)
