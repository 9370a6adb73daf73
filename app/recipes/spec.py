"""The spec of a recipe run."""

import re
from typing import Any, ClassVar

from pydantic import field_validator

from app.core.errors import Invalid, Phrase
from app.jobs.spec import JobBudget, JobSpec, TextFile, budget_field, spec_field
from app.recipes.recipe_process import read_recipe
from app.recipes.sweep import SEEDS

LONGEST_NAME = 40
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")
RECIPE_FILE = TextFile(
    read_recipe,
    None,
    ".yaml,.yml,application/yaml,text/plain",
    in_process=True,
    with_files=lambda written, files: written._replace(files=files),
)


class RecipeSpec(JobSpec):
    """A recipe to run, with the inputs that override those of its file."""

    version: ClassVar[int] = 1
    files: ClassVar = {"recipe": RECIPE_FILE}

    recipe: str | None = spec_field(
        "Recipe",
        "A YAML file of steps.",
        None,
        unset="none",
        widget="written",
        metavar="FILE",
        argument=True,
        heading="What is run",
    )
    inputs: dict[str, Any] = spec_field(
        "Inputs",
        "Values that differ from those of the file, one a line, such as base = mine.",
        {},
        option="set",
        widget="lines",
        metavar="K=V",
    )
    sweep: dict[str, Any] = spec_field(
        "Sweep",
        "Fields that take several values, each in its own cells, one a line, such as train.config.learning_rate = "
        "0.0001, 0.001 or inputs.objective = -1..1 by 0.5; added to those of the file.",
        {},
        option="sweep",
        widget="lines",
        metavar="FIELD=VALUES",
        heading="Sweep",
    )
    seeds: str = spec_field(
        "Seeds",
        "Each cell is done once with each, such as 1..5 or 1, 2, 3.",
        "",
        unset="those of the file, or the run’s seed alone",
        metavar="SEEDS",
        max_length=500,
    )
    name: str = spec_field(
        "Name",
        "Its models are called NAME-STEP, with the values of the step’s loops.",
        "",
        unset="the recipe’s name and a number",
        metavar="NAME",
        max_length=LONGEST_NAME,
        once=True,
        heading="Name",
    )
    budget: JobBudget = budget_field()

    @property
    def swept(self) -> dict[str, Any]:
        """The fields of its sweep, and the seeds, as in the file of a recipe."""
        return {**self.sweep, **({SEEDS: self.seeds} if self.seeds else {})}

    @field_validator("name")
    @classmethod
    def _models_can_be_called_after_it(cls, name: str) -> str:
        if name and _NAME.fullmatch(name) is None:
            expected = Phrase("at most %(most)s letters, digits, dots, dashes and underscores", most=LONGEST_NAME)
            raise Invalid("name", expected=expected, got=name)
        return name
