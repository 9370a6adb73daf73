"""`flask study pay`: what people are owed, and the batches that pay them. `app/cli/study.py` adds it to its group."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from sqlalchemy.orm import Session

from app.cli.base import Command, counted, ensure_database, json_option, print_result
from app.cli.study_reports import described, report_line
from app.core.errors import Invalid, Verbatim
from app.core.extensions import db, transact
from app.core.files import replace_file
from app.core.typed_numbers import read_amount
from app.core.validation import whole_number
from app.models import Payment, Wave
from app.studies import batches, payments
from app.studies.amounts import APPROVING
from app.studies.due import due
from app.studies.monitor.inbox import inbox
from app.studies.monitor.words import DOUBTS
from app.studies.pay_doubts import PayDoubt, decide, held_back, pay_doubts
from app.studies.reports import NEW
from app.studies.visits import last_table
from app.studies.waves import find_wave

_BY = "command line"
_MOST_BATCHES = _MOST_ADJUSTMENTS = 10**6

Done = Mapping[str, Any]


@click.command("pay", cls=Command)
@click.argument("reference", metavar="STUDY:WAVE")
@click.argument("action", metavar="[draft|file|uploaded|confirmed|discard|adjust|reverse|keep|leave-out]", default="")
@click.argument("what", metavar="[BATCH|PARTICIPANT]", default="")
@click.option("--amount", metavar="AMOUNT", help="Of an adjustment: 1.50, or -0.25 to take away what is not paid yet.")
@click.option(
    "--reason", metavar="TEXT", help="Why it is adjusted, reversed or decided, or drafted in spite of new reports."
)
@click.option("--adjustment", metavar="N", help="The number of the adjustment that is reversed.")
@click.option("--over-cap", metavar="TEXT", help="Why an adjustment goes over the spend cap; without it, it may not.")
@click.option("--out", metavar="FILE", type=Path, help="Where the file of a batch is written.")
@json_option
def pay(
    reference: str, action: str, what: str, amount: str | None, reason: str | None, adjustment: str | None,
    over_cap: str | None, out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Show what is owed in a wave and its batches; or make, write, or move on a batch; or adjust a payment.

    Whoever the recruiter returned, rejected or has paid already, or who is in no table of it, is in no batch before
    `keep`. While reports of the wave are new, a draft takes a --reason.

    What may follow STUDY:WAVE, which alone shows what the next batch pays, and all batches:

    \b
    draft                   put all that is owed into new batches
    file 1 --out bonus.txt  write the file of batch 1, the same bytes each time
    uploaded 1              the recruiter has it; it cannot be discarded any more
    confirmed 1             the recruiter has paid it
    discard 1               take a draft back
    adjust P0042 --amount 1.50 --reason "The page did not load"
    reverse P0042 --adjustment 1 --reason "Meant for another person"
    keep P0042 --reason "Returned it by mistake"
    leave-out P0042 --reason "Paid by hand"
    """
    ensure_database()
    _check_action(action, what, amount=amount, reason=reason, adjustment=adjustment, over_cap=over_cap, out=out)

    def act(session: Session) -> Done:
        wave = find_wave(session, reference)
        if action == "adjust":
            return _adjust(session, wave, what, amount or "", reason or "", over_cap or "")
        if action == "reverse":
            return _reverse(session, wave, what, adjustment or "", reason or "", over_cap or "")
        if action in _DECISIONS:
            return _decide(session, wave, what, action, reason or "")
        if action == "draft":
            return _draft_batches(session, wave, reason or "")
        return _of_batch(session, wave, action, what, out) if action else _wave_pay(session, wave)

    told = transact(db.engine)(act)  # retried if people who finish at the same moment come first
    print_result(as_json, told["json"], told["text"])


_NEEDS: Mapping[str, tuple[str, ...]] = {
    "": (), "draft": (), "file": ("what", "out"), "uploaded": ("what",), "confirmed": ("what",), "discard": ("what",),
    "adjust": ("what", "amount", "reason"), "reverse": ("what", "adjustment", "reason"),
    "keep": ("what", "reason"), "leave-out": ("what", "reason"),
}  # fmt: skip
_MAY: Mapping[str, tuple[str, ...]] = {"draft": ("reason",), "adjust": ("over_cap",), "reverse": ("over_cap",)}
_CALLED = {
    "what": "batch or participant", "amount": "--amount", "reason": "--reason", "out": "--out",
    "adjustment": "--adjustment", "over_cap": "--over-cap",
}  # fmt: skip
_DECISIONS = {"keep": True, "leave-out": False}


def _doubt(each: PayDoubt) -> str:
    held = "left out until it is decided (keep)" if each.holds and each.can_be_decided else ""
    held = "left out" if each.holds and not held else "paid all the same, as decided" if each.kept else held
    return f"Look at {each.code}: {DOUBTS[each.kind]}, {each.amount}{f'; {held}' if held else ''}."


def _check_action(action: str, what: str, **options: object) -> None:
    """Raises Invalid for an unknown action, and for options that it does not take or that are missing."""
    if action not in _NEEDS:
        raise Invalid("action", expected=", ".join(filter(None, _NEEDS)), got=action)
    for name, given in {"what": what or None, **options}.items():
        if given is not None and name in _MAY.get(action, ()):
            continue
        if (given is not None) != (name in _NEEDS[action]):
            expected = f"{'one' if name in _NEEDS[action] else 'none'} with {action or 'no action'}"
            raise Invalid(_CALLED[name], expected=expected, got=Verbatim("none" if given is None else given))


def _wave_pay(session: Session, wave: Wave) -> Done:
    payments.settle_all(session, wave)
    found, doubts, everybody = batches.batches_of(session, wave), pay_doubts(session, wave), due(session, wave)
    held = held_back(session, wave, everybody)
    owed = [each for each in everybody if each.enrolment_id not in held]
    people, new_reports = counted(len(owed), "person", "people"), inbox(session, wave.id, state=NEW, most=None)
    table = last_table(session, wave)
    return {
        "json": {
            "table_taken": None if table is None else table.isoformat(),
            "owed": [
                {"participant": each.code, "ending": each.ending, "amount": str(each.amount), "currency": each.currency}
                for each in owed
            ],
            "batches": [_batch_json(each) for each in found],
            "new_reports": [described(each) for each in new_reports],
            "look_at": [
                {"participant": each.code, "why": each.kind, "base": str(each.amount), "left_out": each.holds}
                for each in doubts
            ],
        },
        "text": "\n".join(
            [
                *(f"{each.code}  {each.ending:<12} {each.amount:>9} {each.currency}" for each in owed),
                f"The next batch pays {people}, {sum((each.amount for each in owed), Decimal('0.00'))}.",
                *_recruiter_table_age(session, wave),
                *map(_batch_line, found),
                *(f"New report: {report_line(each)}" for each in new_reports),
                *map(_doubt, doubts),
            ]
        ),
    }


def _recruiter_table_age(session: Session, wave: Wave) -> Iterator[str]:
    """The age of the last table from a recruiter that approves submissions."""
    if payments.recruiter_of(wave) not in APPROVING:
        return
    at = last_table(session, wave)
    if at is None:
        yield "No table from the recruiter has been imported (flask study submissions). Who is in no table is left out."
    else:
        hours = int((datetime.now(UTC) - at).total_seconds() // 3600)
        age = "less than an hour ago" if hours < 1 else f"{counted(hours, 'hour')} ago"
        yield f"The recruiter's last table was taken {age} ({at:%Y-%m-%d %H:%M} UTC); who is in none is left out."


def _draft_batches(session: Session, wave: Wave, reason: str) -> Done:
    numbers = {batch.number for batch in batches.draft(session, wave, _BY, set_aside=reason)}
    found = [each for each in batches.batches_of(session, wave) if each.batch.number in numbers]
    left_out = held_back(session, wave, due(session, wave)).values()
    lines = [*map(_batch_line, found), *_recruiter_table_age(session, wave), *map(_doubt, left_out)]
    return {
        "json": [_batch_json(each) for each in found],
        "text": "\n".join(lines),
    }


def _of_batch(session: Session, wave: Wave, action: str, what: str, out: Path | None) -> Done:
    batch = batches.find_batch(session, wave, whole_number(what, "batch", 1, _MOST_BATCHES))
    if out is not None:
        file = batches.batch_file(session, batch)
        _write_private(out, file.content)
        return {"json": {"file": str(out), "name": file.name}, "text": f"Wrote batch {batch.number} to {out}."}
    number, status = batch.number, action
    if action == "discard":
        status = "discarded"
        batches.discard(session, batch, _BY)
    else:
        batches.mark(session, batch, action, _BY)
    return {"json": {"batch": number, "status": status}, "text": f"Batch {number} is {status}."}


def _adjust(session: Session, wave: Wave, code: str, amount: str, reason: str, over_cap: str) -> Done:
    exact = read_amount(amount, "--amount", signed=True, such="1.50 or -0.25")
    progress = payments.find_progress_by_code(session, wave, code)
    return _by_hand(code, payments.adjust(session, progress, exact, reason, _BY, over_cap=over_cap))


def _reverse(session: Session, wave: Wave, code: str, number: str, reason: str, over_cap: str) -> Done:
    which = whole_number(number, "--adjustment", 1, _MOST_ADJUSTMENTS)
    progress = payments.find_progress_by_code(session, wave, code)
    return _by_hand(code, payments.reverse(session, progress, which, reason, _BY, over_cap=over_cap))


def _by_hand(code: str, row: Payment) -> Done:
    return {
        "json": {"participant": code, "key": row.key, "amount": str(row.amount), "currency": row.currency},
        "text": f"{code}: {row.key}, {row.amount} {row.currency}.",
    }


def _decide(session: Session, wave: Wave, code: str, action: str, reason: str) -> Done:
    keep = _DECISIONS[action]
    found = decide(session, payments.find_progress_by_code(session, wave, code), keep=keep, reason=reason, by=_BY)
    kinds = [each.kind for each in found]
    done = "paid all the same" if keep else "left out"
    return {
        "json": {"participant": code, "doubts": kinds, "keep": keep},
        "text": f"{code} is {done} ({', '.join(kinds)}).",
    }


def _batch_json(listed: batches.ListedBatch) -> Done:
    batch = listed.batch
    times = {name: getattr(batch, name) for name in ("created_at", "uploaded_at", "confirmed_at")}
    return {
        "batch": batch.number,
        "format": batch.format,
        "status": batch.status,
        "people": listed.people,
        "amount": str(listed.amount),
        **{name: None if at is None else at.isoformat() for name, at in times.items()},
    }


def _batch_line(listed: batches.ListedBatch) -> str:
    batch, people = listed.batch, counted(listed.people, "person", "people")
    return f"Batch {batch.number} ({batch.format}): {batch.status}, {people}, {listed.amount}."


def _write_private(path: Path, content: bytes) -> None:
    try:
        replace_file(path.resolve(), [content], private=True)
    except OSError as error:
        raise Invalid(
            "--out", expected="a file that can be written", got=Verbatim(f"{path} ({error.strerror})")
        ) from None
