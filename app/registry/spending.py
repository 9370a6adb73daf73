"""The spending of the whole installation on models in a day or a month, and its budget for that.

It includes the cost of model calls and of trainings at vendors; trainings still running count with their estimates.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Engine, case, func, select
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.errors import Conflict, Phrase
from app.core.extensions import reading
from app.jobs.call_costs import Prices, TokenCounts, cost_of
from app.jobs.spending import Spent, dollars
from app.models import GenerationRow, LanguageModel, SpendingStop, TrainingCharge
from app.registry.prices import prices_of_model
from app.registry.training_charges import spent_on_trainings


class InstallationSpending(NamedTuple):
    """The budget of the installation for a period, and the spending since its start, in US dollars."""

    most: float
    period: str
    since: datetime
    spent: float

    @property
    def line(self) -> str | None:
        """The reason, in one line for people, why no further call of a paid model may begin; None if there is none."""
        if self.spent < self.most:
            return None
        return (
            f"budget of {dollars(self.most)} a {self.period} of this installation reached: {dollars(self.spent)} spent"
            f" since {self.since:%Y-%m-%d}, UTC; {self.remedy}"
        )

    @property
    def remedy(self) -> str:
        """The remedy, in words."""
        return f"raise SPENDING_LIMIT_USD or wait for the next {self.period}"


def spending_of_period(session: Session, settings: Settings) -> InstallationSpending | None:
    """The spending in the current period; None if the installation has no budget."""
    most, now = settings.SPENDING_LIMIT_USD, datetime.now(UTC)
    if not most:
        return None
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    since = today.replace(day=1) if settings.SPENDING_PERIOD == "month" else today
    return InstallationSpending(most, settings.SPENDING_PERIOD, since, spent_since(session, since))


def open_stop(session: Session) -> SpendingStop | None:
    """The active stop of all spending, if there is one."""
    return session.scalar(select(SpendingStop).where(SpendingStop.ended_at.is_(None)).limit(1))


def spending_limit(session: Session, settings: Settings) -> str | None:
    """The reason, in one line for people, why no further call of a paid model may begin; None if there is none."""
    if (stop := open_stop(session)) is not None:
        return f"all spending was stopped by {stop.by} at {stop.at:%Y-%m-%d %H:%M} UTC; end that stop first"
    found = spending_of_period(session, settings)
    return None if found is None else found.line


def limit_reader(database: Engine, settings: Settings) -> Callable[[], str | None]:
    """A function that reads `spending_limit` with its own session."""

    def read() -> str | None:
        with reading(database) as session:
            return spending_limit(session, settings)

    return read


def check_spending(session: Session, settings: Settings, model: LanguageModel) -> None:
    """Raises Conflict for a match with a model behind an API while the budget is used up or spending is stopped."""
    if model.kind == "api" and spending_limit(session, settings) is not None:
        used_up = Phrase("a partner that costs nothing, as the budget for models is used up for now")
        stopped = Phrase("a partner that costs nothing, as calls of paid models are stopped for now")
        raise Conflict("opponent", expected=used_up if open_stop(session) is None else stopped, got=model.label)


def spent_since(session: Session, moment: datetime) -> float:
    """The cost of all calls and of trainings at vendors since then, in US dollars.

    Calls as `spent_on_calls` counts them, trainings at the prices when they began.
    """
    calls = spent_on_calls(session, GenerationRow.id >= first_since(session, moment))
    return calls.usd + spent_on_trainings(session, TrainingCharge.at >= moment).usd


def spent_on_calls(session: Session, *which: ColumnElement[bool]) -> Spent:
    """The cost of the selected calls. Calls without a stored cost are priced at today's prices in the models' rows;
    models that were removed have none.
    """
    sums = select(GenerationRow.language_model_id, *CallSums.columns())
    total = Spent()
    for number, *row in session.execute(sums.where(*which).group_by(GenerationRow.language_model_id)):
        found = CallSums.of(row)
        cost = found.cost(None if number is None else prices_of_model(session.get_one(LanguageModel, number)))
        tokens = found.prompt_tokens + found.completion_tokens + found.estimated_tokens
        total += Spent(found.stored_cost if cost is None else cost, tokens, found.estimated_tokens)
    return total


class CallSums(NamedTuple):
    """Sums over several calls: the stored costs, all tokens, and the tokens of calls without a stored cost."""

    stored_cost: float
    prompt_tokens: int
    completion_tokens: int
    estimated_tokens: int
    unpriced_estimate: int
    unpriced: TokenCounts

    @staticmethod
    def columns() -> list[ColumnElement[Any]]:
        """The columns to select from calls, in the order that `of` reads."""
        table = GenerationRow
        counted = (
            table.prompt_tokens, table.completion_tokens, table.cached_tokens, table.cache_write_tokens,
            table.reasoning_tokens,
        )  # fmt: skip
        unpriced = [func.sum(case((table.cost.is_(None), column))) for column in counted]
        estimated = [table.estimated_tokens, case((table.cost.is_(None), table.estimated_tokens))]
        return [func.sum(table.cost), *(func.sum(column) for column in (*counted[:2], *estimated)), *unpriced]

    @classmethod
    def of(cls, row: Sequence[Any]) -> "CallSums":
        cost, *tokens = (each or 0 for each in row)
        prompt, completion, estimated, unpriced_estimate, *unpriced = map(int, tokens)
        return cls(float(cost), prompt, completion, estimated, unpriced_estimate, TokenCounts(*unpriced))

    def cost(self, prices: Prices | None) -> float | None:
        """US dollars, with these prices for calls without a cost; None where there are some and prices are unknown."""
        if not any(self.unpriced):
            return None if prices is None and self.unpriced_estimate else self.stored_cost
        return None if prices is None else self.stored_cost + cost_of(prices, self.unpriced)


def first_since(session: Session, moment: datetime) -> int:
    """The number of the first call since then, by bisection: numbers rise with time, which has no index."""
    table = GenerationRow
    low = session.scalar(select(func.min(table.id))) or 0
    high = (session.scalar(select(func.max(table.id))) or 0) + 1
    while low < high:
        middle = (low + high) // 2
        at = session.scalar(select(table.at).where(table.id >= middle).order_by(table.id).limit(1))
        low, high = (middle + 1, high) if at is not None and at < moment else (low, middle)
    return low
