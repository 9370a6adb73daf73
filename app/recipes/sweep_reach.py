"""The steps of a recipe that a sweep's fields affect: those run in each cell, all others once. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from app.core.errors import Invalid
from app.recipes.expressions import NAME, Path, read_reference, references_in
from app.recipes.recipe_file import RecipeFile, WrittenStep
from app.recipes.sweep import SEED, Sweep

_WORD = re.compile(rf"\b{NAME}\b")


def texts_in(value: Any) -> Iterator[str]:
    """All texts in nested fields, field names included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield name
            yield from texts_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts_in(each)


def paths_of(step: WrittenStep, variables: Sequence[str]) -> Iterator[Path]:
    """Everything that the references in a step's fields name. Raises Invalid."""
    for text in texts_in(step.fields):
        for reference in references_in(text):
            yield from read_reference(reference, variables)


def reach_of(file: RecipeFile, sweep: Sweep, seeded: Collection[int], variables: Sequence[str]) -> list[list[str]]:
    """The sweep's variables that affect each step, in the sweep's order.

    A field affects its own step, an input the steps that name it, and the seed those in `seeded`; each also affects the
    steps that use their outputs. Where a step names a later one, from an earlier iteration of their loop, all steps
    from the one to the other are affected alike, so that they stay one loop body.
    """
    if not sweep.variables:
        return [[] for _ in file.steps]
    names = [_names_in_step(step, variables) for step in file.steps]
    inputs = {axis.path[0]: axis.variable for axis in sweep.axes if axis.step is None}
    found = [
        {variable for name, variable in inputs.items() if name in named}
        | {axis.variable for axis in sweep.axes if axis.step == step.name}
        | ({SEED} if sweep.seeds and (index in seeded or SEED in named) else set())
        for index, (step, named) in enumerate(zip(file.steps, names, strict=True))
    ]
    indices = {step.name: index for index, step in enumerate(file.steps)}
    while True:
        before = [set(each) for each in found]
        for index, named in enumerate(names):
            for other in (indices[name] for name in named & indices.keys()):
                found[index] |= found[other]
                body = range(index, other + 1)
                whole = set[str]().union(*(found[each] for each in body))
                for each in body:
                    found[each] |= whole
        if found == before:
            return [[name for name in sweep.variables if name in each] for each in found]


def _names_in_step(step: WrittenStep, variables: Sequence[str]) -> set[str]:
    """All names in a step's fields, loops and condition; errors in them are reported where they are parsed."""
    try:
        found = {name for path in paths_of(step, variables) for name in (path.name, path.at or path.name)}
    except Invalid:
        found = set()
    words = [clause.partition(" in ")[2] for clause in step.clauses] + ([step.when] if step.when else [])
    return found | {word for text in words for word in _WORD.findall(text)}
