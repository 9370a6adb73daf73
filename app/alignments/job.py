"""Alignments as a kind of job: each has the steps of its recipe, most of which are jobs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.alignments.step_names import ASSESSMENT, DEMONSTRATIONS, FIRST_SOCIETY, SECOND_SOCIETY, TRAINING
from app.assessments import job as assessments
from app.core.errors import Phrase
from app.core.queues import BATCH
from app.finetuning import job as trainings
from app.jobs.kind import JobKind, Progress
from app.models import Alignment, RecipeStep
from app.recipes.stepped import SteppedKind
from app.society import job as societies


class AlignmentPart(NamedTuple):
    """A job of an alignment: its title for people, its kind, and its step."""

    title: str
    kind: JobKind[Any]
    step: str


PARTS = (
    AlignmentPart("demonstrations", trainings.TRAINING, DEMONSTRATIONS),
    AlignmentPart("society", societies.SOCIETY, FIRST_SOCIETY),
    AlignmentPart("training", trainings.TRAINING, TRAINING),
    AlignmentPart("society again", societies.SOCIETY, SECOND_SOCIETY),
    AlignmentPart("assessment", assessments.ASSESSMENT, ASSESSMENT),
)


class AlignmentKind(SteppedKind[Alignment]):
    """See the module."""

    owner = "alignment_id"

    def progress_of(self, session: Session, rows: Sequence[Alignment]) -> dict[int, Progress]:
        """How many of its jobs have ended, by alignment."""
        done = self.count_steps(session, rows, RecipeStep.kind.is_not(None), RecipeStep.ended_at.is_not(None))
        return {row.id: (done[row.id], len(parts_of(row))) for row in rows}


def parts_of(row: Alignment) -> Sequence[AlignmentPart]:
    """The jobs of an alignment, in order; without demonstrations, there is no training on them."""
    return PARTS if row.spec.get("demonstrations") is not None else PARTS[1:]


ALIGNMENT = AlignmentKind(
    name="alignment",
    plural="alignments",
    place=7,
    table=Alignment,
    queue=BATCH,
    runner="app.alignments.steps:run",
    facts=lambda row: {"name": row.name, "preset": row.spec["preset"], "seed": row.spec["seed"]},
    numbered=lambda number: Phrase("alignment %(number)s", number=number),
    active=Phrase("one that is running"),
    spends=True,
    listing="app.alignments.listing:LIST",
    page="app.alignments.page:PAGE",
    creation="app.alignments.creation:CREATION",
)
