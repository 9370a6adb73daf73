"""Charges for trainings at a vendor.

A training run by the vendor is checked against budgets and counted by estimate before it starts, and settled when it is
over. A training run by a process here, on a vendor's weights, is counted as it proceeds. Nothing here commits.
"""

from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.core.config import Settings
from app.finetuning.config import LOCAL
from app.finetuning.job import TRAINING
from app.jobs import states
from app.jobs.spending import BudgetReached, budget_of, dollars, reached
from app.models import LanguageModel, TrainingCharge, TrainingJob
from app.registry.spending import spending_limit, spending_of_period
from app.registry.training_charges import price_of_training, spent_on_trainings


class TrainingEstimate(NamedTuple):
    """The approximate number of tokens that a training will train in all its epochs.

    `price` is in US dollars per million tokens; None: unknown.
    """

    tokens: int
    epochs: int
    price: float | None

    @property
    def cost(self) -> float | None:
        """The cost in US dollars, if the price is known."""
        return None if self.price is None else self.price * self.tokens / 1e6

    @property
    def words(self) -> str:
        """For example: about 1200 trained tokens in 3 epochs, $0.0036 at $3.00 a million."""
        epochs = f"{self.epochs} epoch{'' if self.epochs == 1 else 's'}"
        priced = "" if self.price is None else f", {dollars(self.cost or 0)} at {dollars(self.price)} a million"
        return f"about {self.tokens} trained tokens in {epochs}{priced}"


def begin(
    session: Session, job_id: int, owner: str, settings: Settings, token: str, expected: TrainingEstimate
) -> bool:
    """Count a training by its estimate, and store the token with which it starts; once for each token.

    False if the owner has lost the job. Raises BudgetReached if it would cost more than is left.
    """
    row = TRAINING.locked(session, job_id, owner)
    if row is None or row.status not in states.LIVE:
        return False
    if session.get(TrainingCharge, token) is None:
        _check_budgets(session, settings, row, expected)
        session.add(
            TrainingCharge(
                token=token,
                job_id=job_id,
                at=datetime.now(UTC),
                tokens=expected.tokens,
                is_estimate=True,
                price=expected.price,
            )
        )
    row.remote_token = token
    session.flush()
    return True


def settle_charge(session: Session, job_id: int, owner: str, trained_tokens: int | None, *, made: bool) -> None:
    """Settle a training that is over, or never started: the vendor's number of trained tokens replaces the estimate.

    Without that number, the estimate stays if a model was `made`; otherwise the training cost nothing.
    """
    row = TRAINING.locked(session, job_id, owner)
    if row is None or row.remote_token is None:
        return
    charge = session.get(TrainingCharge, row.remote_token)
    if trained_tokens is not None:
        if charge is None:  # begun by an earlier release
            price = price_of_training(session.get_one(LanguageModel, row.base_id))
            charge = TrainingCharge(token=row.remote_token, job_id=job_id, price=price)
            session.add(charge)
        charge.tokens, charge.is_estimate, charge.at = trained_tokens, False, datetime.now(UTC)
    elif charge is not None and charge.is_estimate and not made:
        session.delete(charge)
    session.flush()


def count_trained(session: Session, job_id: int, owner: str, settings: Settings) -> str | None:
    """Count the tokens that a process has trained at a vendor so far; one line why it must stop, if it must."""
    row = TRAINING.locked(session, job_id, owner)
    if row is None:
        return None
    price = _store_trained(session, row).price
    spent = spent_on_trainings(session, TrainingCharge.job_id == row.id)
    return reached(budget_of(row, settings), spent) or (None if price == 0 else spending_limit(session, settings))


def settle_trained(session: Session, row: TrainingJob) -> None:
    """Settle a training whose process has ended with a model."""
    if row.backend != LOCAL and row.remote_token is None:
        _store_trained(session, row)


def _store_trained(session: Session, row: TrainingJob) -> TrainingCharge:
    """Store the tokens that a job's process has trained, which count at the time of the latest step."""
    token, now = f"job-{row.id}", datetime.now(UTC)
    charge = session.get(TrainingCharge, token)
    if charge is None:
        price = price_of_training(session.get(LanguageModel, row.base_id or 0))
        charge = TrainingCharge(token=token, job_id=row.id, at=now, tokens=0, is_estimate=False, price=price)
        session.add(charge)
    if charge.tokens != (row.trained_tokens or 0):
        charge.tokens, charge.at = row.trained_tokens or 0, now
    session.flush()
    return charge


def uncounted(settings: Settings, row: TrainingJob, base: LanguageModel, expected: TrainingEstimate) -> str | None:
    """A message if budgets cannot count a training because its price is unknown; None if they can."""
    names = [name for name in ("JOB_BUDGET_USD", "SPENDING_LIMIT_USD") if getattr(settings, name)]
    if expected.price is not None or row.budget_usd or not names:
        return None
    return f"{' and '.join(names)} cannot count this training: {_unpriced(base)}"


def _check_budgets(session: Session, settings: Settings, row: TrainingJob, expected: TrainingEstimate) -> None:
    """Raises BudgetReached, for the job's own budget first."""
    budget, base = budget_of(row, settings), session.get_one(LanguageModel, row.base_id)
    before = spent_on_trainings(session, TrainingCharge.job_id == row.id)
    cost = expected.cost
    if row.budget_usd and cost is None:
        raise BudgetReached(f"budget of {dollars(row.budget_usd)} cannot be kept: {_unpriced(base)}")
    if budget.usd is not None and cost and before.usd + cost > budget.usd:
        raise _exceeded(dollars(budget.usd), expected, dollars(before.usd) if before.usd else "")
    if budget.tokens is not None and before.tokens + expected.tokens > budget.tokens:
        raise _exceeded(f"{budget.tokens} tokens", expected, f"{before.tokens} tokens" if before.tokens else "")
    period = spending_of_period(session, settings)
    if period is None or cost == 0:
        return
    if period.line is not None:
        raise BudgetReached(period.line)
    if cost is not None and period.spent + cost > period.most:
        raise BudgetReached(
            f"budget of {dollars(period.most)} a {period.period} of this installation has"
            f" {dollars(period.most - period.spent)} left, and the training would take {expected.words};"
            f" {period.remedy}, and resume"
        )


def _exceeded(budget: str, expected: TrainingEstimate, before: str) -> BudgetReached:
    tried = f", after {before} of earlier tries" if before else ""
    return BudgetReached(
        f"budget of {budget} would be exceeded: the training would take {expected.words}{tried}; resume with a higher"
        " budget"
    )


def _unpriced(base: LanguageModel) -> str:
    return (
        f"the price of trained tokens of {base.name} is unknown; `flask model edit {base.name} --price-training USD`"
        " says it"
    )
