"""The steps of a recipe run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.jobs.spec import JobSpec
from app.models import RecipeRun
from app.recipes.engine import StepEngine
from app.recipes.expressions import Input
from app.recipes.job import RECIPE
from app.recipes.lifecycle import plan_of
from app.recipes.operations import EvaluateSpec
from app.recipes.step_actions import StepInputs
from app.recipes.step_files import files_of, held_out_material, played_material
from app.recipes.sweep import SEED
from app.rounds.lifecycle import Material
from app.rounds.spec import RoundSpec


@dataclass(frozen=True)
class NamedFiles(StepInputs):
    """The texts of the files that a recipe names, and the run's seed."""

    texts: Mapping[str, str]
    seed: Input

    def played(self, spec: RoundSpec) -> Material | None:
        """See `played_material`."""
        return played_material(spec, self.texts, self.seed)

    def held_out(self, spec: EvaluateSpec) -> Material | None:
        """See `held_out_material`."""
        return held_out_material(spec, self.texts, self.seed)

    def files_of(self, spec: JobSpec) -> dict[str, Any]:
        """See `files_of`."""
        return files_of(spec, self.texts)

    def text_of(self, name: str) -> str:
        """The text of a file."""
        return self.texts[name]


def _named_files(row: RecipeRun) -> NamedFiles:
    return NamedFiles(dict(row.files), row.spec["inputs"].get(SEED, 0))


_ENGINE = StepEngine(
    kind=RECIPE,
    plan_of=lambda _session, row: plan_of(row),
    inputs_of=_named_files,
    called=lambda row: str(row.recipe),
)
run, take_steps = _ENGINE.run, _ENGINE.take_steps
