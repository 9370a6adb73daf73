"""What a recruiter says of people's visits, from the table that it lets researchers download. Nothing here commits.

No redirect tells of a visit that was returned or timed out: it is learned from there.
"""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import Invalid, Verbatim
from app.models import Enrolment, Participant, RecruitmentIdentity, Submission, Wave
from app.studies.endings import INACTIVE, WITHDRAWN
from app.studies.entry import free_place
from app.studies.progress import find_way, lock_enrolments
from app.studies.waves import check_not_frozen
from app.studies.withdrawal import stop

ACTIVE, SUBMITTED, APPROVED, REJECTED = "active", "submitted", "approved", "rejected"
RETURNED, TIMED_OUT = "returned", "timed_out"
SCREENED_OUT, PARTIAL = "screened_out", "partial"  # paid something else than the base: a fixed reward, a part of it


class _Columns(NamedTuple):
    """What a table calls the visit and its status; and the person and the code given, whose columns may be missing."""

    visit: str
    status: str
    person: str
    code: str = "code"


# Of Prolific, and of any other table.
_COLUMNS = (
    _Columns("Submission id", "Status", "Participant id", "Completion code"),
    _Columns("submission", "status", "participant"),
)
_STATUSES: Mapping[str, str] = {
    **{name: name for name in (ACTIVE, SUBMITTED, APPROVED, REJECTED, RETURNED, TIMED_OUT, SCREENED_OUT, PARTIAL)},
    "reserved": ACTIVE,
    "awaiting_review": SUBMITTED,
    "partially_approved": PARTIAL,
}
_MOST_BYTES = 1 << 25


class VisitStatus(NamedTuple):
    """A visit by the recruiter's id, how it stands, and if the table says so whose it is and with which code."""

    external_id: str
    status: str
    person: str = ""
    code: str = ""


class TakenStatuses(NamedTuple):
    """What came of a table: how many visits stand how, how many changed, and how many are none of the wave's.

    `other_codes`: the participants who handed in another code of the wave than that of their ending.
    """

    statuses: Mapping[str, int]
    changed: int
    unknown: int
    other_codes: Sequence[str] = ()


def read_statuses(path: Path) -> Sequence[VisitStatus]:
    """The visits in a recruiter's table. Raises Invalid, with the line, for what is none."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise Invalid(None, expected="a table of at most 32 MB", got=Verbatim("a larger one"), subject=path.name)
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            header = table.fieldnames or ()
            columns = next((each for each in _COLUMNS if {each.visit, each.status} <= set(header)), None)
            if columns is None:
                known = ", or ".join(f"{each.visit} and {each.status}" for each in _COLUMNS)
                raise Invalid(None, expected=f"the columns {known}", got=Verbatim("others"), subject=path.name)
            return [_visit(row, columns, f"{path.name}:{table.line_num}") for row in table]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Invalid(None, expected="a CSV table in UTF-8", got=Verbatim(str(error)), subject=path.name) from None


def take_statuses(session: Session, wave: Wave, visits: Sequence[VisitStatus]) -> TakenStatuses:
    """Keep how visits stand. Who returned one or let it time out has ended, and gives the place to another person.

    A visit that is not known is kept for whoever of the wave has come without naming any. Raises Conflict for a wave
    that is frozen.
    """
    check_not_frozen(wave)
    _keep_unnamed(session, wave, visits)
    rows = {
        row.external_id: row for row in session.scalars(select(Submission).where(Submission.wave_id == wave.id)).all()
    }
    gone = {visit.external_id for visit in visits if visit.status in (RETURNED, TIMED_OUT)} & set(rows)
    lock_enrolments(session, Enrolment.id.in_({rows[each].enrolment_id for each in gone}))
    changed = sum(
        set_status(session, rows[visit.external_id], visit.status) for visit in visits if visit.external_id in rows
    )
    known = [visit for visit in visits if visit.external_id in rows]
    statuses = Counter(visit.status for visit in known)
    return TakenStatuses(statuses, changed, len(visits) - len(known), _other_codes(session, wave, known))


def set_status(session: Session, submission: Submission, status: str) -> bool:
    """Keep how a visit stands, and whether that is new; see `take_statuses`.

    Whoever came again with another visit since goes by that one.
    """
    if submission.status == status:
        return False
    submission.status, submission.changed_at = status, datetime.now(UTC)
    session.flush()
    if status in (RETURNED, TIMED_OUT) and _is_latest(session, submission):
        way = find_way(session, submission.enrolment_id, lock=True)
        if way.enrolment.ending is None:
            stop(session, way, WITHDRAWN if status == RETURNED else INACTIVE, submission=status)
        else:
            free_place(session, way)
    return True


def _keep_unnamed(session: Session, wave: Wave, visits: Sequence[VisitStatus]) -> None:
    """A row for the visit of each person whose link did not name one."""
    having = select(Submission.enrolment_id).where(Submission.wave_id == wave.id)
    people = session.execute(
        select(RecruitmentIdentity.external_id, RecruitmentIdentity.recruiter, Enrolment.id, Enrolment.enrolled_at)
        .join(Enrolment, Enrolment.participant_id == RecruitmentIdentity.participant_id)
        .where(
            Enrolment.wave_id == wave.id,
            Enrolment.id.not_in(having),
            RecruitmentIdentity.recruiter == next(iter(wave.settings["provider"])),
        )
    )
    unnamed = {row.external_id: row for row in people}
    taken = set(session.scalars(select(Submission.external_id).where(Submission.wave_id == wave.id)))
    for visit in visits:
        row = None if visit.external_id in taken else unnamed.pop(visit.person, None)
        if row is not None:
            session.add(
                Submission(
                    wave_id=wave.id, enrolment_id=row.id, recruiter=row.recruiter, external_id=visit.external_id,
                    status=ACTIVE, created_at=row.enrolled_at, changed_at=datetime.now(UTC),
                )
            )  # fmt: skip
    session.flush()


def _other_codes(session: Session, wave: Wave, visits: Sequence[VisitStatus]) -> Sequence[str]:
    """Who handed in a code that others were shown: it was passed on."""
    codes: Mapping[str, str] = wave.settings.get("codes", {})
    rows = session.execute(
        select(Submission.external_id, Enrolment.ending, Participant.code)
        .join(Enrolment, Enrolment.id == Submission.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .where(Submission.wave_id == wave.id)
        .order_by(Enrolment.id)
    )
    given = {visit.external_id: visit.code for visit in visits if visit.code in codes.values()}
    return [code for number, ending, code in rows if number in given and codes.get(ending or "") != given[number]]


def _visit(row: Mapping[str, str | None], columns: _Columns, place: str) -> VisitStatus:
    external_id, status, person, code = ((row.get(column) or "").strip() for column in columns)
    found = _STATUSES.get(status.lower().replace("-", "_").replace(" ", "_"))
    if not external_id or found is None:
        expected = f"an id and a status ({', '.join(_STATUSES)})"
        raise Invalid(None, expected=expected, got=Verbatim(f"{external_id!r}, {status!r}"), subject=place)
    return VisitStatus(external_id, found, person, code)


def _is_latest(session: Session, submission: Submission) -> bool:
    later = select(Submission.id).where(
        Submission.enrolment_id == submission.enrolment_id, Submission.id > submission.id
    )
    return session.scalar(later.limit(1)) is None
