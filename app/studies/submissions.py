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
from app.models import Enrolment, Submission, Wave
from app.studies.endings import INACTIVE, WITHDRAWN
from app.studies.entry import free_place
from app.studies.progress import find_way, lock_enrolments
from app.studies.waves import check_not_frozen
from app.studies.withdrawal import stop

ACTIVE, SUBMITTED, APPROVED, REJECTED = "active", "submitted", "approved", "rejected"
RETURNED, TIMED_OUT = "returned", "timed_out"
# The columns of the visit and of its status: of Prolific, of Mechanical Turk, and of any other table.
_COLUMNS = (("Submission id", "Status"), ("AssignmentId", "AssignmentStatus"), ("submission", "status"))
_STATUSES: Mapping[str, str] = {
    **{name: name for name in (ACTIVE, SUBMITTED, APPROVED, REJECTED, RETURNED, TIMED_OUT)},
    "reserved": ACTIVE,
    "awaiting_review": SUBMITTED,
    "screened_out": SUBMITTED,
}
_MOST_BYTES = 1 << 25


class VisitStatus(NamedTuple):
    """A visit by the recruiter's id, and how it stands."""

    external_id: str
    status: str


class TakenStatuses(NamedTuple):
    """What came of a table: how many visits stand how, how many changed, and how many are none of the wave's."""

    statuses: Mapping[str, int]
    changed: int
    unknown: int


def read_statuses(path: Path) -> Sequence[VisitStatus]:
    """The visits in a recruiter's table. Raises Invalid, with the line, for what is none."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise Invalid(None, expected="a table of at most 32 MB", got=Verbatim("a larger one"), subject=path.name)
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            header = table.fieldnames or ()
            columns = next((pair for pair in _COLUMNS if set(pair) <= set(header)), None)
            if columns is None:
                known = ", or ".join(" and ".join(pair) for pair in _COLUMNS)
                raise Invalid(None, expected=f"the columns {known}", got=Verbatim("others"), subject=path.name)
            return [_visit(row, columns, f"{path.name}:{table.line_num}") for row in table]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Invalid(None, expected="a CSV table in UTF-8", got=Verbatim(str(error)), subject=path.name) from None


def take_statuses(session: Session, wave: Wave, visits: Sequence[VisitStatus]) -> TakenStatuses:
    """Keep how visits stand. Who returned one or let it time out has ended, and gives the place to another person.

    Raises Conflict for a wave that is frozen.
    """
    check_not_frozen(wave)
    rows = {
        row.external_id: row for row in session.scalars(select(Submission).where(Submission.wave_id == wave.id)).all()
    }
    gone = {visit.external_id for visit in visits if visit.status in (RETURNED, TIMED_OUT)} & set(rows)
    lock_enrolments(session, Enrolment.id.in_({rows[each].enrolment_id for each in gone}))
    changed = sum(
        set_status(session, rows[visit.external_id], visit.status) for visit in visits if visit.external_id in rows
    )
    known = [visit for visit in visits if visit.external_id in rows]
    return TakenStatuses(Counter(visit.status for visit in known), changed, len(visits) - len(known))


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


def _visit(row: Mapping[str, str | None], columns: tuple[str, str], place: str) -> VisitStatus:
    external_id, status = ((row[column] or "").strip() for column in columns)
    found = _STATUSES.get(status.lower().replace("-", "_").replace(" ", "_"))
    if not external_id or found is None:
        expected = f"an id and a status ({', '.join(_STATUSES)})"
        raise Invalid(None, expected=expected, got=Verbatim(f"{external_id!r}, {status!r}"), subject=place)
    return VisitStatus(external_id, found)


def _is_latest(session: Session, submission: Submission) -> bool:
    later = select(Submission.id).where(
        Submission.enrolment_id == submission.enrolment_id, Submission.id > submission.id
    )
    return session.scalar(later.limit(1)) is None
