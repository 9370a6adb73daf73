"""`flask study pay`: what people are owed, and the batches that pay them. `app/cli/study.py` puts it into its group."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import click
from flask.cli import with_appcontext
from sqlalchemy.orm import Session

from app.cli.base import Command, ensure_database, print_json
from app.errors import Invalid, Verbatim
from app.extensions import db, transact
from app.files import replace_file
from app.models import Wave
from app.studies import batches, payments
from app.studies.pay_doubts import IN_PART, NO_SUBMISSION, PAID_TWICE, WOULD_PAY_TWICE, pay_doubts
from app.studies.waves import find_wave
from app.validation import whole_number

_BY = "command line"
_MOST_BATCHES = 10**6

Done = Mapping[str, Any]


@click.command("pay", cls=Command)
@click.argument("reference", metavar="STUDY:WAVE")
@click.argument("action", metavar="[draft|file|uploaded|confirmed|discard|adjust]", default="")
@click.argument("what", metavar="[BATCH|PARTICIPANT]", default="")
@click.option("--amount", metavar="AMOUNT", help="Of an adjustment: 1.50, or -0.25 to take away what is not paid yet.")
@click.option("--reason", metavar="TEXT", help="Why it is adjusted.")
@click.option("--out", metavar="FILE", type=Path, help="Where the file of a batch is written.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_appcontext
def pay(
    reference: str, action: str, what: str, amount: str | None, reason: str | None, out: Path | None, as_json: bool
) -> None:
    """Show what is owed in a wave and its batches; or make, write, or move on a batch; or adjust a payment.

    \b
    flask study pay STUDY:WAVE                         what the next batch pays, and all batches
    flask study pay STUDY:WAVE draft                   put all that is owed into new batches
    flask study pay STUDY:WAVE file 1 --out bonus.txt  write the file of batch 1, the same bytes each time
    flask study pay STUDY:WAVE uploaded 1              the recruiter has it; it cannot be discarded any more
    flask study pay STUDY:WAVE confirmed 1             the recruiter has paid it
    flask study pay STUDY:WAVE discard 1               take a draft back
    flask study pay STUDY:WAVE adjust P0042 --amount 1.50 --reason "The page did not load"
    """
    ensure_database()
    _check(action, what, amount=amount, reason=reason, out=out)

    def act(session: Session) -> Done:
        wave = find_wave(session, reference)
        if action == "adjust":
            return _adjust(session, wave, what, amount or "", reason or "")
        if action == "draft":
            return _draft(session, wave)
        return _of_batch(session, wave, action, what, out) if action else _shown(session, wave)

    told = transact(db.engine)(act)  # people who end at the same moment may be faster; then it is done again
    if as_json:
        print_json(told["json"])
    else:
        click.echo(told["text"])


_NEEDS: Mapping[str, tuple[str, ...]] = {
    "": (), "draft": (), "file": ("what", "out"), "uploaded": ("what",), "confirmed": ("what",), "discard": ("what",),
    "adjust": ("what", "amount", "reason"),
}  # fmt: skip
_CALLED = {"what": "batch or participant", "amount": "--amount", "reason": "--reason", "out": "--out"}


_DOUBTS: Mapping[str, str] = {
    NO_SUBMISSION: "the recruiter has named no submission, so that approving may not pay the base",
    PAID_TWICE: "the recruiter has paid the submission, and the base is in a batch as well",
    WOULD_PAY_TWICE: "the recruiter has paid the submission, and the next batch would pay the base as well",
    IN_PART: "the recruiter has paid another amount than the base",
}


def _check(action: str, what: str, **options: object) -> None:
    """Raises Invalid for an action that is none, or for what it does not take or does not get."""
    if action not in _NEEDS:
        raise Invalid("action", expected=", ".join(filter(None, _NEEDS)), got=action)
    for name, given in {"what": what or None, **options}.items():
        if (given is not None) != (name in _NEEDS[action]):
            expected = f"{'one' if name in _NEEDS[action] else 'none'} with {action or 'no action'}"
            raise Invalid(_CALLED[name], expected=expected, got=Verbatim("none" if given is None else given))


def _shown(session: Session, wave: Wave) -> Done:
    payments.settle_all(session, wave)
    owed, found, doubts = batches.due(session, wave), batches.batches_of(session, wave), pay_doubts(session, wave)
    return {
        "json": {
            "owed": [
                {"participant": each.code, "ending": each.ending, "amount": str(each.amount), "currency": each.currency}
                for each in owed
            ],
            "batches": [_described(each) for each in found],
            "look_at": [{"participant": each.code, "why": each.kind, "base": str(each.amount)} for each in doubts],
        },
        "text": "\n".join(
            [
                *(f"{each.code}  {each.ending:<12} {each.amount:>9} {each.currency}" for each in owed),
                f"The next batch pays {_people(len(owed))}, {sum((each.amount for each in owed), Decimal('0.00'))}.",
                *map(_line, found),
                *(f"Look at {each.code}: {_DOUBTS[each.kind]}, {each.amount}." for each in doubts),
            ]
        ),
    }


def _draft(session: Session, wave: Wave) -> Done:
    numbers = {batch.number for batch in batches.draft(session, wave, _BY)}
    found = [each for each in batches.batches_of(session, wave) if each.batch.number in numbers]
    return {"json": [_described(each) for each in found], "text": "\n".join(map(_line, found))}


def _of_batch(session: Session, wave: Wave, action: str, what: str, out: Path | None) -> Done:
    batch = batches.find_batch(session, wave, whole_number(what, "batch", 1, _MOST_BATCHES))
    if out is not None:
        file = batches.batch_file(session, batch)
        _write(out, file.content)
        return {"json": {"file": str(out), "name": file.name}, "text": f"Wrote batch {batch.number} to {out}."}
    number, status = batch.number, action
    if action == "discard":
        status = "discarded"
        batches.discard(session, batch, _BY)
    else:
        batches.mark(session, batch, action, _BY)
    return {"json": {"batch": number, "status": status}, "text": f"Batch {number} is {status}."}


def _adjust(session: Session, wave: Wave, code: str, amount: str, reason: str) -> Done:
    try:
        exact = Decimal(amount)
    except InvalidOperation:
        raise Invalid("--amount", expected="an amount such as 1.50 or -0.25", got=amount) from None
    row = payments.adjust(session, payments.find_way_by_code(session, wave, code), exact, reason, _BY)
    return {
        "json": {"participant": code, "key": row.key, "amount": str(row.amount), "currency": row.currency},
        "text": f"{code}: {row.key}, {row.amount} {row.currency}.",
    }


def _described(listed: batches.ListedBatch) -> Done:
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


def _line(listed: batches.ListedBatch) -> str:
    batch = listed.batch
    return f"Batch {batch.number} ({batch.format}): {batch.status}, {_people(listed.people)}, {listed.amount}."


def _people(count: int) -> str:
    return f"{count} {'person' if count == 1 else 'people'}"


def _write(path: Path, content: bytes) -> None:
    try:
        replace_file(path.resolve(), [content], private=True)
    except OSError as error:
        raise Invalid(
            "--out", expected="a file that can be written", got=Verbatim(f"{path} ({error.strerror})")
        ) from None
