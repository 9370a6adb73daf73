"""The costs of trainings at vendors: by the vendor's count of trained tokens, or by estimate while running."""

from collections.abc import Iterator

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session, defer

from app.jobs.spending import Spent
from app.models import LanguageModel, TrainingCharge, TrainingJob


def price_of_training(base: LanguageModel | None) -> float | None:
    """USD per million tokens on which a vendor trains a model; None: unknown, or a training from scratch."""
    found = None if base is None else base.options.get("price_training")
    return None if found is None else float(found)


def spent_on_trainings(session: Session, *which: ColumnElement[bool]) -> Spent:
    """The total of the selected charges, its tokens being trained tokens."""
    return sum(spent_by_job(session, *which).values(), Spent())


def spent_by_job(session: Session, *which: ColumnElement[bool]) -> dict[int, Spent]:
    """The same, by job number."""
    found: dict[int, Spent] = {}
    for charge, _, spent in charges_with_spent(session, *which):
        found[charge.job_id] = found.get(charge.job_id, Spent()) + spent
    return found


def charges_with_spent(
    session: Session, *which: ColumnElement[bool]
) -> Iterator[tuple[TrainingCharge, TrainingJob, Spent]]:
    """The selected charges, each with its job and its cost.

    If no price was known when a training began, today's is used; if there is none, no money is counted.
    """
    charges = (
        select(TrainingCharge, TrainingJob, LanguageModel)
        .join(TrainingJob, TrainingJob.id == TrainingCharge.job_id)
        .outerjoin(LanguageModel, LanguageModel.id == TrainingJob.base_id)
        .where(*which)
        .options(defer(TrainingJob.log))
    )
    for charge, job, base in session.execute(charges):
        price = price_of_training(base) if charge.price is None else charge.price
        yield charge, job, Spent((price or 0.0) * charge.tokens / 1e6, charge.tokens)
