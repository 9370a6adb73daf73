"""Alignments as a kind of jobs. Each waits for its trainings, its societies and its assessment, one after another."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.assessments.job import ASSESSMENT
from app.core.errors import Phrase
from app.core.queues import BATCH
from app.finetuning.job import TRAINING
from app.jobs import states
from app.jobs.chained import AwaitedJob, ChainedKind
from app.jobs.kind import JobKind, Progress
from app.models import Alignment
from app.society.job import SOCIETY


class AlignmentPart(NamedTuple):
    """A job of an alignment, once it was begun: what a person calls it, its kind, and the column that names it."""

    title: str
    kind: JobKind[Any]
    column: str


PARTS = (
    AlignmentPart("demonstrations", TRAINING, "sft_job_id"),
    AlignmentPart("society", SOCIETY, "society_id"),
    AlignmentPart("training", TRAINING, "job_id"),
    AlignmentPart("society again", SOCIETY, "second_society_id"),
    AlignmentPart("assessment", ASSESSMENT, "assessment_id"),
)


class AlignmentKind(ChainedKind[Alignment]):
    """See the module."""

    def begun_jobs(self, _session: Session, row: Alignment) -> Sequence[AwaitedJob]:
        """Its trainings, its societies and its assessment, as far as it has begun them."""
        return begun_jobs(row)

    def awaited_jobs(self, session: Session, numbers: Collection[int]) -> dict[int, AwaitedJob]:
        """The job that each has begun last, unless it is done."""
        found: dict[int, AwaitedJob] = {}
        for row in session.scalars(select(Alignment).where(Alignment.id.in_(numbers))):
            begun = begun_jobs(row)
            if begun and begun[-1].row(session).status != states.DONE:
                found[row.id] = begun[-1]
        return found


def parts_of(row: Alignment) -> Sequence[AlignmentPart]:
    """The jobs that an alignment has, in their order: without demonstrations it has no training on them."""
    return PARTS if row.spec.get("demonstrations") is not None else PARTS[1:]


def begun_jobs(row: Alignment) -> list[AwaitedJob]:
    """Those of its jobs that were begun, in their order."""
    named = ((part.kind, getattr(row, part.column)) for part in parts_of(row))
    return [AwaitedJob(kind, number) for kind, number in named if number is not None]


def _progress(row: Alignment) -> Progress:
    """How many of its jobs are over: all that were begun but the last, and that one once nothing is left."""
    begun = len(begun_jobs(row))
    return (begun if row.status == states.DONE else max(0, begun - 1)), len(parts_of(row))


ALIGNMENT = AlignmentKind(
    name="alignment",
    plural="alignments",
    place=7,
    table=Alignment,
    queue=BATCH,
    runner="app.alignments.steps:run",
    progress=_progress,
    facts=lambda row: {"name": row.name, "preset": row.spec["preset"], "seed": row.spec["seed"]},
    numbered=lambda number: Phrase("alignment %(number)s", number=number),
    active=Phrase("one that is running"),
    spends=True,
    listing="app.alignments.listing:LIST",
    page="app.alignments.page:PAGE",
    creation="app.alignments.creation:CREATION",
)
