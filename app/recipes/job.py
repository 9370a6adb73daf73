"""Recipe runs as a job kind."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.core.errors import Phrase
from app.core.queues import BATCH
from app.jobs.kind import Progress
from app.models import RecipeRun, RecipeStep
from app.recipes.stepped import SteppedKind


class RecipeKind(SteppedKind[RecipeRun]):
    """See the module."""

    owner = "run_id"

    def progress_of(self, session: Session, rows: Sequence[RecipeRun]) -> dict[int, Progress]:
        """The number of finished steps, by run."""
        done = self.count_steps(session, rows, RecipeStep.ended_at.is_not(None))
        return {row.id: (done[row.id], row.steps) for row in rows}


RECIPE = RecipeKind(
    name="recipe",
    plural="recipes",
    place=9,
    table=RecipeRun,
    queue=BATCH,
    runner="app.recipes.steps:run",
    numbered=lambda number: Phrase("recipe run %(number)s", number=number),
    active=Phrase("one that is running"),
    facts=lambda row: {"name": row.name, "recipe": row.recipe},
    spends=True,
    creation="app.recipes.creation:CREATION",
    listing="app.recipes.listing:LIST",
    page="app.recipes.page:PAGE",
)
