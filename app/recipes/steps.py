"""The steps of a run of a recipe."""

from app.models import RecipeRun
from app.recipes.engine import StepEngine
from app.recipes.job import RECIPE
from app.recipes.lifecycle import plan_of
from app.recipes.outline import SEED
from app.recipes.step_files import NamedFiles


def _named_files(row: RecipeRun) -> NamedFiles:
    return NamedFiles(dict(row.files), row.spec["inputs"].get(SEED, 0))


_ENGINE = StepEngine(
    kind=RECIPE,
    plan_of=lambda _session, row: plan_of(row),
    inputs_of=_named_files,
    called=lambda row: str(row.recipe),
)
run, take_steps = _ENGINE.run, _ENGINE.take_steps
