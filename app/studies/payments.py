"""Payments owed to people: written once when an enrolment has ended, adjusted by hand later. Nothing here commits.

Previews and practice matches are never paid. A row of zero means that nothing is owed; lists and files leave it out.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, NotFound, Phrase, Verbatim
from app.games import find_game
from app.games.metrics import ABORTED
from app.matches.engine import RESIGNED
from app.matches.filter import is_over
from app.models import (
    Enrolment,
    EventRow,
    MatchRow,
    Participant,
    Payment,
    PaymentBatch,
    SeatRow,
    StudyEvent,
    Submission,
    Wave,
)
from app.studies.amounts import (
    NOTHING,
    PlayedMatch,
    base_owed,
    bonus_owed,
    exact,
    is_paid_by_approval,
    pays_bonus,
    time_taken,
)
from app.studies.checks import OBJECTIVE
from app.studies.endings import DECLINED, INACTIVE, INELIGIBLE, EndingName
from app.studies.places import committed_before_fee
from app.studies.progress import ENDING, StudyProgress, find_progress, lock_wave, log_event
from app.studies.quantities import CENT, places_of
from app.studies.reports import REPORT

BASE, BONUS, ADJUSTMENT, REVERSAL = "base", "bonus", "adjustment", "reversal"
_DRAFTED = "drafted"  # of a batch
_LONGEST_REASON = 200
_ENDS = ("resigned", "timeout", "ended")  # events that add no sign of life to that of an earlier move
_MOST = Decimal(10_000)


def earned(session: Session, progress: StudyProgress) -> Decimal:
    """The bonus so far, for the finished matches that count, regardless of the ending."""
    return bonus_owed(progress.design, _finished_matches(session, progress))


def owed_now(session: Session, progress: StudyProgress, ending: EndingName) -> tuple[Decimal, Decimal]:
    """The base and the bonus that a person under way would be owed if they ended so now."""
    bonus = earned(session, progress) if pays_bonus(progress.design, ending) else NOTHING
    return base_owed(progress.design, ending, time_taken(_signs_of_life(session, progress.enrolment, ending))), bonus


def record_owed(session: Session, progress: StudyProgress) -> Sequence[Payment]:
    """Record what an enrolment is owed, once, when it has ended and none of its matches is in progress.

    A person who was turned away from a full or closed wave had no place, and is owed nothing. Returns the rows of the
    base and bonus; none if it is too early, and for a preview.
    """
    enrolment = progress.enrolment
    if enrolment.ending is None or enrolment.wave_id is None or _is_playing(session, enrolment.id):
        return []
    rows = session.scalars(
        select(Payment).where(Payment.enrolment_id == enrolment.id, Payment.key.in_((BASE, BONUS))).order_by(Payment.id)
    ).all()
    if rows:
        return rows
    ending = cast(EndingName, enrolment.ending)
    bonus = earned(session, progress) if pays_bonus(progress.design, ending) else NOTHING
    base = base_owed(progress.design, ending, time_taken(_signs_of_life(session, enrolment, ending)))
    # People who never agreed had no place and no share of the spend cap, but a design may pay those it turns away.
    if enrolment.agreed_at is None and ending not in (DECLINED, INELIGIBLE):
        base = bonus = NOTHING
    written = [_payment(progress, BASE, base), _payment(progress, BONUS, bonus)]
    session.add_all(written)
    log_event(session, progress, "settled", {BASE: str(base), BONUS: str(bonus)})
    session.flush()
    return written


def settle_all(session: Session, wave: Wave) -> int:
    """Settle all enrolments of a wave that have ended and are not settled, and say how many."""
    settled = select(Payment.id).where(Payment.enrolment_id == Enrolment.id, Payment.key == BONUS).exists()
    waiting = select(Enrolment.id).where(Enrolment.wave_id == wave.id, Enrolment.ending.is_not(None), ~settled)
    return sum(
        bool(record_owed(session, find_progress(session, number, lock=True)))
        for number in session.scalars(waiting.order_by(Enrolment.id)).all()
    )


def adjust(
    session: Session,
    progress: StudyProgress,
    amount: Decimal,
    reason: str,
    by: str | None = None,
    *,
    over_cap: str = "",
) -> Payment:
    """Add an amount by hand, or subtract one from what is not yet in a batch, at most down to zero.

    An amount beyond the wave's spend cap needs its own reason, `over_cap`, which is logged. Raises Invalid for an
    invalid amount or reason, and Conflict for an enrolment that is under way.
    """
    text = read_reason("reason", reason)
    places = places_of(progress.design.pay.currency)
    if not amount.is_finite() or amount == 0 or abs(amount) > _MOST or amount != round(amount, places):
        expected = Phrase(
            "an amount other than 0 with %(places)s decimals at most, such as 1.50 or -0.25", places=places
        )
        raise Invalid("amount", expected=expected, got=Verbatim(amount))
    rows = _settle_and_lock_payments(session, progress)
    left = _left(session, progress, rows)
    if amount < 0 and left + amount < 0:
        raise Invalid(
            "amount", expected=Phrase("at most %(left)s deducted, as no more is left to pay", left=left),
            got=Verbatim(amount),
        )  # fmt: skip
    body = {"amount": str(amount.quantize(CENT)), "by": by, **_over_cap(session, progress, amount, over_cap)}
    number = 1 + sum(row.key.startswith(ADJUSTMENT) for row in rows)
    return _by_hand(session, progress, f"{ADJUSTMENT} {number}", amount, text, by, body)


def reverse(
    session: Session, progress: StudyProgress, number: int, reason: str, by: str | None = None, *, over_cap: str = ""
) -> Payment:
    """Reverse an adjustment by a row of its own, `reversal N`, once.

    What was sent to a recruiter does not come back: the row is offset against what the person is still to be paid.
    Raises NotFound, Invalid, and Conflict for an adjustment that was already reversed, or that is in a draft.
    """
    text = read_reason("reason", reason)
    rows = _settle_and_lock_payments(session, progress)
    by_key = {row.key: row for row in rows}
    row = by_key.get(f"{ADJUSTMENT} {number}")
    if row is None:
        raise NotFound("adjustment", expected=Phrase("the number of an adjustment of this person"), got=number)
    key = f"{REVERSAL} {number}"
    if key in by_key:
        raise Conflict("adjustment", expected=Phrase("one that was not reversed"), got=Phrase("one that was reversed"))
    batch = None if row.batch_id is None else session.get_one(PaymentBatch, row.batch_id)
    if batch is not None and batch.status == _DRAFTED:
        raise Conflict(
            "adjustment", expected=Phrase("one that is in no draft"),
            got=Phrase("one in batch %(number)s", number=batch.number),
            remedy=Phrase("take that draft back first"),
        )  # fmt: skip
    amount = -row.amount
    if batch is None and amount < 0 and (left := _left(session, progress, rows)) + amount < 0:
        raise Invalid(
            "adjustment", expected=Phrase("at most %(left)s deducted, as no more is left to pay", left=left),
            got=Verbatim(amount), remedy=Phrase("reverse the deductions made since"),
        )  # fmt: skip
    body = {
        "number": number, "amount": str(amount), "by": by,
        **({} if batch is None else {"paid in batch": batch.number}),
        **_over_cap(session, progress, amount, over_cap),
    }  # fmt: skip
    return _by_hand(session, progress, key, amount, text, by, body)


def number_of(row: Payment) -> int:
    """The number of an adjustment or of its reversal; 0 for a base and a bonus."""
    return int(row.key.rpartition(" ")[2]) if row.key.startswith((ADJUSTMENT, REVERSAL)) else 0


def read_reason(field: str, reason: str) -> str:
    """A reason as one line. Raises Invalid if it is empty or too long."""
    text = " ".join(reason.split())
    if not 0 < len(text) <= _LONGEST_REASON:
        expected = Phrase("1 to %(most)s characters that say why", most=_LONGEST_REASON)
        raise Invalid(field, expected=expected, got=Verbatim(f"{len(text)}"))
    return text


def _settle_and_lock_payments(session: Session, progress: StudyProgress) -> Sequence[Payment]:
    """All payments of a person who has ended, locked against drafts until the transaction ends. Raises Conflict."""
    if progress.enrolment.wave_id is not None:
        lock_wave(session, progress.enrolment.wave_id)  # so that no draft includes what is taken away here
    if not record_owed(session, progress):
        raise Conflict("participant", expected=Phrase("one who has ended"), got=Phrase("one who is under way"))
    return payments_of(session, progress.enrolment.id)


def _left(session: Session, progress: StudyProgress, rows: Sequence[Payment]) -> Decimal:
    """The sum of payments that are in no batch yet and will be paid by one."""
    left = (row.amount for row in rows if row.batch_id is None and not is_by_approval(session, progress, row))
    return sum(left, NOTHING)


def _over_cap(session: Session, progress: StudyProgress, amount: Decimal, reason: str) -> dict[str, str]:
    """The log entry for an amount that exceeds the spend cap. Raises Invalid if it does so without a reason."""
    if amount < 0 or progress.enrolment.wave_id is None:
        return {}
    wave = session.get_one(Wave, progress.enrolment.wave_id)
    cap, terms = Decimal(wave.settings["most_spent"]), wave.settings["provider"][recruiter_of(wave)]
    with_fee = 1 + Decimal(terms.get("fee", 0))
    left = cap - committed_before_fee(session, wave) * with_fee
    if amount * with_fee <= left:
        return {}
    if not reason.strip():
        raise Invalid(
            "over_cap",
            expected=Phrase(
                "a reason to exceed the spend cap of %(cap)s, of which %(left)s is left, fee included",
                cap=cap, left=max(NOTHING, left).quantize(CENT),
            ),
            got=Phrase("none"),
        )  # fmt: skip
    return {"over_cap": read_reason("over_cap", reason)}


def _by_hand(
    session: Session,
    progress: StudyProgress,
    key: str,
    amount: Decimal,
    reason: str,
    by: str | None,
    body: dict[str, Any],
) -> Payment:
    """Write an amount that somebody pays or takes away; the first word of `key` is its kind in the log."""
    row = _payment(progress, key, amount.quantize(CENT))
    row.reason, row.created_by = reason, by
    session.add(row)
    log_event(session, progress, key.split()[0], body)
    session.flush()
    return row


def payments_of(session: Session, enrolment_id: int) -> Sequence[Payment]:
    """All payments of an enrolment, in the order in which they were written."""
    rows = select(Payment).where(Payment.enrolment_id == enrolment_id).order_by(Payment.id)
    return session.scalars(rows, execution_options={"populate_existing": True}).all()


def find_progress_by_code(session: Session, wave: Wave, code: str) -> StudyProgress:
    """The enrolment of a participant in a wave, locked. Raises NotFound."""
    found = session.scalar(
        select(Enrolment.id)
        .join(Participant, Participant.id == Enrolment.participant_id)
        .where(Enrolment.wave_id == wave.id, Participant.code == code)
    )
    if found is None:
        raise NotFound("participant", expected=Phrase("a participant code of this wave"), got=code)
    return find_progress(session, found, lock=True)


def recruiter_of(wave: Wave) -> str:
    """The recruiter of a wave: prolific, connect or link, or mturk in waves from before it closed."""
    return str(next(iter(wave.settings["provider"])))


def is_by_approval(session: Session, progress: StudyProgress, row: Payment) -> bool:
    """Whether the recruiter pays it, so that no file does."""
    status = session.scalar(
        select(Submission.status)
        .where(Submission.enrolment_id == progress.enrolment.id)
        .order_by(Submission.created_at.desc(), Submission.id.desc())
        .limit(1)
    )
    ending, wave = cast(EndingName, progress.enrolment.ending), session.get_one(Wave, progress.enrolment.wave_id)
    return row.key == BASE and is_paid_by_approval(progress.design, ending, recruiter_of(wave), status)


def _payment(progress: StudyProgress, key: str, amount: Decimal) -> Payment:
    return Payment(
        enrolment_id=progress.enrolment.id,
        key=key,
        amount=amount,
        currency=progress.design.pay.currency,
        created_at=datetime.now(UTC),
    )


def _is_playing(session: Session, enrolment_id: int) -> bool:
    open_matches = select(MatchRow.id).join(SeatRow, SeatRow.match_id == MatchRow.id)
    playing = open_matches.where(SeatRow.enrolment_id == enrolment_id, MatchRow.status != "over")
    return session.scalar(playing.where(MatchRow.position.is_not(None)).limit(1)) is not None


def _finished_matches(session: Session, progress: StudyProgress) -> Iterator[PlayedMatch]:
    """The finished matches that count, in order."""
    rows = session.execute(
        select(MatchRow.id, MatchRow.position, MatchRow.reason, MatchRow.utility_0, MatchRow.utility_1, SeatRow.seat,
               EventRow.body)
        .join(SeatRow, SeatRow.match_id == MatchRow.id)
        .outerjoin(EventRow, (EventRow.match_id == MatchRow.id) & (EventRow.kind == "ended"))
        .where(SeatRow.enrolment_id == progress.enrolment.id, MatchRow.position.is_not(None), is_over())
        .order_by(MatchRow.position, MatchRow.started_at, MatchRow.id)
    ).all()  # fmt: skip
    planned = (progress.enrolment.plan or {}).get("matches", [])
    reported = _reported(session, progress.enrolment.id)
    own_points = progress.design.pay.bonus.of == "own points" and OBJECTIVE in find_game(progress.design.game).fields
    for row in rows:
        points = (row.utility_0, row.utility_1)[row.seat]
        if own_points:
            points = ((row.body or {}).get("facts", {}).get("scores") or (0, 0))[row.seat]
        broken_off = row.reason == ABORTED or points is None
        left_so = row.reason == RESIGNED and row.id in reported
        condition = planned[row.position]["condition"]
        yield PlayedMatch(row.id, condition, None if broken_off else exact(points), left_so)


def _reported(session: Session, enrolment_id: int) -> set[str]:
    """The matches in which a person reported a problem."""
    reports = select(StudyEvent.body).where(StudyEvent.enrolment_id == enrolment_id, StudyEvent.kind == REPORT)
    return {body["match"] for body in session.scalars(reports) if "match" in body}


def _signs_of_life(session: Session, enrolment: Enrolment, ending: EndingName) -> Iterator[datetime]:
    """The times of events in an enrolment, from its beginning to its end.

    An inactive person was there until their last step or the last move of their matches, not until the inactivity was
    noticed.
    """
    end = enrolment.ended_at or datetime.now(UTC)
    yield enrolment.enrolled_at
    steps = select(StudyEvent.at).where(StudyEvent.enrolment_id == enrolment.id)
    moves = select(EventRow.at).join(SeatRow, SeatRow.match_id == EventRow.match_id)
    moves = moves.where(SeatRow.enrolment_id == enrolment.id)
    if ending == INACTIVE:
        steps, moves = steps.where(StudyEvent.kind != ENDING), moves.where(EventRow.kind.not_in(_ENDS))
    else:
        yield end
    for statement in (steps, moves):
        for at in session.scalars(statement):
            yield min(max(at, enrolment.enrolled_at), end)
