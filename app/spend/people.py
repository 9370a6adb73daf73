"""What people were paid or are owed, by study and day, including recruiters' fees; and the spend caps of waves.

Amounts are exact and stay in the currency of their study: nothing is converted.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple, TypeVar

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.csv_tables import Column
from app.core.errors import Phrase, Verbatim
from app.models import Enrolment, Payment, Study, Wave
from app.spend.limits import SpendingLimit
from app.studies import places, waves
from app.studies.cost import most_a_place
from app.studies.store import design_of_wave

K = TypeVar("K")
Sums = Mapping[str, Decimal]  # by currency


class PayLine(NamedTuple):
    """The amount of one payment with its recruiter's fee; a reversed payment has a second, negative line."""

    day: date  # in UTC, on which it was owed
    study_id: int
    enrolment_id: int
    currency: str
    amount: Decimal
    with_fee: Decimal


@dataclass(frozen=True)
class PeoplesPay:
    """All payments since a moment, and the names of their studies."""

    lines: Sequence[PayLine]
    studies: Mapping[int, str]

    @property
    def total(self) -> Sums:
        """With fees, by currency."""
        return self._by(lambda _line: None).get(None, {})

    def by_study(self) -> Mapping[int, Sums]:
        """With fees, by study."""
        return self._by(lambda line: line.study_id)

    def by_day(self) -> Mapping[date, Sums]:
        """With fees, by day."""
        return self._by(lambda line: line.day)

    def people_of(self, study_id: int) -> int:
        """How many people of a study have a payment."""
        return len({line.enrolment_id for line in self.lines if line.study_id == study_id})

    def _by(self, key: Callable[[PayLine], K]) -> Mapping[K, Sums]:
        found: dict[K, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
        for line in self.lines:
            found[key(line)][line.currency] += line.with_fee
        return found


def read_pay(session: Session, since: datetime | None) -> PeoplesPay:
    """The payments since a moment, or all; bots are paid nothing."""
    chosen = (
        select(Payment, Wave)
        .join(Enrolment, Enrolment.id == Payment.enrolment_id)
        .join(Wave, Wave.id == Enrolment.wave_id)
        .where(Wave.rehearsal.is_(False))
        .order_by(Payment.id)
    )
    if since is not None:
        chosen = chosen.where(Payment.created_at >= since)
    fees: dict[int, Decimal] = {}
    lines = []
    for payment, wave in session.execute(chosen):
        if wave.id not in fees:
            fees[wave.id] = waves.settings_of(wave).fee
        lines.append(
            PayLine(
                payment.created_at.date(), wave.study_id, payment.enrolment_id, payment.currency, payment.amount,
                payment.amount * (1 + fees[wave.id]),
            )
        )  # fmt: skip
    numbers = {line.study_id for line in lines}
    names = dict(session.execute(select(Study.id, Study.name).where(Study.id.in_(numbers))).all())
    return PeoplesPay(lines, names)


def in_words(sums: Sums) -> str:
    """Amounts by currency: "12.50 EUR, 3.00 USD"; empty if there are none."""
    return ", ".join(f"{amount:.2f} {currency}" for currency, amount in sorted(sums.items()))


def wave_caps(session: Session) -> Iterator[SpendingLimit]:
    """The spend caps of all open or paused waves, with the amount owed and reserved under each."""
    open_ = select(Wave, Study.name).join(Study, Study.id == Wave.study_id)
    open_ = open_.where(Wave.status.in_((waves.OPEN, waves.PAUSED)), Wave.rehearsal.is_(False)).order_by(Wave.id)
    for wave, study in session.execute(open_):
        try:
            file, design = waves.settings_of(wave), design_of_wave(session, wave)
        except ValidationError:  # from an earlier version, which can no longer be read
            continue
        committed, most = places.committed(session, wave), most_a_place(design) * (1 + file.fee)
        left = file.most_spent - committed
        people = int(left / most) if most > 0 else None
        if left < most:
            reached = Phrase("reached: no room for one more person")
        elif people is None:
            reached = Phrase("not reached: nobody is paid")
        else:
            reached = Phrase("not before %(count)s more people, each at the highest pay", count=people)
        yield SpendingLimit(
            Phrase("wave %(name)s of study %(study)s", name=Verbatim(wave.name), study=Verbatim(study)),
            float(committed),
            float(file.most_spent),
            False,
            reached,
            Phrase("nobody new gets in; people already in go on and are paid"),
            "wave",
            wave.id,
            design.pay.currency,
        )


def pay_columns(pay: PeoplesPay) -> Sequence[Column]:
    """The columns of a CSV whose rows are `pay.lines`."""
    return (
        Column("day", "text", "day in UTC on which it was owed", "", lambda line: line.day.isoformat()),
        Column("study", "text", "name of the study", "", lambda line: pay.studies[line.study_id]),
        Column("currency", "text", "currency of the study", ""),
        Column("amount", "number", "what the person is paid", "", lambda line: str(line.amount)),
        Column("with_fee", "number", "the same with the recruiter\u2019s fee", "", lambda line: f"{line.with_fee:.4f}"),
    )
