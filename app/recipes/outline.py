"""The steps of a recipe for each iteration of their loops, in order. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from app.core.errors import Invalid, Verbatim
from app.core.validation import KeyPath
from app.recipes.expressions import RESERVED, ConditionPart, Input, Loop, Scalar, holds, read_condition, read_loop
from app.recipes.faults import RecipeFault
from app.recipes.recipe_file import RecipeFile, WrittenStep
from app.recipes.sweep import SEED, SEEDS, SWEEP, read_sweep
from app.recipes.sweep_reach import reach_of

MOST_PLANNED = 2000  # steps of a run, loop iterations counted


def turn_of(values: Mapping[str, Scalar]) -> str:
    """The values of variables, for display: iteration=2, seed=7."""
    return ", ".join(
        f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in values.items()
    )


def key_of(name: str, values: Mapping[str, Scalar]) -> str:
    """The key of a step in one iteration of its loops, as shown in the table of a run's steps."""
    return f"{name} {turn_of(values)}" if values else name


@dataclass(frozen=True, slots=True)
class LoopTurn:
    """A step in one iteration of its loops, before its fields are read."""

    place: int
    key: str
    index: int
    values: Mapping[str, Scalar]


class Outline:
    """The steps for each iteration of their loops, in order.

    `seeded` has the indices of the steps whose seed is derived from the run's. Swept fields and seeds become loops
    around the steps that they affect, which run once in each cell; all others run once.
    """

    def __init__(self, file: RecipeFile, inputs: Mapping[str, Input], seeded: Collection[int] = ()) -> None:
        self.file, self.inputs = file, inputs
        self.sweep = read_sweep(file, inputs)
        self.indices: dict[str, int] = {}
        for index, step in enumerate(file.steps):
            self._check_name(index, step)
            self.indices[step.name] = index
        own = [self._loops(index, step, inputs) for index, step in enumerate(file.steps)]
        self.variables = [*dict.fromkeys(loop.name for loops in own for loop in loops), *self.sweep.variables]
        self._swept = reach_of(file, self.sweep, seeded, self.variables)
        self._check_seeds(own)
        self._conditions = [self._checked_condition(index, step, own[index]) for index, step in enumerate(file.steps)]
        self._known: dict[tuple[int, tuple[Scalar, ...]], Sequence[Loop]] = {}
        self.turns: list[LoopTurn] = []
        self.by_key: dict[str, LoopTurn] = {}
        for index, values in self._sequence([*range(len(file.steps))], 0, {}):
            if len(self.turns) == MOST_PLANNED:
                error = Invalid(
                    None, expected=f"at most {MOST_PLANNED} steps, turns of loops counted", got=Verbatim("more")
                )
                raise RecipeFault((SWEEP,) if self.sweep.variables else ("steps", index, "for"), error)
            turn = LoopTurn(len(self.turns), key_of(file.steps[index].name, values), index, values)
            self.turns.append(turn)
            self.by_key[turn.key] = turn

    def _check_name(self, index: int, step: WrittenStep) -> None:
        path = ("steps", index, "name")
        if step.name in RESERVED:
            raise RecipeFault(path, Invalid(None, expected="another name, as this word means something", got=step.name))
        if step.name in self.file.inputs:
            raise RecipeFault(path, Invalid(None, expected="a name that no input has", got=step.name))
        if step.name in self.indices:
            raise RecipeFault(path, Invalid(None, expected="a name that no other step has", got=step.name))

    def loops(self, index: int, values: Mapping[str, Scalar]) -> Sequence[Loop]:
        """The loops of a step, outermost first: those of the sweep, then its own, for the cell with these values."""
        cell = {name: values[name] for name in self._swept[index] if name in values}
        key = index, tuple(cell.values())
        if key not in self._known:
            known = self.sweep.values
            swept = [Loop(name, known[name]) for name in self._swept[index]]
            self._known[key] = [*swept, *self._loops(index, self.file.steps[index], {**self.inputs, **cell})]
        return self._known[key]

    def is_swept(self, variable: str) -> bool:
        """Whether a variable belongs to the sweep."""
        return variable in self.sweep.variables

    def _check_seeds(self, own: Sequence[Sequence[Loop]]) -> None:
        """Raises RecipeFault if seeds are both swept and looped over."""
        for step, loops in zip(self.file.steps, own, strict=True):
            if self.sweep.seeds and any(loop.name == SEED for loop in loops):
                expected = f"none, as {step.name} has a loop over {SEED} of its own"
                raise RecipeFault((SWEEP, SEEDS), Invalid(None, expected=expected, got=Verbatim("seeds")))

    def _loops(self, index: int, step: WrittenStep, inputs: Mapping[str, Input]) -> Sequence[Loop]:
        found: list[Loop] = []
        for place, clause in enumerate(step.clauses):
            path: KeyPath = ("steps", index, "for") if isinstance(step.loops, str) else ("steps", index, "for", place)
            try:
                loop = read_loop(clause, inputs)
                self._check_variable(loop.name, [each.name for each in found])
            except Invalid as error:
                raise RecipeFault(path, error) from None
            if loop.name == SEED:
                for value in loop.values:
                    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**62:
                        raise RecipeFault(path, Invalid(None, expected="whole numbers from 0 as seeds", got=value))
            found.append(loop)
        return found

    def _check_variable(self, name: str, outer: Sequence[str]) -> None:
        if name in RESERVED:
            raise Invalid(None, expected="another name, as this word means something", got=name)
        if name in self.indices:
            raise Invalid(None, expected="a variable that is called as no step is", got=name)
        if name in outer:
            raise Invalid(None, expected="a variable of its own for each loop of a step", got=name)
        if (name in self.inputs and name != SEED) or name in [axis.variable for axis in self.sweep.axes]:
            what = "input or swept field" if self.sweep.axes else "input"
            raise Invalid(None, expected=f"a variable that is called as no {what} is", got=name)

    def _checked_condition(self, index: int, step: WrittenStep, loops: Sequence[Loop]) -> Sequence[ConditionPart]:
        try:
            found = [] if step.when is None else read_condition(step.when)
            known = {**self.inputs, **{loop.name: loop.values[0] for loop in loops}}
            holds(found, known)
        except Invalid as error:
            raise RecipeFault(("steps", index, "when"), error) from None
        return found

    def _sequence(
        self, indices: Sequence[int], depth: int, outer: Mapping[str, Scalar]
    ) -> Iterator[tuple[int, Mapping[str, Scalar]]]:
        """The steps with these indices, which share their first `depth` loops, in execution order."""

        def own_loop(index: int) -> Loop | int:
            """The loop at this depth; a step without one stands alone."""
            loops = self.loops(index, outer)
            return loops[depth] if len(loops) > depth else index

        for loop, group in groupby(indices, own_loop):
            body = [*group]
            if not isinstance(loop, Loop):
                if self._takes_place(body[0], outer):
                    yield body[0], outer
                continue
            for value in loop.values:
                yield from self._sequence(body, depth + 1, {**outer, loop.name: value})

    def _takes_place(self, index: int, values: Mapping[str, Scalar]) -> bool:
        try:
            return holds(self._conditions[index], {**self.inputs, **values})
        except Invalid as error:
            raise RecipeFault(("steps", index, "when"), error, turn_of(values)) from None
