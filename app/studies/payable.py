"""The people whom a recruiter's file can pay, by its ids and its maximum amount."""

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.csv_tables import looks_like_formula
from app.core.errors import Conflict, Invalid, Phrase, Verbatim
from app.models import RecruitmentIdentity, Wave
from app.studies.amounts import APPROVING
from app.studies.due import OwedPerson
from app.studies.payments import recruiter_of
from app.studies.wave_file import PLAIN_ID

NO_ID, BAD_ID, TOO_MUCH = "no id", "bad id", "too much"
UNPAYABLE = (NO_ID, BAD_ID, TOO_MUCH)
_MOST = Decimal(10_000)  # paid by a line of a file; no recruiter accepts more for one person at once


def unpayable(session: Session, wave: Wave, people: Sequence[OwedPerson]) -> Mapping[int, str]:
    """The reason why no file of the wave's recruiter can pay a person, by enrolment; only of those it cannot pay."""
    recruiter = recruiter_of(wave)
    ids = ids_of(session, {person.participant_id for person in people}, recruiter)
    found: dict[int, str] = {}
    for person in people:
        reason = TOO_MUCH if person.amount > _MOST else None
        if recruiter in APPROVING:
            reason = _wrong(ids.get(person.participant_id)) or reason
        if reason is not None:
            found[person.enrolment_id] = reason
    return found


def _wrong(found: str | None) -> str | None:
    return NO_ID if found is None else None if PLAIN_ID.fullmatch(found) else BAD_ID


def ids_of(session: Session, people: Collection[int], recruiter: str) -> Mapping[int, str]:
    """The recruiter's ids of participants; if a person has several, that of the first visit."""
    found = session.execute(
        select(RecruitmentIdentity.participant_id, RecruitmentIdentity.external_id)
        .where(RecruitmentIdentity.participant_id.in_(people), RecruitmentIdentity.recruiter == recruiter)
        .order_by(RecruitmentIdentity.id.desc())
    )
    return {row.participant_id: row.external_id for row in found}


def checked_id(found: str | None, code: str, recruiter: str) -> str:
    """An id that may be in a file.

    Where no recruiter pays, it may be missing or any text, because the file names the participant; an id that a
    spreadsheet would read as a formula gets an apostrophe before it.
    """
    if recruiter not in APPROVING:
        return f"'{found}" if looks_like_formula(found or "") else found or ""
    remedy = Phrase("take the draft back and draft again, which leaves that person out")
    if found is None:
        expected = Phrase("the recruiter's id of %(code)s", code=Verbatim(code))
        raise Conflict("external_id", expected=expected, got=Phrase("none, as it was removed"), remedy=remedy)
    if PLAIN_ID.fullmatch(found) is None:
        expected = Phrase("letters, digits and - _ . @ : in the id of %(code)s", code=Verbatim(code))
        raise Invalid("external_id", expected=expected, got=found, remedy=remedy)
    return found
