"""A recipe loaded with the files that it names. Loads no YAML."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from app.core.document_models import read_model
from app.core.documents import Document
from app.core.errors import AppError, FieldError, Invalid, Verbatim
from app.jobs.spec import SHIPPED
from app.recipes.faults import RecipeFault
from app.recipes.inputs import SET, read_inputs
from app.recipes.plan import PlannedStep, RecipePlan, plan
from app.recipes.recipe_file import RecipeFile, expected_form
from app.recipes.step_files import MATERIAL_FIELD, check_file
from app.recipes.sweep import INPUTS, SEED, SEEDS, SWEEP, swept_inputs, with_sweep
from app.rounds.material import ALL

MOST_FILE_BYTES = 5_000_000  # in all files that a recipe names
ReadFile = Callable[[str], str]
SWEPT = "--sweep "  # precedes the fields of errors, which are named as on the command line


class FileNeeded(Invalid):
    """A step names a file that was not sent with the recipe; `got` is its name, for clients that can send it."""

    code = "file_needed"


class WrittenRecipe(NamedTuple):
    """The text of a recipe as written, and its parsed contents, with the lines of its keys.

    files: the texts of files sent with it, by name; None where none can be sent.
    """

    document: Document
    text: str
    files: Mapping[str, str] | None = None

    def file(self, name: str) -> str:
        """The text of a file sent with the recipe. Raises FileNeeded."""
        if name not in (self.files or {}):
            remedy = "send its text in `recipe.files`"
            raise FileNeeded(None, expected="a file that came with the recipe", got=Verbatim(name), remedy=remedy)
        return (self.files or {})[name]


@dataclass(frozen=True, slots=True)
class LoadedRecipe:
    """A recipe as it was written, its steps, and the texts of the files that it names."""

    written: WrittenRecipe
    plan: RecipePlan
    files: Mapping[str, str]
    swept: Mapping[str, Any]  # beside the file's own, or overriding it

    def placed(self, fault: RecipeFault) -> FieldError:
        """The error, prefixed with its line, or with the sweep field if that was given outside the file."""
        return _placed(fault, self.written, self.swept)


def _placed(fault: RecipeFault, written: WrittenRecipe, swept: Mapping[str, Any]) -> FieldError:
    field = fault.path[1] if len(fault.path) > 1 else None
    if fault.path[:1] != (SWEEP,) or field not in swept:
        return fault.placed(written.document.place(fault.path))
    option = f"--{SEEDS}" if field == SEEDS else f"{SWEPT}{field}"
    turn = f" ({fault.turn})" if fault.turn else ""
    return type(fault.error)(f"{option}{turn}", **{**fault.error.parts, "subject": None})


def load_written(
    written: WrittenRecipe,
    given: Mapping[str, Any] | None = None,
    read_file: ReadFile | None = None,
    swept: Mapping[str, Any] | None = None,
) -> LoadedRecipe:
    """Load a recipe with these inputs, and with the fields `swept` besides its own.

    `read_file` returns the text of a file beside the recipe. Raises Invalid.
    """
    file = with_sweep(read_model(RecipeFile, written.document, expected_form), swept or {})
    inputs = read_inputs(file.inputs, given or {})
    try:
        found = plan(file, inputs)
        twice = next((name for name in swept_inputs(found.sweep) if name in (given or {})), None)
        if twice is not None:
            remedy = f"give its values by {SWEPT}{INPUTS}.{twice}=…" if twice != SEED else f"give them by --{SEEDS}"
            got = Verbatim("both a value and a sweep")
            raise Invalid(f"{SET}{twice}", expected="one of both", got=got, remedy=remedy)
        return LoadedRecipe(written, found, _read_named_files(found.steps, read_file), swept or {})
    except RecipeFault as fault:
        raise _placed(fault, written, swept or {}) from None


# ---- Files that steps name ---------------------------------------------------------


def named_file(step: PlannedStep, field: str) -> str | None:
    """The file that a field of a step names; None if it is shipped with Parlor, or none is named."""
    value = step.fields.get(field)
    return None if value in (None, "", SHIPPED) or (field == MATERIAL_FIELD and value == ALL) else str(value)


def _read_named_files(steps: Sequence[PlannedStep], read_file: ReadFile | None) -> dict[str, str]:
    """The texts of all files that steps name, each checked by the kind that uses it. Raises RecipeFault."""
    found: dict[str, str] = {}
    checked: set[tuple[str, str, str]] = set()
    for step in steps:
        for field in step.kind.files:
            if (name := named_file(step, field)) is None:
                continue
            path = ("steps", step.index, "with", field)
            try:
                if name not in found:
                    found[name] = _read_file_beside_recipe(name, read_file)
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


def _read_file_beside_recipe(name: str, read_file: ReadFile | None) -> str:
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise Invalid(None, expected="a file beside the recipe, or in a folder there", got=name)
    if read_file is None:
        remedy = "run it by `flask recipe run`, or from Python, where the files beside a recipe are read"
        raise Invalid(None, expected="nothing that is in another file", got=name, remedy=remedy)
    return read_file(name)
