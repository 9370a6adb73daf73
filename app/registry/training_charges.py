"""What trainings at vendors have come to: by what the vendor says it trained, or by estimate while one goes on."""

from collections.abc import Iterator

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session, defer

from app.jobs.spending import Spent
from app.models import LanguageModel, TrainingCharge, TrainingJob


def price_of_training(base: LanguageModel | None) -> float | None:
    """USD for a million tokens that a vendor trains a model on; None: unknown, or a training from nothing."""
    found = None if base is None else base.options.get("price_training")
    return None if found is None else float(found)


def spent_on_trainings(session: Session, *which: ColumnElement[bool]) -> Spent:
    """What such charges come to, in trained tokens."""
    return sum(spent_by_job(session, *which).values(), Spent())


def spent_by_job(session: Session, *which: ColumnElement[bool]) -> dict[int, Spent]:
    """The same by the number of the job."""
    found: dict[int, Spent] = {}
    for charge, _, spent in charges_with_spent(session, *which):
        found[charge.job_id] = found.get(charge.job_id, Spent()) + spent
    return found


def charges_with_spent(
    session: Session, *which: ColumnElement[bool]
) -> Iterator[tuple[TrainingCharge, TrainingJob, Spent]]:
    """Such charges, each with its job and what it comes to.

    Where no price was known when a training was begun, today's counts; where there is none, it comes to no money.
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
