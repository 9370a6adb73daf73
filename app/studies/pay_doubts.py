"""What needs review before a wave is paid, and what keeps a person out of batches until it is decided.

Approving a submission pays the full base. Parlor learns of it only from the recruiter's table, so it can only report
where its records do not match. No batch pays people whom the recruiter returned or rejected, whom none of its tables
names, whose visit it assigns to another person, or whose base it has already paid, until somebody decides so, with a
reason. Nothing here commits.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Phrase, Verbatim
from app.models import Enrolment, Payment, PaymentBatch, Submission, Wave
from app.studies.amounts import APPROVING, NOTHING, is_paid_by_approval
from app.studies.due import OwedPerson, due, payment_rows
from app.studies.endings import EndingName
from app.studies.pay_decisions import PAY_DECISION, kept
from app.studies.payable import UNPAYABLE, unpayable
from app.studies.payments import BASE, read_reason, recruiter_of
from app.studies.progress import StudyProgress, log_event
from app.studies.store import design_of_wave
from app.studies.visits import APPROVED, PARTIAL, REJECTED, RETURNED, SCREENED_OUT, done_elsewhere, statuses_of_visits

NO_SUBMISSION, PAID_TWICE, WOULD_PAY_TWICE, IN_PART = "no submission", "paid twice", "would pay twice", "paid in part"
UNKNOWN, OTHER_PERSON, UNDER_WAY, OVERPAID = "unknown", "another person", "under way", "overpaid"
ASKED_TO_RETURN = "asked to return"
_PAID_FOR = (APPROVED, PARTIAL, SCREENED_OUT)  # states in which a recruiter has paid something
# Doubts that an experimenter can decide.
_HOLDING = (RETURNED, ASKED_TO_RETURN, REJECTED, UNKNOWN, OTHER_PERSON, PAID_TWICE, WOULD_PAY_TWICE)


class PayDoubt(NamedTuple):
    """Something that needs review: the person, the amount, and what may be wrong.

    `kind`: the recruiter has no submission of the person that it could approve; it approved one whose base is in a
    batch, or would be in the next; it paid an amount other than the base that approval pays; it returned or rejected
    the submission, says that it is another person's, or none of its tables names the person, to whom a file would pay
    something; its file cannot pay the person; it considers a person who is under way here submitted or approved; or
    more was paid than is owed. `kept`: it was decided that the person is paid all the same. `holds`: it keeps the
    person out of batches.
    """

    enrolment_id: int
    code: str  # the participant's
    kind: str
    amount: Decimal
    kept: bool = False

    @property
    def holds(self) -> bool:
        """Whether it keeps the person out of batches."""
        return not self.kept and self.kind in (*_HOLDING, *UNPAYABLE)

    @property
    def can_be_decided(self) -> bool:
        """Whether somebody may decide that the person is paid all the same."""
        return self.kind in _HOLDING


def pay_doubts(session: Session, wave: Wave) -> list[PayDoubt]:
    """All doubts of a wave, in order of enrolment. Most kinds arise only with a recruiter that approves submissions."""
    people = due(session, wave)
    found = [*_of_files(session, wave, [*people, *_drafted(session, wave)]), *_overpaid(session, wave)]
    recruiter = recruiter_of(wave)
    if recruiter in APPROVING:
        found += [*_of_bases(session, wave, recruiter), *_under_way(session, wave)]
    decided = kept(session, wave)
    once = {(each.enrolment_id, each.kind): each for each in found}
    marked = [each._replace(kept=decided.get(key, False)) for key, each in once.items()]
    return sorted(marked, key=lambda each: each.enrolment_id)


def held_back(session: Session, wave: Wave, people: Sequence[OwedPerson]) -> Mapping[int, PayDoubt]:
    """The people whom the next batch would pay but leaves out, and why, by enrolment."""
    return _held_of(session, wave, {each.enrolment_id for each in people})


def held_in(session: Session, batch: PaymentBatch) -> Mapping[int, PayDoubt]:
    """The people of a batch who are in doubt, and why, by enrolment."""
    wave = session.get_one(Wave, batch.wave_id)
    return _held_of(
        session, wave, set(session.scalars(select(Payment.enrolment_id).where(Payment.batch_id == batch.id)))
    )


def _held_of(session: Session, wave: Wave, numbers: Collection[int]) -> Mapping[int, PayDoubt]:
    return {
        each.enrolment_id: each for each in pay_doubts(session, wave) if each.holds and each.enrolment_id in numbers
    }


def decide(
    session: Session, progress: StudyProgress, *, keep: bool, reason: str, by: str | None = None
) -> Sequence[PayDoubt]:
    """Decide that a person is paid despite all current doubts, or is left out again; returns these doubts.

    Raises Invalid for an invalid reason, and Conflict if there is nothing to decide.
    """
    text = read_reason("reason", reason)
    wave = session.get_one(Wave, progress.enrolment.wave_id)
    own = [each for each in pay_doubts(session, wave) if each.enrolment_id == progress.enrolment.id]
    if any(each.kind in UNPAYABLE for each in own):
        raise Conflict(
            "participant", expected=Phrase("one whom a file of the recruiter can pay"),
            got=Phrase("one whom it cannot (%(why)s)", why=Verbatim(next(x.kind for x in own if x.kind in UNPAYABLE))),
            remedy=Phrase("pay them another way, and deduct here what is owed"),
        )  # fmt: skip
    found = [each for each in own if each.can_be_decided and each.kept != keep]
    if not found:
        raise Conflict("participant", expected=Phrase("one whose pay is in doubt"), got=Phrase("none to decide on"))
    for each in found:
        body = {"doubt": each.kind, "keep": keep, "reason": text, "by": by}
        log_event(session, progress, PAY_DECISION, body)
    session.flush()
    return found


# ---- Who would be paid by a file ---------------------------------------------------


def _drafted(session: Session, wave: Wave) -> Iterator[OwedPerson]:
    """The people in drafts, with what these pay them."""
    rows = session.execute(
        payment_rows(wave)
        .join(PaymentBatch, PaymentBatch.id == Payment.batch_id)
        .where(PaymentBatch.status == "drafted")
        .order_by(Enrolment.id, Payment.id)
    ).all()
    sums: defaultdict[int, Decimal] = defaultdict(Decimal)
    for row in rows:
        sums[row.enrolment_id] += row.amount
    for row in {row.enrolment_id: row for row in rows}.values():
        number = row.enrolment_id
        yield OwedPerson(number, row.code, row.ending, sums[number], row.currency, (), row.participant_id)


def _of_files(session: Session, wave: Wave, people: Sequence[OwedPerson]) -> Iterator[PayDoubt]:
    """Doubts about people whom a file would pay: it cannot, or the recruiter does not want them paid or does not know
    them.
    """
    barred = unpayable(session, wave, people)
    visits, unlisted = statuses_of_visits(session, wave), _unlisted(session, wave)
    of_others = select(Submission.enrolment_id).where(Submission.wave_id == wave.id, Submission.other_person)
    others = set(session.scalars(of_others))
    approves = recruiter_of(wave) in APPROVING
    for each in people:
        kind = barred.get(each.enrolment_id)
        if kind is not None:
            yield PayDoubt(each.enrolment_id, each.code, kind, each.amount)
        if not approves:
            continue
        statuses = visits.get(each.enrolment_id, [])
        last = statuses[-1] if statuses else None
        if last in (RETURNED, REJECTED):
            kind = ASKED_TO_RETURN if last == RETURNED and _asks_to_return(wave, each.ending) else last
            yield PayDoubt(each.enrolment_id, each.code, kind, each.amount)
        elif last is None or each.enrolment_id in unlisted:
            yield PayDoubt(each.enrolment_id, each.code, UNKNOWN, each.amount)
        elif each.enrolment_id in others:
            yield PayDoubt(each.enrolment_id, each.code, OTHER_PERSON, each.amount)


def _asks_to_return(wave: Wave, ending: str) -> bool:
    """Whether the last page asks the person to return the submission, because there is no code to submit."""
    return recruiter_of(wave) == "prolific" and ending not in wave.settings.get("codes", {})


def _unlisted(session: Session, wave: Wave) -> set[int]:
    """The enrolments whose visit was in none of the recruiter's tables; the ids in a link can be invented."""
    named = select(Submission.enrolment_id).where(Submission.wave_id == wave.id, Submission.listed_at.is_not(None))
    return set(session.scalars(select(Enrolment.id).where(Enrolment.wave_id == wave.id, Enrolment.id.not_in(named))))


def _overpaid(session: Session, wave: Wave) -> Iterator[PayDoubt]:
    """The people who were paid more than is owed, because a sent payment was reversed."""
    rows = session.execute(payment_rows(wave).where(Payment.batch_id.is_(None), Payment.key != BASE))
    sums: defaultdict[tuple[int, str], Decimal] = defaultdict(Decimal)
    for row in rows:
        sums[row.enrolment_id, row.code] += row.amount
    for (number, code), amount in sums.items():
        if amount < 0:
            yield PayDoubt(number, code, OVERPAID, -amount)


# ---- What approval pays --------------------------------------------------------------


def _of_bases(session: Session, wave: Wave, recruiter: str) -> Iterator[PayDoubt]:
    design = design_of_wave(session, wave)
    visits = statuses_of_visits(session, wave)
    rows = payment_rows(wave).add_columns(Payment.batch_id).where(Payment.key == BASE).order_by(Enrolment.id)
    for row in session.execute(rows):
        number, code, amount, batch_id = row.enrolment_id, row.code, row.amount, row.batch_id
        if not amount:
            continue
        statuses = visits.get(number, [])
        last = statuses[-1] if statuses else None
        by_approval = batch_id is None and is_paid_by_approval(design, cast(EndingName, row.ending), recruiter, last)
        paid = [status for status in statuses if status in _PAID_FOR]
        if by_approval and not statuses:
            yield PayDoubt(number, code, NO_SUBMISSION, amount)
        elif by_approval and last in (PARTIAL, SCREENED_OUT):
            yield PayDoubt(number, code, IN_PART, amount)
        elif paid and not by_approval:
            yield PayDoubt(number, code, WOULD_PAY_TWICE if batch_id is None else PAID_TWICE, amount)


def _under_way(session: Session, wave: Wave) -> Iterator[PayDoubt]:
    """The people whom the recruiter considers done while they are under way here; no sum is recorded for them yet."""
    for each in done_elsewhere(session, wave):
        yield PayDoubt(each.enrolment_id, each.code, UNDER_WAY, NOTHING)
