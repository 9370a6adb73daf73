"""The figures of a benchmark by task, for comparing benchmarks."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.benchmarks.listing import results_of
from app.core.errors import Phrase
from app.jobs.curves import Curve
from app.models import BenchmarkJob


def curves(session: Session, row: BenchmarkJob) -> Sequence[Curve]:
    """The score of each scored task."""
    found = results_of(session, [row])[row.id]
    return [
        Curve(
            "score", Phrase("Score (by the task’s metric)"), Phrase("Task"), [(each.task, each.value) for each in found]
        )
    ]
