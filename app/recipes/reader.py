"""Reads the file of a recipe and the files that it names. Whatever is wrong is said with file, line and key."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.core.document_models import read_model
from app.core.documents import Document
from app.core.errors import AppError, FieldError, Invalid, Verbatim
from app.core.yaml_reader import parse_yaml, read_text_file
from app.jobs.spec import SHIPPED
from app.recipes.faults import RecipeFault
from app.recipes.inputs import read_inputs
from app.recipes.loaded_recipe import LoadedRecipe
from app.recipes.plan import PlannedStep, plan
from app.recipes.recipe_file import RecipeFile, expected_form
from app.recipes.step_files import MATERIAL_FIELD, check_file
from app.rounds.material import ALL

MOST_FILE_BYTES = 5_000_000  # of all files that a recipe names
ReadFile = Callable[[str], str]


def load_recipe(path: Path, given: Mapping[str, Any] | None = None) -> LoadedRecipe:
    """Read the file of a recipe. Raises Invalid for the first thing that is wrong, with its line."""
    text = read_text_file(path, "a text file that can be read", path.name)
    return parse_recipe(text, path.name, given, lambda name: _file_beside(path.parent, name))


def parse_recipe(
    text: str, source: str, given: Mapping[str, Any] | None = None, read_file: ReadFile | None = None
) -> LoadedRecipe:
    """Read the text of a recipe; `read_file` gives that of a file beside it. Raises Invalid."""
    document = _document(text, source)
    file = read_model(RecipeFile, document, expected_form)
    inputs = read_inputs(file.inputs, given or {})
    try:
        found = plan(file, inputs)
        files = _files(found.steps, read_file)
    except RecipeFault as fault:
        raise fault.placed(document.place(fault.path)) from None
    return LoadedRecipe(document, text, found, files)


def _document(text: str, source: str) -> Document:
    try:
        return parse_yaml(text, source)
    except Invalid as error:
        if error.parts["expected"] != "YAML" or not ("${" in text or " in [" in text):
            raise
        remedy = 'within [ ] and { }, references and loops have to be in quotes: "${base}", "seed in [1, 2]"'
        raise Invalid(None, **{**error.parts, "remedy": remedy}) from None


def _file_beside(folder: Path, name: str) -> str:
    return read_text_file(folder / name, "a text file that can be read", name)


# ---- Files that steps name ---------------------------------------------------------


def named_file(step: PlannedStep, field: str) -> str | None:
    """The file that a field of a step names; None where that comes with Parlor, or nothing is named."""
    value = step.fields.get(field)
    return None if value in (None, "", SHIPPED) or (field == MATERIAL_FIELD and value == ALL) else str(value)


def _files(steps: Sequence[PlannedStep], read_file: ReadFile | None) -> dict[str, str]:
    """The texts of all files that steps name, each looked at by the kind that takes it. Raises RecipeFault."""
    found: dict[str, str] = {}
    checked: set[tuple[str, str, str]] = set()
    for step in steps:
        for field in step.kind.files:
            if (name := named_file(step, field)) is None:
                continue
            path = ("steps", step.index, "with", field)
            try:
                if name not in found:
                    found[name] = _read(name, read_file)
                    if sum(len(each.encode()) for each in found.values()) > MOST_FILE_BYTES:
                        expected = f"files of at most {MOST_FILE_BYTES // 10**6} MB together"
                        remedy = "import a larger one by flask dataset import, and name the dataset"
                        raise Invalid(None, expected=expected, got=Verbatim("more"), remedy=remedy)
                if (once := (step.kind.name, field, name)) not in checked:
                    check_file(step, field, name, found[name])
                    checked.add(once)
            except FieldError as error:
                raise RecipeFault(path, error, step.turn) from None
            except AppError as error:
                raise RecipeFault(
                    path, Invalid(None, expected="a file that can be read", got=Verbatim(error.message))
                ) from None
    return found


def _read(name: str, read_file: ReadFile | None) -> str:
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise Invalid(None, expected="a file beside the recipe, or in a folder there", got=name)
    if read_file is None:
        remedy = "run it by `flask recipe run`, which reads the files beside a recipe"
        raise Invalid(None, expected="nothing that is in another file", got=name, remedy=remedy)
    return read_file(name)
