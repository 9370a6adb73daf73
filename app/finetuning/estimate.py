"""The estimate of a training before it starts: its rows, and what a vendor will charge for them."""

from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.datasets import store
from app.finetuning.backends import find_backend
from app.finetuning.charges import TrainingEstimate
from app.finetuning.config import LOCAL
from app.finetuning.lifecycle import find_parts
from app.finetuning.spec import TrainingSpec
from app.finetuning.vendors.backend import VendorBackend
from app.finetuning.vendors.estimate import RowTokens, count_tokens, estimate
from app.finetuning.vendors.rows import vendor_rows
from app.registry.training_charges import price_of_training


class ExpectedTraining(NamedTuple):
    """The rows of the dataset, and the expected charge, if a vendor tells beforehand what it charges for.

    `cost` is in USD; None: unknown.
    """

    rows: int
    charge: TrainingEstimate | None
    cost: float | None


def estimate_for(session: Session, spec: TrainingSpec, home: Path) -> ExpectedTraining:
    """The estimate of a requested training. Raises AppError for one that cannot be."""
    parts, backend = find_parts(session, spec, home), find_backend(spec.backend)
    rows = parts.dataset.rows + (parts.supervised.rows if parts.supervised else 0)
    if spec.backend == LOCAL:
        return ExpectedTraining(rows, None, 0.0)
    if not isinstance(backend, VendorBackend) or parts.base is None:
        return ExpectedTraining(rows, None, None)
    counted = _counted(store.path_of(home, parts.dataset), parts.dataset.reference, backend)
    charge = estimate(counted, partial(backend.epochs, spec.config), price_of_training(parts.base))
    return ExpectedTraining(counted.rows, charge, charge.cost)


@lru_cache(maxsize=64)
def _counted(path: Path, called: str, backend: VendorBackend) -> RowTokens:
    """The rows and tokens of a dataset's file, which never changes, in a vendor's format."""
    with path.open("rb") as lines:
        return count_tokens(vendor_rows(lines, called, backend.rows))
