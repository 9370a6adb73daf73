"""How people enter a wave: known people return to where they were, new ones are let in or told why not.

A place is taken with the consent, which is decided while the wave is locked: of ten people who agree for
the last place one gets it.
Nothing here commits.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from app.core.errors import NotAllowed, Phrase
from app.models import (
    Enrolment,
    Participant,
    Payment,
    RecruitmentIdentity,
    Study,
    StudyEvent,
    StudyVersion,
    Submission,
    Wave,
)
from app.studies.amounts import APPROVING
from app.studies.assignment_list import is_listed
from app.studies.cost import most_a_place
from app.studies.deadlines import day_of
from app.studies.design import StudyDesign
from app.studies.endings import CLOSED, DECLINED, FULL, INACTIVE, INELIGIBLE, WITHDRAWN, EndingName
from app.studies.places import committed, places_taken
from app.studies.progress import StudyProgress, begin_anew, end, find_progress, lock_wave, log_event, log_wave_event
from app.studies.store import design_of, design_of_wave
from app.studies.waves import CLOSED as CLOSED_WAVE
from app.studies.waves import OPEN, PAUSED, settings_of

ACTIVE = "active"  # a visit of which the recruiter has reported no more
CASELESS = ("prolific",)  # recruiters whose ids ignore case: Prolific's are hexadecimal numbers
_NOT_LET_IN = Phrase("This link does not let you in here.")
PAUSED_NOW = Phrase("This study is paused. Please come back later.")
ENTRY, PAUSED_BY_START = "entry", "paused after the first"
# Endings of people turned away before they took part.
_SENT_AWAY: tuple[EndingName, ...] = (DECLINED, INELIGIBLE, FULL, CLOSED)
# Endings before the consent after which a person may begin all the same while the wave is open.
_NOT_FOR_GOOD: tuple[EndingName, ...] = (FULL, INACTIVE, WITHDRAWN)
_BEFORE_CONSENT: tuple[EndingName, ...] = (*_SENT_AWAY, INACTIVE, WITHDRAWN)
_MARK = "parlor.private-link\n"
_PERSON_KEY = b"parlor.person"


class Visitor(NamedTuple):
    """A visitor by the link of a wave, as named by the recruiter. `submission_id` belongs to this visit.

    An id is no secret. `proven`: the recruiter signed it, or it is this browser's own. `doubted`: the recruiter signs
    its links and did not sign this one. `marks`: those of the private links that this browser has opened (see
    `mark_of_link`).
    """

    recruiter: str
    external_id: str
    device: str
    submission_id: str | None = None
    proven: bool = False
    doubted: bool = False
    marks: frozenset[str] = frozenset()


class NotTheirs(NotAllowed):
    """A visitor gives another person's id, or their own without proof that it is theirs."""


def person_hash(secret: str, recruiter: str, external_id: str) -> str:
    """A hash that links a person's studies and outlives the id; it reveals the id only with the server's key."""
    return _hash(secret, recruiter, comparable_id(recruiter, external_id))


def person_hashes(secret: str, recruiter: str, external_id: str) -> tuple[str, ...]:
    """All hashes of a person, today's first: earlier, ids that differ in case were different persons."""
    written = dict.fromkeys(
        (comparable_id(recruiter, external_id), external_id, external_id.lower(), external_id.upper())
    )
    some = list(written) if recruiter in CASELESS else [external_id]
    return tuple(_hash(secret, recruiter, each) for each in some)


def enter(session: Session, wave: Wave, visitor: Visitor, secret: str) -> StudyProgress:
    """A visitor's progress through a wave: the existing one if they are known, else a new one, which may end at once.

    A new one has no place yet: that comes with the consent (`take_place`). It ends as `ineligible` if the visitor took
    part in something the wave excludes or is not in its list, as `full` if all places are taken or the spend cap is
    reached, and as `closed` if the recruiter waits to hear how the visit ended. A visitor who was sent away without
    having taken part is let in once the reason no longer holds. A pause turns nobody away for good. Until somebody has
    agreed, the latest visitor with the id gets the enrolment, by a new private link: entering first with another's id
    keeps nobody out.

    Raises NotAllowed for a new visitor to a wave that is paused or frozen, or closed without anybody waiting; NotTheirs
    for a visitor who names a person of the wave who has agreed without proving to be them, and for a doubted visitor
    whom this browser does not know.
    """
    people = person_hashes(secret, visitor.recruiter, visitor.external_id)
    known = _known_enrolment_id(session, wave.id, people)
    if known is not None:
        return _come_back(session, wave, known, visitor)
    if visitor.doubted:
        _check_takes_new(wave, visitor)
        raise NotTheirs(_NOT_LET_IN)
    session.get_one(Study, wave.study_id, with_for_update={"key_share": True})
    wave = lock_wave(session, wave.id)
    if (known := _known_enrolment_id(session, wave.id, people)) is not None:  # entered through another tab just now
        return _come_back(session, wave, known, visitor, may_return=False)
    _check_takes_new(wave, visitor)
    refusal = _ending_on_entry(session, wave, people)
    progress = _enrol(session, wave, visitor, people)
    log_event(session, progress, ENTRY, {"device": visitor.device, "recruiter": visitor.recruiter})
    _keep_submission(session, progress, visitor)
    if refusal is not None:
        end(session, progress, refusal, door=True)
    return progress


def take_place(session: Session, progress: StudyProgress) -> None:
    """Give a person who agrees to take part a place, and reserve their maximum pay under the cap.

    If no place is left, the enrolment ends as it would have on entry. Raises NotAllowed while the wave is paused; then
    nothing has changed.
    """
    enrolment = progress.enrolment
    if enrolment.wave_id is None or enrolment.ending is not None or enrolment.agreed_at is not None:
        return
    wave = lock_wave(session, enrolment.wave_id)
    if not enrolment.holds_place:  # people who arrived before places came with the consent already have one
        if wave.status == PAUSED:
            raise NotAllowed(PAUSED_NOW)
        refusal = _ending_on_entry(session, wave, _hashes_of(session, enrolment))
        if refusal is not None:
            end(session, progress, refusal, door=True)
            return
        enrolment.holds_place = True
    enrolment.agreed_at = datetime.now(UTC)
    session.flush()
    if (start := settings_of(wave).start) is not None:
        _pause_after_first(session, wave, start.first)


def readmit(session: Session, progress: StudyProgress) -> bool:
    """Let a person begin who was sent away, or left, before agreeing to anything. True if that was done.

    `progress` is locked. It is not done if the same reason would send them away again.
    """
    enrolment = progress.enrolment
    if enrolment.wave_id is None or not may_be_readmitted(progress):
        return False
    wave = lock_wave(session, enrolment.wave_id)
    if wave.frozen_at is not None or wave.status != OPEN:
        return False
    if _ending_on_entry(session, wave, _hashes_of(session, enrolment)) is not None:
        return False
    owed = select(Payment).where(
        Payment.enrolment_id == enrolment.id, Payment.batch_id.is_(None), Payment.reason.is_(None)
    )
    for payment in session.scalars(owed):  # it is nothing, and is written again at the next ending
        session.delete(payment)
    enrolment.ending = enrolment.ended_at = None
    begin_anew(progress)
    log_event(session, progress, ENTRY, {"again": True})
    session.flush()
    return True


def may_be_readmitted(progress: StudyProgress) -> bool:
    """Whether a person may begin after their ending: they did not take part, and did not say no."""
    return progress.enrolment.ending in _NOT_FOR_GOOD and progress.enrolment.agreed_at is None


def mark_of_link(token: str) -> str:
    """The mark that a browser keeps of a private link it has opened; it does not reveal the link."""
    return hashlib.sha256(f"{_MARK}{token}".encode()).hexdigest()[:24]


# ---- Who comes in -------------------------------------------------------------------


def comparable_id(recruiter: str, external_id: str) -> str:
    """An id in the form used for comparison: in lower case for recruiters whose ids ignore case."""
    return external_id.lower() if recruiter in CASELESS else external_id


def _hash(secret: str, recruiter: str, external_id: str) -> str:
    key = hmac.digest(secret.encode(), _PERSON_KEY, hashlib.sha256)
    return hmac.new(key, f"{recruiter}\n{external_id}".encode(), hashlib.sha256).hexdigest()


def _hashes_of(session: Session, enrolment: Enrolment) -> Sequence[str]:
    person = session.get_one(Participant, enrolment.participant_id).person_hash
    return () if person is None else (person,)


def _known_enrolment_id(session: Session, wave_id: int, people: Sequence[str]) -> int | None:
    """The enrolment of a person in a wave."""
    return session.scalar(
        select(Enrolment.id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .where(Enrolment.wave_id == wave_id, Participant.person_hash.in_(people))
        .order_by(Enrolment.id)
        .limit(1)
    )


def _come_back(session: Session, wave: Wave, known: int, visitor: Visitor, *, may_return: bool = True) -> StudyProgress:
    """The progress of a known visitor. Raises NotTheirs, or NotAllowed if it is not theirs and the wave takes nobody
    new.
    """
    progress = find_progress(session, known)
    if not _is_theirs(session, progress, visitor):
        _check_takes_new(wave, visitor)
        if visitor.doubted:
            raise NotTheirs(_NOT_LET_IN)
        # Nobody who has locked a wave locks an enrolment of it.
        progress = find_progress(session, known, lock=may_return)
        if not may_return or not _can_be_taken_over(session, progress):
            raise NotTheirs(_NOT_LET_IN)
        _take_over(session, wave, progress)
    if wave.frozen_at is None:
        if may_return and may_be_readmitted(progress):
            progress = find_progress(session, known, lock=True)
            readmit(session, progress)
        _keep_submission(session, progress, visitor)
    return progress


def _is_theirs(session: Session, progress: StudyProgress, visitor: Visitor) -> bool:
    """Whether a visitor who names a person of the wave is that person.

    They are if they come by the same visit, whose id others do not know, or in a browser that has had the private link.
    """
    if visitor.proven or mark_of_link(str(progress.enrolment.token)) in visitor.marks:
        return True
    if visitor.submission_id is None:
        return False
    visits = session.scalars(select(Submission.external_id).where(Submission.enrolment_id == progress.enrolment.id))
    given = visitor.submission_id.encode()
    return any(hmac.compare_digest(each.encode(), given) for each in visits if each is not None)


def _can_be_taken_over(session: Session, progress: StudyProgress) -> bool:
    """Whether nothing in an enrolment has been agreed to or paid."""
    enrolment = progress.enrolment
    if enrolment.agreed_at is not None or enrolment.holds_place or enrolment.ending not in (None, *_BEFORE_CONSENT):
        return False
    paid = select(Payment.id).where(Payment.enrolment_id == enrolment.id, Payment.batch_id.is_not(None))
    return session.scalar(paid.limit(1)) is None


def _take_over(session: Session, wave: Wave, progress: StudyProgress) -> None:
    """Give an enrolment to the current visitor: the old private link and visits no longer lead to it.

    `progress` is locked. Another person's no does not count for the visitor.
    """
    progress.enrolment.token = secrets.token_urlsafe(32)
    session.execute(delete(Submission).where(Submission.enrolment_id == progress.enrolment.id))
    if progress.enrolment.ending == DECLINED and wave.status == OPEN:
        progress.enrolment.ending = WITHDRAWN
    log_event(session, progress, ENTRY, {"taken over": True})
    session.flush()


def _check_takes_new(wave: Wave, visitor: Visitor) -> None:
    """Raises NotAllowed if a wave accepts no new people."""
    if wave.frozen_at is not None or (wave.status == CLOSED_WAVE and not _is_awaited(visitor)):
        raise NotAllowed(Phrase("This study is over."))
    if wave.status == PAUSED:
        raise NotAllowed(PAUSED_NOW)


def _is_awaited(visitor: Visitor) -> bool:
    """Whether a recruiter waits for a code, or for the visit to be returned."""
    return visitor.submission_id is not None and visitor.recruiter in APPROVING


def _ending_on_entry(session: Session, wave: Wave, people: Sequence[str]) -> EndingName | None:
    """Why a person is not let in; None if they are. `people` are the hashes by which they may be known."""
    file = settings_of(wave)
    if wave.status != OPEN:
        return CLOSED
    if not any(is_listed(session, wave, each) for each in people or ("",)):
        return INELIGIBLE
    if any(_took_part(session, reference, people) for reference in file.not_if_took_part_in):
        return INELIGIBLE
    if places_taken(session, wave) >= file.places:
        return FULL
    most = most_a_place(design_of_wave(session, wave)) * (1 + file.fee)
    return FULL if committed(session, wave) + most > file.most_spent else None


def _took_part(session: Session, reference: str, people: Sequence[str]) -> bool:
    """Whether a person took part in `study` or `study:wave`, completed or not.

    Somebody who never agreed to take part did not, whether they said no or closed the page.
    """
    name, _, wave_name = reference.partition(":")
    found = (
        select(Enrolment.id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .join(Wave, Wave.id == Enrolment.wave_id)
        .join(Study, Study.id == Wave.study_id)
        .where(
            Study.name == name,
            Participant.person_hash.in_(people),
            Enrolment.agreed_at.is_not(None),
            or_(Enrolment.ending.is_(None), Enrolment.ending.not_in(_SENT_AWAY)),
        )
    )
    if wave_name:
        found = found.where(Wave.name == wave_name)
    return session.scalar(found.limit(1)) is not None


def _enrol(session: Session, wave: Wave, visitor: Visitor, people: Sequence[str]) -> StudyProgress:
    version = session.get_one(StudyVersion, wave.study_version_id)
    now = datetime.now(UTC)
    person = session.scalar(
        select(Participant)
        .where(Participant.study_id == wave.study_id, Participant.person_hash.in_(people))
        .order_by(Participant.id)
        .limit(1)
    )
    if person is None:
        code = f"p{secrets.token_hex(5)}"  # a spreadsheet would take all digits, or 12345678e9, for a number
        person = Participant(study_id=wave.study_id, code=code, person_hash=people[0], created_at=now)
        session.add(person)
        session.flush()
    _keep_identity(session, wave, visitor, person.id, design_of(version), now)
    strata = {"device": visitor.device, "provider": visitor.recruiter}
    stratum = "/".join(strata[each] for each in design_of(version).plan.assign.strata)
    return new_progress(session, version, person, wave.id, visitor.device, stratum)


def new_progress(
    session: Session, version: StudyVersion, person: Participant, wave_id: int | None, device: str, stratum: str
) -> StudyProgress:
    """A new enrolment, at its first step, with a private link of its own."""
    enrolment = Enrolment(
        participant_id=person.id,
        study_version_id=version.id,
        wave_id=wave_id,
        token=secrets.token_urlsafe(32),
        device=device,
        stratum=stratum,
        holds_place=False,
        step=0,
        stage="",
        answers={},
        enrolled_at=datetime.now(UTC),
        seen_at=datetime.now(UTC),
    )
    progress = StudyProgress(enrolment, version)
    enrolment.stage = progress.step.kind
    session.add(enrolment)
    session.flush()
    return progress


def _keep_identity(
    session: Session, wave: Wave, visitor: Visitor, participant_id: int, design: StudyDesign, now: datetime
) -> None:
    """Store the recruiter's id of a person until the day that the design states; a later wave may postpone it."""
    recruiter, external_id = visitor.recruiter, visitor.external_id
    kept = session.scalars(
        select(RecruitmentIdentity).where(
            RecruitmentIdentity.participant_id == participant_id, RecruitmentIdentity.recruiter == recruiter
        )
    )
    same = comparable_id(recruiter, external_id)
    identity = next((each for each in kept if comparable_id(recruiter, each.external_id) == same), None)
    if identity is None:
        identity = RecruitmentIdentity(participant_id=participant_id, recruiter=recruiter, external_id=external_id)
        session.add(identity)
    identity.remove_on = day_of(design.privacy.vendor_ids_deleted, now, wave.closed_at)


def _keep_submission(session: Session, progress: StudyProgress, visitor: Visitor) -> None:
    """Add a row for a visit that has a recruiter's id. A visit of another person stays theirs."""
    wave_id = progress.enrolment.wave_id
    if visitor.submission_id is None or wave_id is None:
        return
    found = session.scalar(
        select(Submission).where(Submission.wave_id == wave_id, Submission.external_id == visitor.submission_id)
    )
    if found is not None:
        return
    now = datetime.now(UTC)
    session.add(
        Submission(
            wave_id=wave_id,
            enrolment_id=progress.enrolment.id,
            recruiter=visitor.recruiter,
            external_id=visitor.submission_id,
            status=ACTIVE,
            created_at=now,
            changed_at=now,
        )
    )
    session.flush()


def _pause_after_first(session: Session, wave: Wave, first: int) -> None:
    """Pause a wave once, when its first few people are in."""
    paused = select(StudyEvent.id).where(StudyEvent.wave_id == wave.id, StudyEvent.kind == PAUSED_BY_START)
    if session.scalar(paused.limit(1)) is None and places_taken(session, wave) >= first:
        wave.status = PAUSED
        log_wave_event(session, wave.id, PAUSED_BY_START, {"first": first})
