"""Recipes: files of steps, run with inputs of one's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parlor_client._types import JobBudget
from parlor_client.jobs import Job, Jobs, text_file


class Recipes(Jobs):
    """Runs of recipes."""

    def run(
        self,
        recipe: Path | str,
        /,
        *,
        name: str = "",
        budget: JobBudget | None = None,
        inputs: Mapping[str, Any] | None = None,
        **more_inputs: Any,
    ) -> Job:
        """Run a recipe. Raises Refused, NotReachable, and OSError for a file that cannot be read.

        recipe: a file, by its path, or the text of one, which has more than a line. name: of the run, which its models
        are called by. inputs, more_inputs: what differs from the file's; `inputs` is for names such as `name`.
        """
        if isinstance(recipe, str) and "\n" in recipe:
            file = {"text": recipe, "name": "recipe.yml"}
        else:
            file = text_file(Path(recipe))
        spec: dict[str, Any] = {"recipe": file, "inputs": {**(inputs or {}), **more_inputs}, "name": name}
        return self._create(spec if budget is None else {**spec, "budget": budget})
