"""`flask recipe`: experiments of many jobs, each described by a file of steps."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from app.cli.base import Group, RepeatableOption, counted, is_pair, print_json
from app.cli.jobs import json_option
from app.cli.tables import aligned
from app.core.errors import Invalid, Verbatim
from app.recipes.plan import PlannedStep
from app.recipes.reader import LoadedRecipe, load_recipe

_FILE = click.argument("path", metavar="FILE", type=Path)
_SET = click.option(
    "--set", "given", cls=RepeatableOption, belongs=is_pair, metavar="K=V", help="Inputs that differ from the file’s."
)

recipe = Group("recipe", help="Run experiments of many jobs, each described by a file of steps.")


@recipe.command()
@_FILE
@_SET
@json_option
def validate(path: Path, given: tuple[str, ...], as_json: bool) -> None:
    """Check the file of a recipe and the files that it names, and say what its steps come to.

    Exit code 0: it can be run, if its models and datasets are there; 2: one line says what is wrong, and where.
    """
    loaded = load_recipe(path, read_given(given))
    if as_json:
        print_json(_recipe_json(loaded))
        return
    steps = loaded.plan.steps
    lines = [[step.step.name, step.step.do, _how_often(step, steps)] for step in _first_of_each(steps)]
    click.echo("\n".join(aligned(lines)))
    click.echo(f"{loaded.plan.file.recipe}: {counted(len(steps), 'step')}.")


def read_given(pairs: Sequence[str]) -> dict[str, str]:
    """Inputs as they were typed: each is read as its default is. Raises Invalid."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, mark, text = pair.partition("=")
        if not mark or not name:
            raise Invalid("--set", expected="name=value", got=pair)
        if name in found:
            raise Invalid("--set", expected="each name once", got=Verbatim(f"{name!r} twice"))
        found[name] = text
    return found


def _first_of_each(steps: Sequence[PlannedStep]) -> list[PlannedStep]:
    return list({step.index: step for step in reversed(steps)}.values())[::-1]


def _how_often(step: PlannedStep, steps: Sequence[PlannedStep]) -> str:
    turns = [each for each in steps if each.index == step.index]
    loops = ", ".join(step.step.clauses)
    when = f", when {step.step.when}" if step.step.when else ""
    return f"{counted(len(turns), 'time')}{f': {loops}' if loops else ''}{when}"


def _recipe_json(loaded: LoadedRecipe) -> dict[str, Any]:
    return {
        "recipe": loaded.plan.file.recipe,
        "inputs": dict(loaded.plan.inputs),
        "files": sorted(loaded.files),
        "steps": [
            {"key": step.key, "name": step.step.name, "do": step.step.do, "values": dict(step.values)}
            for step in loaded.plan.steps
        ],
    }
