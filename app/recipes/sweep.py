"""The sweep of a recipe: which fields take which values, with which seeds, and the resulting cells. Pure.

sweep:
  seeds: 1..5                                   the run's seed; each cell is done once for each
  inputs.objective: -1..1 by 0.5                an input
  train.config.learning_rate: [1.0e-4, 3.0e-4]  a step's field, by step name and the keys in its `with`
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import product
from typing import Any, NamedTuple

from app.core.errors import Invalid, Verbatim
from app.recipes.expressions import MOST_TURNS, NAME, RESERVED, Input, Scalar, literal, read_scalar, split_items
from app.recipes.faults import RecipeFault
from app.recipes.inputs import read_input
from app.recipes.recipe_file import RecipeFile

SWEEP, SEEDS, SEED, INPUTS = "sweep", "seeds", "seed", "inputs"
MOST_AXES, MOST_CELLS = 5, 1000
_DECIMAL = r"-?\d{1,9}(?:\.\d{1,9})?(?:[eE]-?\d{1,2})?"
_STEPPED = re.compile(rf"({_DECIMAL})\s*\.\.\s*({_DECIMAL})(?:\s+by\s+({_DECIMAL}))?")
_DASHED = re.compile(r"(\d{1,9})\s*-\s*(\d{1,9})")  # seeds, as people type them on a command line
_FORMS = "values such as [1, 2], or a range such as 1..5 or -1..1 by 0.5"

Values = Mapping[str, Scalar]


class Axis(NamedTuple):
    """A field that takes several values.

    field: its name in the file. variable: its name in step keys, on pages and in tables. step: the step to which the
    field belongs, with `path` as the keys within its `with`; None for an input.
    """

    field: str
    variable: str
    values: tuple[Scalar, ...]
    step: str | None
    path: tuple[str, ...]

    @property
    def numeric(self) -> bool:
        """Whether all its values are numbers."""
        return all(isinstance(each, int | float) and not isinstance(each, bool) for each in self.values)


class Sweep(NamedTuple):
    """All axes in order, and the seeds; without seeds, each combination has one cell."""

    axes: tuple[Axis, ...] = ()
    seeds: tuple[Scalar, ...] = ()

    @property
    def variables(self) -> list[str]:
        """The variables of all axes, and of the seeds."""
        return [*(axis.variable for axis in self.axes), *([SEED] if self.seeds else [])]

    @property
    def values(self) -> dict[str, tuple[Scalar, ...]]:
        """All values of each variable."""
        found = {axis.variable: axis.values for axis in self.axes}
        return {**found, SEED: self.seeds} if self.seeds else found

    @property
    def combinations(self) -> list[Values]:
        """All combinations of the axes' values, regardless of seed."""
        names = [axis.variable for axis in self.axes]
        return [dict(zip(names, values, strict=True)) for values in product(*(axis.values for axis in self.axes))]

    @property
    def cells(self) -> int:
        """The number of cells."""
        return len(self.combinations) * max(1, len(self.seeds))

    def axis_of(self, step: str, path: Sequence[str | int]) -> Axis | None:
        """The axis that matches a path within the fields of a step, or the last keys of one."""
        plain = tuple(map(str, path))
        for axis in self.axes:
            shorter = min(len(axis.path), len(plain))
            same = axis.path[:shorter] == plain[:shorter] or axis.path[-shorter:] == plain
            if axis.step == step and shorter and same:
                return axis
        return None

    def fields(self, step: str, fields: Mapping[str, Any], values: Values) -> Mapping[str, Any]:
        """The fields of a step in a cell, with the swept values filled in."""
        found: Any = fields
        for axis in self.axes:
            if axis.step == step and axis.variable in values:
                found = _put(found, axis.path, literal(values[axis.variable]))
        return found  # type: ignore[no-any-return]


def _put(into: Any, path: Sequence[str], value: Any) -> Any:
    """A nested value with another one put at a path; positions in lists are numbers from 0."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(into, list) and first.isdecimal() and int(first) < len(into):
        return [_put(each, rest, value) if place == int(first) else each for place, each in enumerate(into)]
    inner = into if isinstance(into, Mapping) else {}
    return {**inner, first: _put(inner.get(first, {}), rest, value)}


def swept_inputs(sweep: Sweep) -> list[str]:
    """The inputs that swept values replace, the seed included."""
    return [*(axis.path[0] for axis in sweep.axes if axis.step is None), *([SEED] if sweep.seeds else [])]


def seeds_in_words(raw: Any) -> str:
    """Seeds as written on a command line."""
    return "" if raw is None else ", ".join(map(str, raw)) if isinstance(raw, list | tuple) else str(raw)


def with_sweep(file: RecipeFile, given: Mapping[str, Any]) -> RecipeFile:
    """A recipe whose sweep is overridden, field by field, with what is `given`."""
    return file.model_copy(update={SWEEP: {**file.sweep, **given}}) if given else file


def read_sweep(file: RecipeFile, inputs: Mapping[str, Input]) -> Sweep:
    """The sweep of a recipe. Raises RecipeFault, at the key of the field, for an invalid one."""
    axes: list[Axis] = []
    seeds: tuple[Scalar, ...] = ()
    for field, raw in file.sweep.items():
        try:
            if field == SEEDS:
                seeds = _seeds(raw)
            else:
                axes.append(_read_axis(field, raw, file, inputs, [*axes]))
        except Invalid as error:
            raise RecipeFault((SWEEP, field), error) from None
    found = Sweep(tuple(axes), seeds)
    if len(axes) > MOST_AXES:
        raise RecipeFault((SWEEP,), Invalid(None, expected=f"at most {MOST_AXES} fields", got=len(axes)))
    if (count := found.cells) > MOST_CELLS:
        sizes = " × ".join(str(len(values)) for values in found.values.values())
        got = Verbatim(f"{sizes} = {count}")
        raise RecipeFault((SWEEP,), Invalid(None, expected=f"at most {MOST_CELLS} cells", got=got))
    return found


def _read_axis(field: str, raw: Any, file: RecipeFile, inputs: Mapping[str, Input], before: Sequence[Axis]) -> Axis:
    owner, *path = field.split(".")
    steps = [step.name for step in file.steps]
    if not path or not all(path) or owner not in (*steps, INPUTS):
        examples = [f"{INPUTS}.{name}" for name in inputs][:3]
        expected = "seeds, an input such as inputs.NAME or a field of a step such as STEP.FIELD"
        known = ", ".join([*examples, *steps])
        raise Invalid(None, expected=f"{expected} ({known})", got=field)
    values = _read_swept_values(raw)
    if owner == INPUTS:
        values = _of_input(".".join(path), values, inputs)
        path = [".".join(path)]
    _check_once(values)
    taken = {axis.variable for axis in before}
    variable = next(
        (
            each
            for each in (_variable_name(path[-1]), _variable_name("_".join([owner, *path])))
            if each not in taken and (owner == INPUTS or _is_free(each, file, inputs))
        ),
        None,
    )
    if variable is None:
        raise Invalid(None, expected="a field whose name no other field, input or step has", got=field)
    return Axis(field, variable, tuple(values), None if owner == INPUTS else owner, tuple(path))


def _of_input(name: str, values: Sequence[Scalar], inputs: Mapping[str, Input]) -> list[Scalar]:
    """The values, converted to the type of an input. Raises Invalid."""
    if name not in inputs:
        raise Invalid(None, expected=f"one of the inputs {', '.join(inputs) or '(there are none)'}", got=name)
    usual = inputs[name]
    if name == SEED:
        raise Invalid(None, expected=f"{SWEEP}.{SEEDS} for seeds", got=f"{INPUTS}.{SEED}")
    if not isinstance(usual, str | int | float):
        raise Invalid(None, expected="an input that is one value", got=Verbatim(f"{name}, which is a list"))
    return [read_input(None, name, usual, each) for each in values]


def _is_free(name: str, file: RecipeFile, inputs: Mapping[str, Input]) -> bool:
    return name not in (*inputs, *RESERVED, SEED) and name not in [step.name for step in file.steps]


def _variable_name(text: str) -> str:
    """A text turned into a valid variable name."""
    plain = re.sub(r"[^a-z0-9_]", "_", text.lower())[-40:]
    return plain if re.fullmatch(NAME, plain) else f"at_{plain}"[:40]


def _seeds(raw: Any) -> tuple[Scalar, ...]:
    if isinstance(raw, str) and (ends := _DASHED.fullmatch(raw.strip())) is not None:
        raw = f"{ends[1]}..{ends[2]}"
    values = _read_swept_values(raw)
    for value in values:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**62:
            raise Invalid(None, expected="whole numbers from 0 as seeds, such as 1..5", got=value)
    _check_once(values)
    return tuple(values)


def _read_swept_values(raw: Any) -> list[Scalar]:
    """Values as in a file, or as text: comma-separated, or a range. Raises Invalid."""
    if isinstance(raw, str):
        text = raw.strip()
        if (ends := _STEPPED.fullmatch(text)) is not None:
            return _range(*ends.groups())
        raw = [read_scalar(each) for each in split_items(text.removeprefix("[").removesuffix("]"))]
    found = [_number_or_text(each) for each in (raw if isinstance(raw, list | tuple) else [raw])]
    if not 1 <= len(found) <= MOST_TURNS:
        expected = f"1 to {MOST_TURNS} values"
        raise Invalid(None, expected=expected, got=Verbatim(str(len(found)) if found else "none"))
    return found


def _range(first: str, last: str, by: str | None) -> list[Scalar]:
    """The values of a range, each exactly as written: 0.3, not the floating-point result of 3 × 0.1."""
    begin, end, step = (Decimal(each) for each in (first, last, by or "1"))
    count = int((end - begin) / step) + 1 if step > 0 and end >= begin else 0
    if not 1 <= count <= MOST_TURNS:
        got = Verbatim(f"{first}..{last}{f' by {by}' if by else ''}")
        raise Invalid(None, expected=f"a range that rises to 1 to {MOST_TURNS} values", got=got)
    values = [begin + place * step for place in range(count)]
    whole = all(each == each.to_integral_value() for each in (begin, step))
    return [int(each) if whole else float(each) for each in values]


def _number_or_text(value: Any) -> Scalar:
    """A value; text that is written as a number becomes one, as YAML reads 1e-4 as text."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return float(value) if re.fullmatch(r"-?\d{1,9}(\.\d{1,9})?[eE]-?\d{1,2}", value) else value
    raise Invalid(None, expected=_FORMS, got=value)


def _check_once(values: Sequence[Scalar]) -> None:
    for place, value in enumerate(values):
        if any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in values[:place]):
            raise Invalid(None, expected="each value once", got=Verbatim(f"{value} twice"))
