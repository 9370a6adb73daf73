"""Recipes: files of steps, run with inputs of your own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parlor_client._types import JobBudget
from parlor_client.errors import Refused
from parlor_client.jobs import Job, Jobs, text_file

_FILE_NEEDED = "file_needed"  # the code of the error that names an unsent file


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

        recipe: the path of a file, which is sent with the files beside it that its steps name; or the text of one,
        which has more than one line. name: the run's name, used to name its models. inputs, more_inputs: inputs that
        differ from the file's; `inputs` is for names such as `name`.
        """
        if isinstance(recipe, str) and "\n" in recipe:
            folder, file = None, {"text": recipe, "name": "recipe.yml"}
        else:
            path = Path(recipe)
            folder, file = path.parent, text_file(path)
        spec: dict[str, Any] = {"inputs": {**(inputs or {}), **more_inputs}, "name": name}
        if budget is not None:
            spec["budget"] = budget
        files: dict[str, str] = {}
        while True:
            try:
                return self._create({**spec, "recipe": {**file, "files": files}})
            except Refused as refused:  # only the server knows which files a recipe's steps name
                named = refused.got if refused.code == _FILE_NEEDED else None
                if folder is None or named is None or named in files or not _is_beside(named):
                    raise
                files[named] = text_file(folder / named)["text"]


def _is_beside(name: str) -> bool:
    """Whether a file is in the recipe's folder or in a folder below it."""
    return not Path(name).is_absolute() and ".." not in Path(name).parts
