"""How people come into a wave: who is known comes back to where they were, who is new is let in or told why not.

A place is taken with the consent, which is decided while the wave is locked: of ten people who agree for the last place
one gets it.
Nothing here commits.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from itsdangerous import BadSignature, URLSafeSerializer
from sqlalchemy import ColumnElement, and_, delete, func, or_, select
from sqlalchemy.orm import Session

from app.errors import Invalid, NotAllowed, NotFound, Phrase, TooMany
from app.models import (
    Arm,
    Enrolment,
    MatchRow,
    Participant,
    Payment,
    PaymentBatch,
    RecruitmentIdentity,
    SeatRow,
    Study,
    StudyEvent,
    StudyVersion,
    Submission,
    Wave,
)
from app.studies.amounts import APPROVING
from app.studies.assignment_list import is_listed
from app.studies.cost import most_a_place
from app.studies.design import StudyDesign
from app.studies.endings import (
    CLOSED,
    DECLINED,
    EARNED,
    FULL,
    INACTIVE,
    INELIGIBLE,
    PROLIFIC,
    WITHDRAWN,
    EndingName,
)
from app.studies.progress import Way, begin_anew, end, find_way, lock_wave, note
from app.studies.store import design_of
from app.studies.waves import CLOSED as CLOSED_WAVE
from app.studies.waves import OPEN, PAUSED, ids_go_on, settings_of

ACTIVE = "active"  # a visit that the recruiter has not said more of
CASELESS = ("prolific",)  # recruiters whose ids mean the same in any case: Prolific's are hexadecimal numbers
_NOT_LET_IN = Phrase("This link does not let you in here.")
PAUSED_NOW = Phrase("This study is paused. Please come back later.")
ENTRY, FREED, PAUSED_BY_START = "entry", "place freed", "paused after the first"
PREVIEW = "preview"
# Endings of people who were sent away before they took part.
_SENT_AWAY: tuple[EndingName, ...] = (DECLINED, INELIGIBLE, FULL, CLOSED)
# Endings before the consent after which somebody may begin all the same, as long as the wave is open.
_NOT_FOR_GOOD: tuple[EndingName, ...] = (FULL, INACTIVE, WITHDRAWN)
_BEFORE_CONSENT: tuple[EndingName, ...] = (*_SENT_AWAY, INACTIVE, WITHDRAWN)
_MARK = "parlor.private-link\n"
_PERSON_KEY = b"parlor.person"
_PREVIEW_SALT = "parlor.study-preview"
MOST_WALKS = 10  # through a version by one preview link: each leaves rows behind


class Visitor(NamedTuple):
    """Who comes by the link of a wave, as the recruiter names them. `submission_id` is of this visit.

    An id is no secret. `proven`: the recruiter signed it, or it is this browser's own. `doubted`: the recruiter signs
    its links and did not sign this one. `marks`: of the private links that this browser has opened (see
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
    """Somebody names the id of another person, or their own without showing that it is theirs."""


class Preview(NamedTuple):
    """What a preview link shows: a version, and one of its arms; None: any. `part` counts the links before it."""

    version_id: int
    arm_id: int | None
    part: int = 0


def person_hash(secret: str, recruiter: str, external_id: str) -> str:
    """What links a person's studies and outlives the id: nobody gets from it to the id without the server's key."""
    return _hash(secret, recruiter, one_case(recruiter, external_id))


def person_hashes(secret: str, recruiter: str, external_id: str) -> tuple[str, ...]:
    """All hashes by which a person may be known, the one of today first: before, another case was another person."""
    written = dict.fromkeys((one_case(recruiter, external_id), external_id, external_id.lower(), external_id.upper()))
    some = list(written) if recruiter in CASELESS else [external_id]
    return tuple(_hash(secret, recruiter, each) for each in some)


def enter(session: Session, wave: Wave, visitor: Visitor, secret: str) -> Way:
    """Somebody's way through a wave: theirs if they have been here, else a new one, which may end at the door.

    A new one has no place yet: that comes with the consent (`take_place`). It is `ineligible` for who took part in what
    the wave excludes or is not in its list, `full` when all places are taken or the spend cap is reached, and `closed`
    where the recruiter waits to hear what became of the visit. Who was sent away without having taken part is let in
    when that no longer holds. Nobody is turned away for good by a pause. Until somebody has agreed, whoever comes last
    with the id has the way, by a new private link: who came first by another's id keeps nobody out.

    Raises NotAllowed for who is new to a wave that is paused or frozen, or closed with nobody waiting; NotTheirs for
    who names a person of the wave who has agreed, and does not show that it is them, and for whoever is doubted and is
    not known by this browser.
    """
    people = person_hashes(secret, visitor.recruiter, visitor.external_id)
    known = _known(session, wave.id, people)
    if known is not None:
        return _come_back(session, wave, known, visitor)
    if visitor.doubted:
        _check_takes_new(wave, visitor)
        raise NotTheirs(_NOT_LET_IN)
    session.get_one(Study, wave.study_id, with_for_update={"key_share": True})
    wave = lock_wave(session, wave.id)
    if (known := _known(session, wave.id, people)) is not None:  # by another tab, just now
        return _come_back(session, wave, known, visitor, may_return=False)
    _check_takes_new(wave, visitor)
    refusal = _refusal(session, wave, people)
    way = _enrol(session, wave, visitor, people)
    note(session, way, ENTRY, {"device": visitor.device, "recruiter": visitor.recruiter})
    _keep_submission(session, way, visitor)
    if refusal is not None:
        end(session, way, refusal, door=True)
    return way


def take_place(session: Session, way: Way) -> None:
    """Give somebody who agrees to take part a place, and keep the most that they may be paid under the cap.

    Where there is none any more, the enrolment ends as it would have at the door. Raises NotAllowed while the wave is
    paused; then nothing has changed.
    """
    enrolment = way.enrolment
    if enrolment.wave_id is None or enrolment.ending is not None or enrolment.agreed_at is not None:
        return
    wave = lock_wave(session, enrolment.wave_id)
    if not enrolment.holds_place:  # those have one who arrived before a place came with the consent
        if wave.status == PAUSED:
            raise NotAllowed(PAUSED_NOW)
        person = session.get_one(Participant, enrolment.participant_id).person_hash
        refusal = _refusal(session, wave, () if person is None else (person,))
        if refusal is not None:
            end(session, way, refusal, door=True)
            return
        enrolment.holds_place = True
    enrolment.agreed_at = datetime.now(UTC)
    session.flush()
    if (start := settings_of(wave).start) is not None:
        _pause_after_first(session, wave, start.first)


def come_again(session: Session, way: Way) -> bool:
    """Let somebody begin who was sent away, or went, before they had agreed to anything. Whether that was done.

    `way` is locked. It is not where the same would send them away once more.
    """
    enrolment = way.enrolment
    if enrolment.wave_id is None or not may_come_again(way):
        return False
    wave = lock_wave(session, enrolment.wave_id)
    if wave.frozen_at is not None or wave.status != OPEN:
        return False
    person = session.get_one(Participant, enrolment.participant_id).person_hash
    if _refusal(session, wave, () if person is None else (person,)) is not None:
        return False
    owed = select(Payment).where(
        Payment.enrolment_id == enrolment.id, Payment.batch_id.is_(None), Payment.reason.is_(None)
    )
    for payment in session.scalars(owed):  # nothing, which is written once more at the end that comes
        session.delete(payment)
    enrolment.ending = enrolment.ended_at = None
    begin_anew(way)
    note(session, way, ENTRY, {"again": True})
    session.flush()
    return True


def may_come_again(way: Way) -> bool:
    """Whether the ending of somebody is one after which they may begin: they took no part, and did not say no."""
    return way.enrolment.ending in _NOT_FOR_GOOD and way.enrolment.agreed_at is None


def mark_of_link(token: str) -> str:
    """What a browser keeps of a private link that it has opened; nobody gets from it to the link."""
    return hashlib.sha256(f"{_MARK}{token}".encode()).hexdigest()[:24]


def places_taken(session: Session, wave: Wave) -> int:
    """How many places of a wave are taken: by people under way, and by those whose ending keeps it.

    Where nobody is replaced, whoever was given an arm keeps the place.
    """
    taken = takes_place(_design(session, wave))
    found = session.scalar(select(func.count()).select_from(Enrolment).where(Enrolment.wave_id == wave.id, taken))
    return int(found or 0)


def takes_place(design: StudyDesign) -> ColumnElement[bool]:
    """Whether an enrolment takes a place of its wave, as a condition of a query."""
    if design.plan.assign.replace == "nobody":
        return or_(Enrolment.holds_place, Enrolment.arm_id.is_not(None))
    return Enrolment.holds_place.is_(True)


def committed(session: Session, wave: Wave) -> Decimal:
    """What a wave has cost and may cost yet, with the fee: what is owed to those who ended, the most to all others."""
    return committed_before_fee(session, wave) * (1 + settings_of(wave).fee)


def committed_before_fee(session: Session, wave: Wave) -> Decimal:
    """The same without the fee."""
    design = _design(session, wave)
    most, paid = most_a_place(design), _sums(session, wave)
    played = _players(session, wave)
    total = Decimal(0)
    columns = select(Enrolment.id, Enrolment.ending, Enrolment.holds_place, Enrolment.agreed_at)
    for number, ending, holds_place, agreed_at in session.execute(columns.where(Enrolment.wave_id == wave.id)):
        if ending is None:
            total += most if holds_place else 0
        elif number in paid:
            total += paid[number]
        elif agreed_at is not None or ending in (DECLINED, INELIGIBLE):
            total += _most_of_ending(design, ending, played=number in played)  # type: ignore[arg-type]  # the column's
    return total


def free_place(session: Session, way: Way) -> None:
    """Give the place of somebody who has ended to another person, whatever the ending says."""
    if way.enrolment.wave_id is not None and way.enrolment.holds_place:
        lock_wave(session, way.enrolment.wave_id)
        way.enrolment.holds_place = False
        note(session, way, FREED, {})


# ---- Previews ----------------------------------------------------------------------


def preview_token(secret: str, version_id: int, arm_id: int | None = None, walks: int = 0) -> str:
    """A signed link to walk through a version, in one of its arms, ten times at most.

    `walks` is how many there have been: a link that is made when one is used up is another one, for the next ten.
    """
    part = walks // MOST_WALKS
    return str(URLSafeSerializer(secret, salt=_PREVIEW_SALT).dumps([version_id, arm_id, *([part] if part else [])]))


def read_preview(secret: str, token: str) -> Preview:
    """What a preview link shows. Raises NotFound for a link that Parlor did not sign."""
    try:
        version_id, arm_id, *part = URLSafeSerializer(secret, salt=_PREVIEW_SALT).loads(token)
    except (BadSignature, ValueError, TypeError):
        raise NotFound("link", expected=Phrase("one that Parlor gave out"), got=Phrase("another one")) from None
    return Preview(version_id, arm_id, part[0] if part else 0)


def preview_walks(session: Session, version_id: int) -> Mapping[int | None, int]:
    """How many walks through a version there have been, by arm; under None through all of them."""
    walks = select(Enrolment.arm_id, func.count()).where(
        Enrolment.study_version_id == version_id, Enrolment.wave_id.is_(None)
    )
    found: dict[int | None, int] = dict(session.execute(walks.group_by(Enrolment.arm_id)).all())
    return {**found, None: sum(found.values())}


def is_used_up(session: Session, preview: Preview) -> bool:
    """Whether a preview link has made its ten walks."""
    walks = preview_walks(session, preview.version_id)
    return walks.get(preview.arm_id, 0) >= (preview.part + 1) * MOST_WALKS


def enter_preview(session: Session, preview: Preview, device: str) -> Way:
    """A new walk through a version. It takes no place, belongs to no wave, and is in no export.

    Raises Invalid, and TooMany for a link that has made its walks.
    """
    # Of several at once each counts those before it.
    version = session.get(StudyVersion, preview.version_id, with_for_update={"key_share": True})
    arm = None if preview.arm_id is None else session.get(Arm, preview.arm_id)
    if version is None or (preview.arm_id is not None and (arm is None or arm.study_version_id != version.id)):
        raise Invalid("link", expected=Phrase("one to a version and an arm that are there"), got=Phrase("another one"))
    if is_used_up(session, preview):
        raise TooMany(Phrase("This preview was walked through %(most)s times.", most=MOST_WALKS))
    person = Participant(
        study_id=version.study_id, code=f"{PREVIEW}-{secrets.token_hex(8)}", created_at=datetime.now(UTC)
    )
    session.add(person)
    session.flush()
    way = _new_way(session, version, person, None, device, device)
    way.enrolment.arm_id = preview.arm_id
    return way


# ---- At the door -------------------------------------------------------------------


def one_case(recruiter: str, external_id: str) -> str:
    """An id to compare by: of recruiters whose ids mean the same in any case, in small letters."""
    return external_id.lower() if recruiter in CASELESS else external_id


def _hash(secret: str, recruiter: str, external_id: str) -> str:
    key = hmac.digest(secret.encode(), _PERSON_KEY, hashlib.sha256)
    return hmac.new(key, f"{recruiter}\n{external_id}".encode(), hashlib.sha256).hexdigest()


def _known(session: Session, wave_id: int, people: Sequence[str]) -> int | None:
    """The enrolment of a person in a wave."""
    return session.scalar(
        select(Enrolment.id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .where(Enrolment.wave_id == wave_id, Participant.person_hash.in_(people))
        .order_by(Enrolment.id)
        .limit(1)
    )


def _come_back(session: Session, wave: Wave, known: int, visitor: Visitor, *, may_return: bool = True) -> Way:
    """The way of somebody who is known. Raises NotTheirs, and what somebody new is told where nobody new comes in."""
    way = find_way(session, known)
    if not _is_theirs(session, way, visitor):
        _check_takes_new(wave, visitor)
        if visitor.doubted:
            raise NotTheirs(_NOT_LET_IN)
        # Nobody locks an enrolment who has locked its wave.
        way = find_way(session, known, lock=may_return)
        if not may_return or not _can_be_taken_over(session, way):
            raise NotTheirs(_NOT_LET_IN)
        _take_over(session, wave, way)
    if wave.frozen_at is None:
        if may_return and may_come_again(way):
            way = find_way(session, known, lock=True)
            come_again(session, way)
        _keep_submission(session, way, visitor)
    return way


def _is_theirs(session: Session, way: Way, visitor: Visitor) -> bool:
    """Whether somebody who names a person of the wave is that person.

    They are by the same visit, whose id others do not know, or in a browser that has had the private link.
    """
    if visitor.proven or mark_of_link(str(way.enrolment.token)) in visitor.marks:
        return True
    if visitor.submission_id is None:
        return False
    visits = session.scalars(select(Submission.external_id).where(Submission.enrolment_id == way.enrolment.id))
    given = visitor.submission_id.encode()
    return any(hmac.compare_digest(each.encode(), given) for each in visits if each is not None)


def _can_be_taken_over(session: Session, way: Way) -> bool:
    """Whether nobody has agreed to anything on a way, nor was paid for it."""
    enrolment = way.enrolment
    if enrolment.agreed_at is not None or enrolment.holds_place or enrolment.ending not in (None, *_BEFORE_CONSENT):
        return False
    paid = select(Payment.id).where(Payment.enrolment_id == enrolment.id, Payment.batch_id.is_not(None))
    return session.scalar(paid.limit(1)) is None


def _take_over(session: Session, wave: Wave, way: Way) -> None:
    """Give a way to who comes now: neither the private link nor the visits of before lead to it any more.

    `way` is locked. Somebody else's no is not theirs.
    """
    way.enrolment.token = secrets.token_urlsafe(32)
    session.execute(delete(Submission).where(Submission.enrolment_id == way.enrolment.id))
    if way.enrolment.ending == DECLINED and wave.status == OPEN:
        way.enrolment.ending = WITHDRAWN
    note(session, way, ENTRY, {"taken over": True})
    session.flush()


def _check_takes_new(wave: Wave, visitor: Visitor) -> None:
    """Raises NotAllowed where a wave takes nobody in who is new to it."""
    if wave.frozen_at is not None or (wave.status == CLOSED_WAVE and not _is_awaited(visitor)):
        raise NotAllowed(Phrase("This study is over."))
    if wave.status == PAUSED:
        raise NotAllowed(PAUSED_NOW)


def _is_awaited(visitor: Visitor) -> bool:
    """Whether a recruiter waits for a code, or for the visit to be returned."""
    return visitor.submission_id is not None and visitor.recruiter in APPROVING


def _refusal(session: Session, wave: Wave, people: Sequence[str]) -> EndingName | None:
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
    most = most_a_place(_design(session, wave)) * (1 + file.fee)
    return FULL if committed(session, wave) + most > file.most_spent else None


def _took_part(session: Session, reference: str, people: Sequence[str]) -> bool:
    """Whether a person took part in `study` or `study:wave`, with or without coming to its end.

    Whoever never agreed to take part has not, whether they said no or closed the page.
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


def _enrol(session: Session, wave: Wave, visitor: Visitor, people: Sequence[str]) -> Way:
    version = session.get_one(StudyVersion, wave.study_version_id)
    now = datetime.now(UTC)
    person = session.scalar(
        select(Participant)
        .where(Participant.study_id == wave.study_id, Participant.person_hash.in_(people))
        .order_by(Participant.id)
        .limit(1)
    )
    if person is None:
        code = f"p{secrets.token_hex(5)}"  # all digits, or 12345678e9, a spreadsheet would take for a number
        person = Participant(study_id=wave.study_id, code=code, person_hash=people[0], created_at=now)
        session.add(person)
        session.flush()
    _keep_identity(session, wave, visitor, person.id, design_of(version), now)
    strata = {"device": visitor.device, "provider": visitor.recruiter}
    stratum = "/".join(strata[each] for each in design_of(version).plan.assign.strata)
    return _new_way(session, version, person, wave.id, visitor.device, stratum)


def _new_way(
    session: Session, version: StudyVersion, person: Participant, wave_id: int | None, device: str, stratum: str
) -> Way:
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
    way = Way(enrolment, version)
    enrolment.stage = way.step.kind
    session.add(enrolment)
    session.flush()
    return way


def _keep_identity(
    session: Session, wave: Wave, visitor: Visitor, participant_id: int, design: StudyDesign, now: datetime
) -> None:
    """Keep how the recruiter names a person, until the day that the design says; a later wave may put it off."""
    recruiter, external_id = visitor.recruiter, visitor.external_id
    kept = session.scalars(
        select(RecruitmentIdentity).where(
            RecruitmentIdentity.participant_id == participant_id, RecruitmentIdentity.recruiter == recruiter
        )
    )
    same = one_case(recruiter, external_id)
    identity = next((each for each in kept if one_case(recruiter, each.external_id) == same), None)
    if identity is None:
        identity = RecruitmentIdentity(participant_id=participant_id, recruiter=recruiter, external_id=external_id)
        session.add(identity)
    identity.remove_on = ids_go_on(design.privacy, now, wave.closed_at)


def _keep_submission(session: Session, way: Way, visitor: Visitor) -> None:
    """A row for each visit that the recruiter has an id of. One that is another person's stays that person's."""
    wave_id = way.enrolment.wave_id
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
            enrolment_id=way.enrolment.id,
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
        body: dict[str, Any] = {"first": first}
        session.add(
            StudyEvent(wave_id=wave.id, enrolment_id=None, kind=PAUSED_BY_START, body=body, at=datetime.now(UTC))
        )


# ---- Places and money --------------------------------------------------------------


def _design(session: Session, wave: Wave) -> StudyDesign:
    return design_of(session.get_one(StudyVersion, wave.study_version_id))


def _sums(session: Session, wave: Wave) -> dict[int, Decimal]:
    """What is owed, by enrolment, and what was sent beyond that: money that a recruiter paid does not come back."""
    owed: dict[int, Decimal] = {}
    to_send: dict[int, Decimal] = {}  # without bases, which an approval may pay
    rows = (
        select(Payment.enrolment_id, Payment.key, Payment.amount, PaymentBatch.status)
        .join(Enrolment, Enrolment.id == Payment.enrolment_id)
        .outerjoin(PaymentBatch, PaymentBatch.id == Payment.batch_id)
        .where(Enrolment.wave_id == wave.id)
    )
    for number, key, amount, status in session.execute(rows):
        owed[number] = owed.get(number, Decimal(0)) + amount
        if status in (None, "drafted") and key != "base":
            to_send[number] = to_send.get(number, Decimal(0)) + amount
    return {number: amount - min(Decimal(0), to_send.get(number, Decimal(0))) for number, amount in owed.items()}


def _players(session: Session, wave: Wave) -> set[int | None]:
    """The enrolments in which a match that counts has begun."""
    rows = (
        select(SeatRow.enrolment_id)
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .join(Enrolment, and_(Enrolment.id == SeatRow.enrolment_id, Enrolment.wave_id == wave.id))
        .where(MatchRow.position.is_not(None))
    )
    return set(session.scalars(rows))


def _most_of_ending(design: StudyDesign, name: EndingName, *, played: bool) -> Decimal:
    """The most that somebody is owed who ended so, before it is settled."""
    ending = design.ending(name, PROLIFIC)
    base = ending.base if isinstance(ending.base, Decimal) else Decimal(0) if ending.base == "none" else design.pay.base
    bonus = design.pay.most_a_person if played and ending.bonus == EARNED else Decimal(0)
    return max(base, ending.least or Decimal(0)) + bonus
