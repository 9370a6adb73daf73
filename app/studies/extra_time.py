"""Extra time for one person: a factor on the clocks of their matches, and on how long they may be away.

The log of the wave holds each factor given; the last one counts, from the next match on. It is given by the person's
code once they have entered, or earlier by their own signed link. Nothing here commits.
"""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from itsdangerous import BadSignature, URLSafeSerializer
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, Phrase
from app.core.typed_numbers import ENGLISH, read_amount
from app.matches.clocks import Clocks
from app.models import StudyEvent, Wave
from app.studies.progress import StudyProgress, by_whom, log_event, unknown_link
from app.studies.waves import check_not_frozen

EXTRA_TIME = "extra time"
PARAMETER = "extra_time"  # in a link
NO_MORE = Decimal(1)
_MOST = Decimal(5)
_SALT = "parlor.extra-time"


class TimeLink(NamedTuple):
    """The contents of a link with extra time: the wave, the recruiter's id of the person, and the factor.

    If the person is None, it is for anyone who has the link, where people have no ids.
    """

    wave_id: int
    person: str | None
    factor: Decimal


def read_factor(text: str, language: str = ENGLISH) -> Decimal:
    """A factor as it was typed on a page in a language. Raises Invalid."""
    try:
        factor = read_amount(text, "factor", language).normalize()
    except Invalid:
        factor = Decimal(0)
    if not NO_MORE <= factor <= _MOST:
        expected = Phrase("a number from 1 to %(most)s with two decimals at most, such as 1.5", most=_MOST)
        raise Invalid("factor", expected=expected, got=text)
    return factor


def factor_of(session: Session, enrolment_id: int) -> Decimal:
    """The factor by which a person's time is extended; 1 for nearly everyone."""
    given = select(StudyEvent.body).where(StudyEvent.enrolment_id == enrolment_id, StudyEvent.kind == EXTRA_TIME)
    body: Mapping[str, Any] | None = session.scalar(given.order_by(StudyEvent.id.desc()).limit(1))
    return NO_MORE if body is None else Decimal(body["factor"])


def give(session: Session, progress: StudyProgress, factor: Decimal, by: str | None = None) -> None:
    """Give a person extra time from the next match on; 1 takes it back. Raises Conflict for somebody who has ended."""
    if progress.enrolment.wave_id is not None:
        check_not_frozen(session.get_one(Wave, progress.enrolment.wave_id))
    if progress.enrolment.ending is not None:
        raise Conflict("participant", expected=Phrase("one who is under way"), got=Phrase("one who has ended"))
    if factor != factor_of(session, progress.enrolment.id):
        log_event(session, progress, EXTRA_TIME, {"factor": str(factor), **by_whom(by)})
        session.flush()


def longer(clocks: Clocks, factor: Decimal) -> Clocks:
    """The clocks of a match for a person with extra time."""
    times = float(factor)
    return replace(
        clocks,
        turn=None if clocks.turn is None else clocks.turn * times,
        match=None if clocks.match is None else clocks.match * times,
    )


def time_token(secret: str, link: TimeLink) -> str:
    """The parameter of a link with extra time."""
    return str(URLSafeSerializer(secret, salt=_SALT).dumps([link.wave_id, link.person, str(link.factor)]))


def read_token(secret: str, token: str) -> TimeLink:
    """The contents of such a parameter. Raises NotFound if Parlor did not sign it."""
    try:
        wave_id, person, factor = URLSafeSerializer(secret, salt=_SALT).loads(token)
    except (BadSignature, ValueError, TypeError):
        raise unknown_link() from None
    return TimeLink(wave_id, person, Decimal(factor))
