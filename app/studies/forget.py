"""Deletes a person's data, or what people wrote in a match. Only the functions at the end commit.

The match remains, marked, with the partners' text and its result; the enrolment, the recruiter's submission, amounts
and dates remain for the accounts. Datasets with rows of the person become unusable, and jobs on them are cancelled. All
of that is one transaction; the files of these datasets are deleted after it. If the process is killed in between, a
second call or upkeep deletes the remaining files.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, delete, select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, NotFound, Phrase
from app.core.extensions import reading, writing
from app.datasets.withdrawn import delete_files
from app.matches.erasing import end_by_leaving, erase_texts
from app.models import (
    Enrolment,
    MatchRow,
    Participant,
    Payment,
    PaymentBatch,
    RecruitmentIdentity,
    SeatRow,
    Study,
    StudyEvent,
    Submission,
)
from app.registry import PERSON
from app.studies.batches import CONFIRMED
from app.studies.consents import seats_of, withdraw_training
from app.studies.endings import WITHDRAWN
from app.studies.payments import is_by_approval, record_owed
from app.studies.progress import end, find_progress, lock_enrolments
from app.studies.reports import REPORT, WORDS, empty_steps
from app.studies.withdrawn_data import withdraw_matches


@dataclass(slots=True)
class ForgetReport:
    """What was changed. When repeated, the counts of emptied items are 0, and the lists are the same."""

    people: list[str] = field(default_factory=list)
    matches: list[str] = field(default_factory=list)
    events: int = 0
    prompts: int = 0
    answers: int = 0
    identities: int = 0
    unpaid: int = 0  # payments for which the recruiter's id is still needed
    datasets: list[int] = field(default_factory=list)
    jobs: list[int] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The form the command line prints."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def lines(self) -> Iterator[str]:
        """The report in words, one line each."""
        yield f"Matches that were emptied of what people wrote: {_comma_separated_or_none(self.matches)}"
        yield f"Moves: {self.events}, prompts of models: {self.prompts}, answers: {self.answers}"
        if self.people:
            yield f"Recruiter's ids removed: {self.identities}"
        if self.unpaid:
            yield f"Recruiter's ids stay until payments are confirmed: {self.unpaid}"
        yield f"Datasets that are unusable: {_comma_separated_or_none(self.datasets)}"
        yield f"Training jobs cancelled: {_comma_separated_or_none(self.jobs)}"
        yield f"Models that learned from them, and cannot forget: {_comma_separated_or_none(self.models)}"
        yield f"Files deleted: {_comma_separated_or_none(self.files)}"
        for number in self.datasets:
            yield f"flask dataset rebuild {number} builds it without them."


def _comma_separated_or_none(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "none"


# ---- Who and what ----------------------------------------------------------------


def find_person(session: Session, reference: str) -> Participant:
    """A person by code, or by STUDY:CODE where several studies have that code. Raises NotFound and Conflict."""
    study, mark, code = reference.rpartition(":")
    people = select(Participant).where(Participant.code == code)
    if mark:
        people = people.join(Study, Study.id == Participant.study_id).where(Study.name == study)
    found = session.scalars(people.limit(2)).all()
    if not found:
        raise NotFound("person", expected=Phrase("the code of a participant or a guest, or STUDY:CODE"), got=reference)
    if len(found) > 1:
        expected = Phrase("STUDY:CODE, as several studies have that code")
        raise Conflict("person", expected=expected, got=reference)
    return found[0]


def forget_person(session: Session, participant_id: int) -> ForgetReport:
    """Delete all that a person wrote and answered, and their recruiters' ids. Whatever is under way is ended first."""
    enrolments = lock_enrolments(session, Enrolment.participant_id == participant_id)
    person = session.get_one(Participant, participant_id, with_for_update=True)
    person.erased_at = person.erased_at or datetime.now(UTC)
    report = ForgetReport(people=[person.code])
    seats = select(SeatRow.match_id, SeatRow.seat).where(seats_of(person.id)).order_by(SeatRow.match_id)
    _erase(session, report, [(match_id, seat) for match_id, seat in session.execute(seats)])
    for enrolment in enrolments:
        progress = find_progress(session, enrolment.id)
        end(session, progress, WITHDRAWN)
        record_owed(session, progress)  # while the data for working out the pay still exist
        report.answers += len(enrolment.answers)
        enrolment.answers = {}
        _empty_log(session, enrolment.id)
    _withdraw_matches_from_training(session, report)
    withdraw_training(session, person.id)
    _remove_identities(session, report, person.id, [each.id for each in enrolments])
    return report


def forget_match(session: Session, match_id: str) -> ForgetReport:
    """Delete what people wrote in a match. Raises NotFound, and Conflict where no person played."""
    if session.get(MatchRow, match_id) is None:
        raise NotFound("match", expected=Phrase("the id of one that exists"), got=match_id)
    people = select(SeatRow.seat).where(SeatRow.match_id == match_id, SeatRow.kind == PERSON)
    seats = session.scalars(people.order_by(SeatRow.seat)).all()
    if not seats:
        raise Conflict("match", expected=Phrase("one in which people played"), got=match_id)
    report = ForgetReport()
    _erase(session, report, [(match_id, seat) for seat in seats])
    _withdraw_matches_from_training(session, report)
    return report


def _erase(session: Session, report: ForgetReport, seats: Sequence[tuple[str, int]]) -> None:
    for match_id, seat in seats:
        end_by_leaving(session, match_id, seat)
        emptied = erase_texts(session, match_id, [seat])
        report.events += emptied.events
        report.prompts += emptied.prompts
    report.matches = list(dict.fromkeys(match_id for match_id, _ in seats))


def _empty_log(session: Session, enrolment_id: int) -> None:
    """Keep in the wave's log what happened and when, without what the person wrote or sent, or the replies to it."""
    rows = session.scalars(select(StudyEvent).where(StudyEvent.enrolment_id == enrolment_id)).all()
    for row in rows:
        row.body = {name: value for name, value in row.body.items() if name not in WORDS}
    empty_steps(session, [row.id for row in rows if row.kind == REPORT])


def _withdraw_matches_from_training(session: Session, report: ForgetReport) -> None:
    found = withdraw_matches(session, report.matches)
    report.datasets = [row.id for row in found.datasets]
    report.jobs = list(found.jobs)
    report.models = [row.name for row in found.models]


# ---- Recruiters' ids --------------------------------------------------------------


def remove_identities(session: Session, participant_ids: Collection[int]) -> int:
    """Remove recruiters' ids of people, also from the records of their visits; the number of ids removed."""
    enrolments = select(Enrolment.id).where(Enrolment.participant_id.in_(participant_ids))
    for row in session.scalars(select(Submission).where(Submission.enrolment_id.in_(enrolments))):
        row.external_id = None
    gone = delete(RecruitmentIdentity).where(RecruitmentIdentity.participant_id.in_(participant_ids))
    number: int = session.execute(gone).rowcount  # type: ignore[attr-defined]  # a DELETE counts its rows
    session.flush()
    return number


def unpaid(session: Session, participant_id: int) -> int:
    """The number of a person's payments that the recruiter must still be told of by the person's id."""
    owed = (
        select(Payment)
        .join(Enrolment, Enrolment.id == Payment.enrolment_id)
        .outerjoin(PaymentBatch, PaymentBatch.id == Payment.batch_id)
        .where(Enrolment.participant_id == participant_id, PaymentBatch.status.is_distinct_from(CONFIRMED))
    )
    rows = [row for row in session.scalars(owed.order_by(Payment.enrolment_id)) if row.amount]
    by_file = [row for row in rows if not is_by_approval(session, find_progress(session, row.enrolment_id), row)]
    return sum(
        len(group)
        for group in (list(each) for _, each in groupby(by_file, key=lambda row: row.enrolment_id))
        if any(row.batch_id is not None for row in group) or sum(row.amount for row in group) > 0
    )


def _remove_identities(session: Session, report: ForgetReport, person: int, enrolments: Sequence[int]) -> None:
    """Remove a person's ids, unless an earned bonus must still be paid by them."""
    if enrolments:
        report.unpaid = unpaid(session, person)
    if not report.unpaid:
        report.identities = remove_identities(session, [person])


# ---- Edges ------------------------------------------------------------------------


def forget_person_for_good(database: Engine, home: Path, participant_id: int) -> ForgetReport:
    """Delete a person's data in a transaction, then the files."""
    with writing(database) as session:
        report = forget_person(session, participant_id)
    report.files = delete_unusable_files(database, home)
    return report


def forget_match_for_good(database: Engine, home: Path, match_id: str) -> ForgetReport:
    """Delete what people wrote in a match in a transaction, then the files."""
    with writing(database) as session:
        report = forget_match(session, match_id)
    report.files = delete_unusable_files(database, home)
    return report


def delete_unusable_files(database: Engine, home: Path) -> list[str]:
    """Delete the files of unusable datasets that still exist; their names."""
    with reading(database) as session:
        return delete_files(session, home)
