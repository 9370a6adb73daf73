"""The spending limits in effect, and when each will be reached at the present pace."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import Phrase
from app.finetuning.job import TRAINING
from app.job_kinds import kinds_with_live_jobs
from app.jobs import states
from app.jobs.chained import ChainedKind
from app.jobs.kind import JobKind
from app.jobs.listing import named
from app.jobs.page import page_of
from app.jobs.spending import SPENT, Spent, budget_of, dollars, spent_by
from app.models import TrainingCharge
from app.registry.spending import InstallationSpending, spending_of_period
from app.registry.training_charges import spent_on_trainings
from app.spend.figures import WEEK, Spend, read_spend_by_day_and_model

WHOLE_DAYS = 7  # their mean is the pace of the installation


class SpendingLimit(NamedTuple):
    """A limit in tokens, in US dollars or, for the spend cap of a wave, in the currency of its study.

    It holds what the limit applies to, what was spent, when it will be reached, and what stops then.

    `kind` and `number` are those of a job or a wave; the limit of the installation has none.
    """

    title: Phrase
    spent: float
    most: float
    in_tokens: bool
    reached: Phrase
    effect: Phrase
    kind: str | None = None
    number: int | None = None
    currency: str | None = None  # of a wave's spend cap; None: US dollars

    @property
    def percent(self) -> int:
        return min(100, int(100 * self.spent / self.most))


def pace_of(session: Session, found: Spend, period: str) -> float:
    """US dollars per day: the mean of the seven whole days before today. `found` is the spend in the period."""
    week = found.by_day_and_model if period == WEEK else read_spend_by_day_and_model(session, WEEK, found.until)
    today = found.until.date()
    return sum(sums.usd for (day, _), sums in week.items() if day < today) / WHOLE_DAYS


def limits(session: Session, settings: Settings, pace: float) -> list[SpendingLimit]:
    """The limit of the installation, and those of all jobs that wait or run. `pace`: US dollars per day."""
    found = []
    if (period := spending_of_period(session, settings)) is not None:
        found.append(_of_installation(period, pace))
    for kind in kinds_with_live_jobs(session):
        live = select(kind.table).where(kind.table.status.in_(states.LIVE)).order_by(kind.table.id)
        rows = [row for row in session.scalars(live) if kind.may_spend(row)]
        progress = kind.progress_of(session, rows)
        items = page_of(kind).items_of(session, rows) if rows else ()
        for row, item in zip(rows, items, strict=True):
            found += _of_job(session, settings, kind, row, named(kind, item), *progress[row.id])
    return found


def spent_on_job(session: Session, kind: JobKind[Any], row: Any) -> Spent:
    """What a job of any kind has spent, with the jobs that it has begun."""
    if isinstance(kind, ChainedKind):
        return kind.spent_by_jobs(session, row)
    if kind is TRAINING:
        return spent_on_trainings(session, TrainingCharge.job_id == row.id)
    return spent_by(row) if hasattr(kind.table, SPENT[0]) else Spent()


def _of_installation(period: InstallationSpending, pace: float) -> SpendingLimit:
    now = datetime.now(UTC)
    end = (
        (period.since + timedelta(days=32)).replace(day=1)
        if period.period == "month"
        else period.since + timedelta(days=1)
    )
    left = period.most - period.spent
    if left <= 0:
        reached = Phrase("reached")
    elif pace <= 0:
        reached = Phrase("not expected: nothing was spent in the seven whole days before today")
    elif (at := now + timedelta(days=min(left / pace, 365))) >= end:
        reached = Phrase("not before %(day)s, when the next period begins", day=f"{end:%Y-%m-%d}")
    else:
        reached = Phrase("about %(moment)s UTC", moment=f"{at:%Y-%m-%d %H:%M}")
    title = (
        Phrase("Whole installation, this month") if period.period == "month" else Phrase("Whole installation, today")
    )
    effect = Phrase(
        "jobs stop at their next call of a model behind an API, and guests cannot begin a match with one; studies and "
        "matches that people are playing continue"
    )
    return SpendingLimit(title, period.spent, period.most, False, reached, effect)


def _of_job(
    session: Session, settings: Settings, kind: JobKind[Any], row: Any, title: Phrase, done: int, of: int | None
) -> Iterator[SpendingLimit]:
    budget, spent = budget_of(row, settings), spent_on_job(session, kind, row)
    effect = Phrase("it stops, keeps what it has made, and can be resumed with a higher budget")
    for most, so_far, in_tokens in ((budget.usd, spent.usd, False), (budget.tokens, spent.tokens, True)):
        if most is None:
            continue
        expected = so_far * of / done if done and of else None
        if so_far >= most:
            reached = Phrase("reached")
        elif not expected:
            reached = Phrase("unknown: nothing is done or spent yet")
        elif expected <= most:
            whole = f"{round(expected)} tokens" if in_tokens else dollars(expected)
            reached = Phrase("not reached: about %(whole)s when it is done", whole=whole)
        else:
            place = int(most / expected * (of or 0))
            reached = Phrase("when about %(done)s of %(of)s are done", done=place, of=of)
        yield SpendingLimit(title, so_far, most, in_tokens, reached, effect, kind.name, row.id)
