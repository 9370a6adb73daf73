"""The budget of a job for model calls, and the gate that its calls pass.

When a budget is reached, no further call starts, running calls are awaited and kept, and the job fails with a line that
says so. Resumed with a higher budget, it continues.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple

from app.core.config import Settings
from app.core.errors import AppError
from app.jobs.call_costs import FREE, Prices
from app.jobs.spec import JobBudget

_LIMIT_EVERY = 2.0  # seconds between two looks at everybody's spending
_MOST_SECONDS = 5.0  # that a call waits for earlier calls to be stored


class BudgetReached(AppError):
    """No further call may be made."""

    code = "budget_reached"


class Spent(NamedTuple):
    """The cost of calls in US dollars, as far as prices are known, and the tokens of their prompts and answers.

    `estimated` is the number of those tokens that servers did not count.
    """

    usd: float = 0.0
    tokens: int = 0
    estimated: int = 0

    def __add__(self, other: "Spent") -> "Spent":  # type: ignore[override]
        return Spent(self.usd + other.usd, self.tokens + other.tokens, self.estimated + other.estimated)

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(self.usd - other.usd, self.tokens - other.tokens, self.estimated - other.estimated)


SPENT = ("cost", "prompt_tokens", "completion_tokens", "estimated_tokens")  # the columns with the cost of calls


def spent_on(counts: Mapping[str, Any]) -> Spent:
    """The spending of calls, from the counts named in SPENT; a missing or unknown count is 0."""
    cost, *tokens = (counts.get(name) or 0 for name in SPENT)
    return Spent(float(cost), sum(tokens), tokens[-1])


def spent_by(row: Any) -> Spent:
    """The spending of a call, or of all calls of a job, of a kind that counts them on its rows."""
    return spent_on({name: getattr(row, name) for name in SPENT})


def own_budget(row: Any) -> JobBudget:
    """The budget that a job was given."""
    return JobBudget(usd=row.budget_usd, tokens=row.budget_tokens)


def budget_of(row: Any, settings: Settings) -> JobBudget:
    """A job's budget: its own, or that of the settings."""
    return with_usual_budget(own_budget(row), settings)


def with_usual_budget(budget: JobBudget, settings: Settings) -> JobBudget:
    """The budget, with the limit of the settings if it has none in money."""
    return budget.model_copy(update={"usd": budget.usd or settings.JOB_BUDGET_USD or None})


def stopped_by_budget(row: Any) -> bool:
    """Whether a budget stopped a job, its own or another: all their error lines begin alike."""
    return (row.error or "").startswith("budget of")


def reached(budget: JobBudget, spent: Spent) -> str | None:
    """Which budget was reached, as a line for people; None if neither was."""
    if budget.usd is not None and spent.usd >= budget.usd:
        return f"budget of {dollars(budget.usd)} reached: {dollars(spent.usd)} spent; resume with a higher one"
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        estimated = f", {spent.estimated} of them by estimate" if spent.estimated else ""
        return f"budget of {budget.tokens} tokens reached: {spent.tokens} spent{estimated}; resume with a higher one"
    return None


def dollars(usd: float) -> str:
    """An amount with cents, and with more digits if it is less than a dollar."""
    whole, _, parts = f"{usd:.{2 if usd >= 1 else 6}f}".partition(".")
    return f"${whole}.{parts.rstrip('0').ljust(2, '0')}"


class SpendingGate:
    """Admits a job's calls in one process, on its event loop, until the budget is reached."""

    def __init__(
        self,
        budget: JobBudget,
        stored: Spent,
        latest: Callable[[], tuple[JobBudget, Spent]] | None = None,
        limit: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`stored` is the spending of earlier calls.

        `latest` rereads budget and spending before each call, for jobs that several workers run together. Such a worker
        holds `books` while it stores calls, and then reports their spending with `wrote`. It starts no call before its
        earlier ones are stored, so that no other worker overlooks them. `limit` gives the reason why paid models may
        not be called, if there is one; it is checked every few seconds.
        """
        self.under_way = 0
        self.books = asyncio.Lock()
        self._budget = budget
        self._stored = stored
        self._latest = latest
        self._limit = limit
        self._limit_reached: str | None = None
        self._limit_due = 0.0
        self._looking = asyncio.Lock()
        self._own = Spent()  # this process's spending that is not in `_stored`
        self._made = self._written = 0  # this process's calls, and how many of them are stored
        self._wrote = asyncio.Event()
        self._one_ended = asyncio.Event()

    @contextlib.asynccontextmanager
    async def call(self, prices: Prices | None = None) -> AsyncIterator[None]:
        """A context for a call of a model with these prices. Raises BudgetReached, once no call is running any more."""
        await self._read_latest_budget()
        limit = None if prices == FREE else await self._look_at_limit()
        if self.is_reached or limit is not None:
            while self.under_way:
                self._one_ended.clear()
                await self._one_ended.wait()
            raise BudgetReached(reached(self._budget, self._stored + self._own) or limit or "")
        self.under_way += 1
        try:
            yield
        finally:
            self.under_way -= 1
            self._one_ended.set()

    @property
    def is_reached(self) -> bool:
        """Whether the budget is reached, so that no further call may start."""
        return reached(self._budget, self._stored + self._own) is not None

    def spend(self, spent: Spent) -> None:
        """Count the spending of a call."""
        self._own += spent
        self._made += 1

    def wrote(self, spent: Spent, calls: int) -> None:
        """Mark so many calls with this spending as stored, so that `latest` includes them."""
        self._own -= spent
        self._written += calls
        self._wrote.set()

    async def _read_latest_budget(self) -> None:
        if self._latest is None or self._budget == JobBudget():
            return
        made = self._made
        with contextlib.suppress(TimeoutError):  # calls of a job that another worker takes meanwhile are never written
            async with asyncio.timeout(_MOST_SECONDS):
                while self._written < made:
                    self._wrote.clear()
                    await self._wrote.wait()
        async with self.books:
            self._budget, self._stored = await asyncio.to_thread(self._latest)

    async def _look_at_limit(self) -> str | None:
        async with self._looking:
            now = asyncio.get_running_loop().time()
            if now >= self._limit_due:
                self._limit_reached = await asyncio.to_thread(self._limit)
                self._limit_due = now + _LIMIT_EVERY
            return self._limit_reached
