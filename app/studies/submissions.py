"""The recruiter's data about people's visits, from the table that researchers can download. Nothing here commits.

No redirect reports a returned or timed-out visit: only the table shows it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.csv_reader import read_csv, refuse_rounded
from app.core.errors import Invalid, Verbatim
from app.models import Enrolment, Participant, RecruitmentIdentity, Submission, Wave
from app.studies.endings import INACTIVE, WITHDRAWN
from app.studies.enrolment import comparable_id
from app.studies.payments import recruiter_of
from app.studies.places import free_place
from app.studies.progress import find_progress, lock_enrolments, log_wave_event
from app.studies.visits import (
    ACTIVE,
    APPROVED,
    NO_CODE,
    OTHER_CODE,
    PARTIAL,
    REJECTED,
    RETURNED,
    SCREENED_OUT,
    SUBMITTED,
    TABLE,
    TIMED_OUT,
)
from app.studies.wave_file import NO_CODES, plain_code
from app.studies.waves import check_not_frozen
from app.studies.withdrawal import stop


class _Columns(NamedTuple):
    """A table's columns for the visit and its status; and for the person and the code given, which may be missing."""

    visit: str
    status: str
    person: str
    code: str = "code"


# For Prolific, and for any other table.
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
    """A visit by the recruiter's id, its status, and, if the table has them, its person and code."""

    external_id: str
    status: str
    person: str = ""
    code: str = ""


class TakenStatuses(NamedTuple):
    """The result of importing a table: the number of visits by status, of changed ones, and of those not in the wave.

    `other_codes`: the participants who submitted a code of the wave that is not the one of their ending.
    `other_people`: those who came by a visit that belongs to another person according to the table.
    """

    statuses: Mapping[str, int]
    changed: int
    unknown: int
    other_codes: Sequence[str] = ()
    other_people: Sequence[str] = ()


def read_statuses(path: Path) -> Sequence[VisitStatus]:
    """The visits in a recruiter's table, even if a spreadsheet has saved it again. Raises Invalid, with the line."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise Invalid(None, expected="a table of at most 32 MB", got=Verbatim("a larger one"), subject=path.name)
        content = path.read_bytes()
    except OSError as error:
        raise Invalid(None, expected="a CSV table", got=Verbatim(str(error)), subject=path.name) from None
    table = read_csv(content, path.name, {name for each in _COLUMNS for name in each}, western=True)
    written = {_comparable_word(column): column for column in table.columns}
    named = (_Columns(*(written.get(_comparable_word(column), "") for column in each)) for each in _COLUMNS)
    columns = next((each for each in named if each.visit and each.status), None)
    if columns is None:
        known = ", or ".join(f"{each.visit} and {each.status}" for each in _COLUMNS)
        got = Verbatim(f"{', '.join(table.columns)[:200] or 'none'} ({table.written})")
        raise Invalid(None, expected=f"the columns {known}", got=got, subject=path.name)
    return [_visit(row.cells, columns, f"{path.name}:{row.line}") for row in table.rows]


def take_statuses(session: Session, wave: Wave, visits: Sequence[VisitStatus], *, whole: bool = False) -> TakenStatuses:
    """Store the statuses of visits. People who returned one or let it time out have ended, and free their place.

    `whole` means that the recruiter's table has all visits, so people who are not in it are unknown to the recruiter.
    An unknown visit is stored for the person of the wave who came without naming one. Raises Conflict for a frozen
    wave.
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
    _keep_listed(session, wave, visits, rows, whole=whole)
    statuses = Counter(visit.status for visit in known)
    return TakenStatuses(
        statuses, changed, len(visits) - len(known), _other_codes(session, wave), _other_people(session, wave)
    )


def set_status(session: Session, submission: Submission, status: str) -> bool:
    """Store the status of a visit, and return whether it is new; see `take_statuses`.

    If the person has come again with a later visit, that one counts.
    """
    if submission.status == status:
        return False
    submission.status, submission.changed_at = status, datetime.now(UTC)
    session.flush()
    if status in (RETURNED, TIMED_OUT) and _is_latest(session, submission):
        progress = find_progress(session, submission.enrolment_id, lock=True)
        if progress.enrolment.ending is None:
            stop(session, progress, WITHDRAWN if status == RETURNED else INACTIVE, submission=status)
        else:
            free_place(session, progress)
    return True


def _keep_unnamed(session: Session, wave: Wave, visits: Sequence[VisitStatus]) -> None:
    """Add a row for the visit of each person whose link did not name one."""
    recruiter = recruiter_of(wave)
    having = select(Submission.enrolment_id).where(Submission.wave_id == wave.id)
    people = session.execute(
        select(RecruitmentIdentity.external_id, RecruitmentIdentity.recruiter, Enrolment.id, Enrolment.enrolled_at)
        .join(Enrolment, Enrolment.participant_id == RecruitmentIdentity.participant_id)
        .where(Enrolment.wave_id == wave.id, Enrolment.id.not_in(having), RecruitmentIdentity.recruiter == recruiter)
    )
    unnamed = {comparable_id(recruiter, row.external_id): row for row in people}
    taken = set(session.scalars(select(Submission.external_id).where(Submission.wave_id == wave.id)))
    for visit in visits:
        row = None if visit.external_id in taken else unnamed.pop(comparable_id(recruiter, visit.person), None)
        if row is not None:
            session.add(
                Submission(
                    wave_id=wave.id, enrolment_id=row.id, recruiter=row.recruiter, external_id=visit.external_id,
                    status=ACTIVE, created_at=row.enrolled_at, changed_at=datetime.now(UTC),
                )
            )  # fmt: skip
    session.flush()


def _keep_listed(
    session: Session, wave: Wave, visits: Sequence[VisitStatus], rows: Mapping[str | None, Submission], *, whole: bool
) -> None:
    """Record which visits a table names, and with which code; and, if `whole`, that there was a table of all."""
    now = datetime.now(UTC)
    endings = {plain_code(code): ending for ending, code in wave.settings.get("codes", {}).items()}
    people = _external_ids_by_enrolment(session, wave)
    for visit in visits:
        row = rows.get(visit.external_id)
        if row is not None:
            row.listed_at, row.handed_in = now, _handed_in(visit.code, endings)
            if visit.person:
                came = people.get(row.enrolment_id, visit.person)  # the person who came, unless the id was removed
                row.other_person = comparable_id(row.recruiter, came) != comparable_id(row.recruiter, visit.person)
    if whole:
        log_wave_event(session, wave.id, TABLE, {"visits": len(visits)})
    session.flush()


def _external_ids_by_enrolment(session: Session, wave: Wave) -> Mapping[int, str]:
    """The ids of people in the recruiter's links, by enrolment."""
    rows = (
        select(Enrolment.id, RecruitmentIdentity.external_id)
        .join(RecruitmentIdentity, RecruitmentIdentity.participant_id == Enrolment.participant_id)
        .where(Enrolment.wave_id == wave.id, RecruitmentIdentity.recruiter == recruiter_of(wave))
    )
    found: dict[int, str] = dict(session.execute(rows).all())
    return found


def _other_people(session: Session, wave: Wave) -> Sequence[str]:
    """The participants who came by a visit that belongs to another person according to the recruiter's table."""
    of_others = select(Submission.enrolment_id).where(Submission.wave_id == wave.id, Submission.other_person)
    rows = select(Participant.code).join(Enrolment, Enrolment.participant_id == Participant.id)
    return session.scalars(rows.where(Enrolment.id.in_(of_others)).order_by(Enrolment.id)).all()


def _handed_in(code: str, endings: Mapping[str, str]) -> str | None:
    """The ending whose code was submitted, ignoring case; or that none was, or another one. None if the table has no
    code.
    """
    plain = plain_code(code)
    if not plain:
        return None
    return endings.get(plain, NO_CODE if plain in NO_CODES else OTHER_CODE)


def _other_codes(session: Session, wave: Wave) -> Sequence[str]:
    """The participants who submitted a code that others were shown: it was passed on."""
    rows = session.execute(
        select(Submission.handed_in, Enrolment.ending, Participant.code)
        .join(Enrolment, Enrolment.id == Submission.enrolment_id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .where(
            Submission.wave_id == wave.id,
            Submission.handed_in.is_not(None),
            Submission.handed_in.not_in((NO_CODE, OTHER_CODE)),
        )
        .order_by(Enrolment.id)
    )
    return [code for handed_in, ending, code in rows if handed_in != ending]


def _visit(row: Mapping[str, str], columns: _Columns, place: str) -> VisitStatus:
    # Spreadsheets, and code that keeps cells from being formulas, mark a text with a leading apostrophe.
    external_id, status, person, code = (row.get(column, "").removeprefix("'") for column in columns)
    for each in (external_id, person):
        refuse_rounded(each, place)
    found = _STATUSES.get(_comparable_word(status))
    if not external_id or found is None:
        expected = f"an id and a status ({', '.join(_STATUSES)})"
        raise Invalid(None, expected=expected, got=Verbatim(f"{external_id!r}, {status!r}"), subject=place)
    return VisitStatus(external_id, found, person, code)


def _comparable_word(word: str) -> str:
    """A heading or a status in the form used for comparison: in one case, with its words joined, whatever separated
    them.
    """
    return "_".join(word.casefold().replace("-", " ").replace("_", " ").split())


def _is_latest(session: Session, submission: Submission) -> bool:
    later = select(Submission.id).where(
        Submission.enrolment_id == submission.enrolment_id, Submission.id > submission.id
    )
    return session.scalar(later.limit(1)) is None
