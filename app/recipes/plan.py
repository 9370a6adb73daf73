"""What the steps of a recipe come to: each turn of each loop as a step of its own, with what it takes of earlier ones.

All of it follows from the file and the inputs, so a recipe is known to the end before its first step begins. What a
step makes is known when it is done; until then a `Made` stands in its place.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from app.core.errors import AppError, FieldError, Invalid, Verbatim, either
from app.core.validation import KeyPath
from app.jobs.spec import JobSpec, fields_of
from app.recipes.expressions import (
    ALL,
    LAST,
    PREVIOUS,
    RESERVED,
    RUN,
    ConditionPart,
    Input,
    Loop,
    Path,
    Scalar,
    filled_in,
    holds,
    read_condition,
    read_loop,
    read_reference,
    references_in,
    whole_reference,
)
from app.recipes.faults import RecipeFault
from app.recipes.recipe_file import RecipeFile, WrittenStep
from app.recipes.step_kinds import ANY_DATA, DATASETS, FIGURES, MODEL, STEP_KINDS, StepKind

SEED = "seed"  # the input from which the seeds of steps follow; a loop's variable may take its place
MOST_PLANNED = 2000  # steps of a run, turns of loops counted
LARGEST_SEED = 2**31 - 1  # of those that follow from the run's: every kind of jobs takes it
_LONGEST_NAME = 80  # of models and datasets
_NUMBERED = 1_000_000_000  # what stands for the number of something that is not there yet is above this


class Made(NamedTuple):
    """What earlier steps will have made, by their keys. `many`: a list, even of one; a tuple of one key otherwise."""

    keys: tuple[str, ...]
    output: str
    what: str
    many: bool


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step in one turn of its loops. `fields` are those of the spec of its kind, with a Made where it takes one."""

    place: int  # among all steps of the run, in their order
    key: str  # by its name and the values of its loops' variables
    step: WrittenStep
    index: int  # of the step in the file
    kind: StepKind
    values: Mapping[str, Scalar]  # of its loops' variables
    fields: Mapping[str, Any]
    gives: Mapping[str, str]

    @property
    def turn(self) -> str:
        """The values of its loops' variables, for people."""
        return turn_of(self.values)

    @property
    def takes(self) -> Sequence[Made]:
        """What it takes of earlier steps."""
        return [*_made_in(self.fields)]


@dataclass(frozen=True, slots=True)
class RecipePlan:
    """All steps of a run in their order, and the inputs that they follow from."""

    file: RecipeFile
    inputs: Mapping[str, Input]
    steps: Sequence[PlannedStep]
    by_key: Mapping[str, PlannedStep] = field(repr=False)


def turn_of(values: Mapping[str, Scalar]) -> str:
    """The values of variables, for people: iteration=2, seed=7."""
    return ", ".join(
        f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in values.items()
    )


def key_of(name: str, values: Mapping[str, Scalar]) -> str:
    """What a step in one turn of its loops is called in the table of a run's steps."""
    return f"{name} {turn_of(values)}" if values else name


def plan(file: RecipeFile, given: Mapping[str, Input] | None = None, run: str | None = None) -> RecipePlan:
    """The steps of a recipe with these inputs. `run` is the name of the run; without one, the recipe's stands for it.

    Raises RecipeFault for the first thing that cannot be.
    """
    inputs = {**file.inputs, **(given or {})}
    _check_seed(inputs)
    outline = _Outline(file, inputs)
    planner = _Planner(outline, run or file.recipe)
    steps = [planner.planned(turn) for turn in outline.turns]
    _check_model_names(steps)
    return RecipePlan(file, inputs, steps, {step.key: step for step in steps})


def _check_seed(inputs: Mapping[str, Input]) -> None:
    seed = inputs.get(SEED, 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**62:
        expected = "a whole number from 0 to below 2^62, from which the seeds of steps follow"
        raise RecipeFault(("inputs", SEED), Invalid(None, expected=expected, got=seed))


# ---- Turns of loops --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Turn:
    """A step in one turn of its loops, before its fields are looked at."""

    place: int
    key: str
    index: int
    values: Mapping[str, Scalar]


class _Outline:
    """Which steps there are in which turns of which loops, in their order."""

    def __init__(self, file: RecipeFile, inputs: Mapping[str, Input]) -> None:
        self.file, self.inputs = file, inputs
        self.indices: dict[str, int] = {}
        for index, step in enumerate(file.steps):
            self._check_name(index, step)
            self.indices[step.name] = index
        self.loops = [self._loops(index, step) for index, step in enumerate(file.steps)]
        self.variables = [*dict.fromkeys(loop.name for loops in self.loops for loop in loops)]
        self._conditions = [self._condition(index, step) for index, step in enumerate(file.steps)]
        self.turns: list[_Turn] = []
        self.by_key: dict[str, _Turn] = {}
        for index, values in self._sequence([*range(len(file.steps))], 0, {}):
            if len(self.turns) == MOST_PLANNED:
                error = Invalid(
                    None, expected=f"at most {MOST_PLANNED} steps, turns of loops counted", got=Verbatim("more")
                )
                raise RecipeFault(("steps", index, "for"), error)
            turn = _Turn(len(self.turns), key_of(file.steps[index].name, values), index, values)
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

    def _loops(self, index: int, step: WrittenStep) -> Sequence[Loop]:
        found: list[Loop] = []
        for place, clause in enumerate(step.clauses):
            path: KeyPath = ("steps", index, "for") if isinstance(step.loops, str) else ("steps", index, "for", place)
            try:
                loop = read_loop(clause, self.inputs)
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
        if name in self.inputs and name != SEED:
            raise Invalid(None, expected="a variable that is called as no input is", got=name)

    def _condition(self, index: int, step: WrittenStep) -> Sequence[ConditionPart]:
        try:
            found = [] if step.when is None else read_condition(step.when)
            known = {**self.inputs, **{loop.name: loop.values[0] for loop in self.loops[index]}}
            holds(found, known)
        except Invalid as error:
            raise RecipeFault(("steps", index, "when"), error) from None
        return found

    def _sequence(
        self, indices: Sequence[int], depth: int, outer: Mapping[str, Scalar]
    ) -> Iterator[tuple[int, Mapping[str, Scalar]]]:
        """The steps of these indices, which have their first loops in common, in the order in which they are done."""

        def own_loop(index: int) -> Loop | int:
            """The loop at this depth; a step without one stands alone."""
            return self.loops[index][depth] if len(self.loops[index]) > depth else index

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


# ---- Fields ----------------------------------------------------------------------


class _Missing(NamedTuple):
    """Why there is nothing that an alternative of a reference names."""

    why: str


class _Planner:
    """Fills in the fields of steps, one after another."""

    def __init__(self, outline: _Outline, run: str) -> None:
        self._outline, self._run = outline, run
        self._done: dict[str, PlannedStep] = {}

    def planned(self, turn: _Turn) -> PlannedStep:
        """A step with its fields, which its kind takes. Raises RecipeFault."""
        step = self._outline.file.steps[turn.index]
        base: KeyPath = ("steps", turn.index)
        if step.do not in STEP_KINDS:
            raise RecipeFault((*base, "do"), Invalid(None, expected=str(either(STEP_KINDS)), got=step.do))
        kind = STEP_KINDS[step.do]
        fields = self._value(step.fields, (*base, "with"), turn, None)
        takes = kind.takes(fields)
        for name, value in fields.items():
            for made in _made_in(value):
                self._check_taken(made, takes.get(name), (*base, "with", name), turn)
        fields = self._with_defaults(kind, fields, turn, takes)
        found = PlannedStep(turn.place, turn.key, step, turn.index, kind, turn.values, fields, kind.gives(fields))
        self._check_spec(found, (*base, "with"))
        self._check_compared(found, (*base, "with"))
        self._done[turn.key] = found
        return found

    def _value(self, value: Any, path: KeyPath, turn: _Turn, at: str | None) -> Any:
        """A value with what its references name; those of names are in keys, too."""
        try:
            if isinstance(value, str):
                return self._text(value, turn)
        except Invalid as error:
            raise RecipeFault(path, error, turn_of(turn.values)) from None
        if isinstance(value, list):
            found: list[Any] = []
            for place, each in enumerate(value):
                one = self._value(each, (*path, place), turn, at)
                found.extend(one) if isinstance(one, list | tuple) and not isinstance(one, Made) else found.append(one)
            return found
        if isinstance(value, dict):
            return {
                self._key(key, (*path, key), turn): self._value(each, (*path, key), turn, key)
                for key, each in value.items()
            }
        return value

    def _key(self, key: str, path: KeyPath, turn: _Turn) -> Any:
        found = self._value(key, path, turn, None)
        if isinstance(found, list) or (isinstance(found, Made) and found.many):
            raise RecipeFault(path, Invalid(None, expected="one name", got=Verbatim("several")), turn_of(turn.values))
        return found if isinstance(found, Made) else str(found)

    def _text(self, text: str, turn: _Turn) -> Any:
        """A text with the values of its references; what stands for all of it keeps its type."""
        references_in(text)
        if (whole := whole_reference(text)) is not None:
            return self._referenced(whole, turn)

        def within(reference: str) -> str:
            found = self._referenced(reference, turn)
            if isinstance(found, Made | list | tuple):
                got = Verbatim(f"${{{reference}}}, which stands within a text")
                raise Invalid(None, expected="an input or a variable that is one value", got=got)
            return str(found).lower() if isinstance(found, bool) else str(found)

        return filled_in(text, within)

    def _referenced(self, reference: str, turn: _Turn) -> Any:
        missing: list[str] = []
        for path in read_reference(reference, self._outline.variables):
            found = self._found(path, turn)
            if not isinstance(found, _Missing):
                return found
            missing.append(found.why)
        expected = f"something that there is for ${{{reference}}}"
        remedy = "give another with or, such as ${previous.train.model or base}"
        raise Invalid(None, expected=expected, got=Verbatim("; ".join(missing)), remedy=remedy)

    def _found(self, path: Path, turn: _Turn) -> Any:
        """What one alternative names: a value, what a step makes, or why there is none."""
        outline = self._outline
        if path.name in outline.indices:
            return self._made(path, turn)
        if path.qualifiers or path.output is not None:
            expected = f"one of the steps {', '.join(outline.indices)}"
            raise Invalid(None, expected=expected, got=path.name)
        if path.name == RUN:
            return self._run
        if path.name in turn.values:
            return turn.values[path.name]
        if path.name in outline.inputs:
            value = outline.inputs[path.name]
            if value == "":
                return _Missing(f"{path.name}, which is empty")
            return [*value] if isinstance(value, Sequence) and not isinstance(value, str) else value
        known = [*outline.inputs, *turn.values, *outline.indices]
        what = "an input, a variable of the step’s loops or a step"
        if path.name in outline.variables:
            what = f"{what}, as this step has no loop over {path.name}"
        raise Invalid(None, expected=f"{what} ({', '.join(known)})", got=path.name)

    # ---- What earlier steps make ---------------------------------------------------

    def _made(self, path: Path, turn: _Turn) -> Made | _Missing:
        outline, index = self._outline, self._outline.indices[path.name]
        of = outline.file.steps[index]
        qualified = self._qualified(path, index, turn)
        combinations: list[dict[str, Scalar]] = [{}]
        for loop in outline.loops[index]:
            values = self._values_of(loop, qualified.get(loop.name), path, turn)
            if isinstance(values, _Missing):
                return values
            combinations = [{**each, loop.name: value} for each in combinations for value in values]
        found = [outline.by_key.get(key_of(of.name, each)) for each in combinations]
        there = [each for each in found if each is not None]
        if LAST in qualified.values() and ALL not in qualified.values():
            there = there[-1:]
        many = ALL in qualified.values()
        bounded = many and any(
            loop.name in turn.values and qualified.get(loop.name) == ALL for loop in outline.loops[index]
        )
        if bounded:  # all so far
            there = [each for each in there if each.place < turn.place]
        if not there:
            return self._none_of(path, combinations, index)
        if any(each.place >= turn.place for each in there):
            raise self._later(path, turn, index)
        givers = [self._done[each.key] for each in there]
        output = path.output or next(iter(givers[0].gives))
        for giver in givers:
            if output not in giver.gives:
                expected = f"what {of.name} gives: {either(giver.gives)}"
                raise Invalid(None, expected=expected, got=output)
        return Made(tuple(each.key for each in givers), output, givers[0].gives[output], many)

    def _qualified(self, path: Path, index: int, turn: _Turn) -> dict[str, str]:
        """Which qualifier goes with which variable of a step's loops. Raises Invalid where that is not clear."""
        own = [loop.name for loop in self._outline.loops[index]]
        found: dict[str, str] = {}
        for qualifier, variable in path.qualifiers:
            if variable is None:
                free = [name for name in own if name not in turn.values]
                bound = [name for name in own if name in turn.values]
                among = bound if qualifier == PREVIOUS else free or bound
                if qualifier == ALL and free:
                    found |= dict.fromkeys(free, ALL)
                    continue
                if len(among) != 1:
                    got = Verbatim(path.text)
                    if not own:
                        raise Invalid(None, expected=f"{path.name} without {qualifier}, as it has no loop", got=got)
                    if not among:
                        expected = f"{LAST} or {ALL}, as this step is in no loop of {path.name}"
                        raise Invalid(None, expected=expected, got=got)
                    named = either(f"{qualifier}.{name}.{path.name}" for name in among)
                    raise Invalid(None, expected=f"{named}, as it has several loops", got=got)
                variable = among[0]
            if variable not in own:
                expected = f"a variable of the loops of {path.name} ({', '.join(own) or 'it has none'})"
                raise Invalid(None, expected=expected, got=variable)
            if qualifier == PREVIOUS and variable not in turn.values:
                expected = f"{LAST} or {ALL}, as this step has no loop over {variable}"
                raise Invalid(None, expected=expected, got=Verbatim(path.text))
            if qualifier == LAST and variable in turn.values:
                expected = f"{PREVIOUS}, {ALL} or neither, as this step is in the same loop over {variable}"
                raise Invalid(None, expected=expected, got=Verbatim(path.text))
            found[variable] = qualifier
        return found

    def _values_of(self, loop: Loop, qualifier: str | None, path: Path, turn: _Turn) -> Sequence[Scalar] | _Missing:
        """Those values of a loop's variable that a reference means."""
        now = turn.values.get(loop.name)
        if qualifier in (ALL, LAST):
            if loop.name not in turn.values:
                return loop.values
            place = loop.values.index(now) if now in loop.values else len(loop.values) - 1
            return loop.values[: place + 1]
        if loop.name not in turn.values:
            expected = f"{LAST}.{path.name} or {ALL}.{path.name}, as it is done for each {loop.name}"
            raise Invalid(None, expected=expected, got=Verbatim(path.text))
        if qualifier is None:
            return [now] if now is not None else []
        place = loop.values.index(now) if now in loop.values else 0
        if place == 0:
            return _Missing(f"{path.text}, as nothing is before {turn_of({loop.name: turn.values[loop.name]})}")
        return [loop.values[place - 1]]

    def _none_of(self, path: Path, combinations: Sequence[Mapping[str, Scalar]], index: int) -> _Missing:
        step = self._outline.file.steps[index]
        if step.when is not None:
            turn = turn_of(combinations[0]) if len(combinations) == 1 else ""
            return _Missing(f"{path.text}, left out{f' for {turn}' if turn else ''} by its when: {step.when}")
        return _Missing(f"{path.text}, of which there is none yet")

    def _later(self, path: Path, turn: _Turn, index: int) -> Invalid:
        """The error of a reference to a step that comes later, or to the step itself."""
        expected = "a step before this one"
        if index == turn.index:
            return Invalid(None, expected=expected, got=Verbatim(f"{path.text}, which is the step itself"))
        back = self._leads_to(index, self._outline.file.steps[turn.index].name)
        got = f"{path.text}, which comes later"
        return Invalid(
            None, expected=expected, got=Verbatim(f"{got} and itself waits for this one: a cycle" if back else got)
        )

    def _leads_to(self, start: int, name: str) -> bool:
        """Whether a step refers to that name, itself or by others."""
        outline, seen, due = self._outline, {start}, [start]
        while due:
            for text in _texts(outline.file.steps[due.pop()].fields):
                for reference in references_in(text):
                    for path in read_reference(reference, outline.variables):
                        if path.name == name and not any(each == PREVIOUS for each, _ in path.qualifiers):
                            return True
                        if (index := outline.indices.get(path.name)) is not None and index not in seen:
                            seen.add(index)
                            due.append(index)
        return False

    # ---- What a kind of steps takes ------------------------------------------------

    def _check_taken(self, made: Made, wanted: Sequence[str] | None, path: KeyPath, turn: _Turn) -> None:
        """Raises RecipeFault where what a step made does not fit the field that it is put into."""
        source = f"{self._done[made.keys[0]].step.name}.{made.output}, which is {made.what}"
        if wanted is None:
            expected = "an input or a variable of a loop here"
        elif made.what in wanted or (made.what == ANY_DATA and set(wanted) & set(DATASETS)):
            return
        else:
            expected = str(either(each for each in wanted if each != ANY_DATA or len(wanted) == 1))
        raise RecipeFault(path, Invalid(None, expected=expected, got=Verbatim(source)), turn_of(turn.values))

    def _with_defaults(self, kind: StepKind, fields: Mapping[str, Any], turn: _Turn, takes: Any) -> dict[str, Any]:
        """The fields with numbers of what is taken as text, and a name and a seed where none are given."""
        found = {name: _numbers_as_text(value) if name in takes else value for name, value in fields.items()}
        known = fields_of(kind.spec)
        if "name" in known and "name" not in found:
            found["name"] = self.name_of(kind, turn)
        if path := kind.seed(found):
            step = self._outline.file.steps[turn.index]
            run_seed = turn.values.get(SEED, self._outline.inputs.get(SEED, 0))
            seed = seed_of(run_seed, step.name if kind.same_seed else turn.key)
            *outer, last = path
            into = found
            for name in outer:
                inner = into.get(name, {})
                if not isinstance(inner, Mapping):
                    return found  # which the spec refuses
                into[name] = {**inner}
                into = into[name]
            into.setdefault(last, seed)
        return found

    def name_of(self, kind: StepKind, turn: _Turn) -> str:
        """What a model, a round or a dataset is called whose step does not say."""
        step = self._outline.file.steps[turn.index].name
        if MODEL in kind.gives({}).values():
            values = "-".join(_in_model_name(value) for value in turn.values.values())
            return f"{self._run}-{step}{f'-{values}' if values else ''}"
        return f"{self._run}, {turn.key}"[:_LONGEST_NAME].strip()

    def _check_spec(self, planned: PlannedStep, path: KeyPath) -> None:
        """Raises RecipeFault for fields that the kind's own spec refuses."""
        stands_for = _StandIns(planned, self._done)
        try:
            spec = planned.kind.spec.read(stands_for.value(planned.fields))
            planned.kind.check(spec)
        except FieldError as error:
            parts = {**error.parts, "got": stands_for.reworded(error.parts["got"])}
            at = _path_of(error.field, planned.step.fields)
            raise RecipeFault((*path, *at), type(error)(error.field, **parts), planned.turn) from None
        except AppError as error:
            raise RecipeFault(
                path, Invalid(None, expected="what can be done", got=Verbatim(error.message)), planned.turn
            ) from None

    def _check_compared(self, planned: PlannedStep, path: KeyPath) -> None:
        """Raises RecipeFault for an evaluation beside other matches, and for means over what has no such loop."""
        beside, over = planned.fields.get("beside"), planned.fields.get("over")
        if isinstance(beside, Made):
            other = self._done[beside.keys[0]]
            same = ("game", "matches", "material", "config", SEED)
            differs = next((name for name in same if other.fields.get(name) != planned.fields.get(name)), None)
            if other.kind is not planned.kind or differs:
                got = (
                    f"{other.step.name}, which is no evaluation"
                    if other.kind is not planned.kind
                    else (f"{other.step.name}, which has another {differs}")
                )
                remedy = "give both the same seed" if differs == SEED else None
                error = Invalid(None, expected="an evaluation of the same matches", got=Verbatim(got), remedy=remedy)
                raise RecipeFault((*path, "beside"), error, planned.turn)
        if over is not None and "of" in planned.fields:
            compared = [self._done[key] for made in planned.takes for key in made.keys]
            without = next((each.step.name for each in compared if over not in each.values), None)
            if without is not None:
                error = Invalid(None, expected=f"a variable of the loops of {without}", got=over)
                raise RecipeFault((*path, "over"), error, planned.turn)


class _StandIns:
    """What stands for things that are not there yet, while a spec is checked: each has another."""

    def __init__(self, planned: PlannedStep, done: Mapping[str, PlannedStep]) -> None:
        self._planned, self._done = planned, done
        self._of: dict[str, str] = {}

    def value(self, value: Any) -> Any:
        """A value with stand-ins in it."""
        return with_made(value, self._one)

    def reworded(self, got: Any) -> Any:
        """What came, with a stand-in as people know it."""
        return Verbatim(f"${{{self._of[got]}}}") if isinstance(got, str) and got in self._of else got

    def _one(self, key: str, made: Made) -> str:
        step = self._done[key]
        if made.what == FIGURES:
            return key
        text = f"{step.step.name}-{step.place}" if made.what == MODEL else str(_NUMBERED + step.place)
        self._of[text] = f"{step.step.name}.{made.output}"
        return text


def with_made(value: Any, one: Any) -> Any:
    """A value with what `one` gives for each key of a Made; a field of which it gives None is left out."""
    if isinstance(value, Made):
        found = [each for key in value.keys if (each := one(key, value)) is not None]
        return found if value.many else found[0] if found else None
    if isinstance(value, list):
        several = [with_made(each, one) for each in value]
        flat = [each for part in several for each in (part if isinstance(part, list) else [part])]
        return [each for each in flat if each is not None]
    if isinstance(value, Mapping):
        pairs = ((with_made(name, one), with_made(each, one)) for name, each in value.items())
        return {name: each for name, each in pairs if each is not None}
    return value


def _made_in(value: Any) -> Iterator[Made]:
    if isinstance(value, Made):
        yield value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _made_in(name)
            yield from _made_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _made_in(each)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield name
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _numbers_as_text(value: Any) -> Any:
    """The number of something in the database as specs take it."""
    if isinstance(value, list):
        return [_numbers_as_text(each) for each in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _in_model_name(value: Scalar) -> str:
    """A value as names of models can have it."""
    return "".join(each if each.isascii() and (each.isalnum() or each in "._") else "_" for each in str(value))


def _path_of(name: str | None, fields: Mapping[str, Any]) -> KeyPath:
    """The keys of a field by its name in an error; numbers are places of lists."""
    path: list[str | int] = []
    value: Any = fields
    for part in (name or "").split(".") if name else ():
        step: str | int = int(part) if isinstance(value, list) and part.isdecimal() else part
        path.append(step)
        value = value.get(part) if isinstance(value, Mapping) else None
    return tuple(path)


def seed_of(seed: Input, key: str) -> int:
    """The seed of a step, from that of the run and the step's key."""
    digest = hashlib.sha256(f"{seed}/{key}".encode()).digest()
    return int.from_bytes(digest[:8]) % (LARGEST_SEED + 1)


def _check_model_names(steps: Sequence[PlannedStep]) -> None:
    """Raises RecipeFault where two trainings would make models of the same name."""
    seen: dict[str, PlannedStep] = {}
    for step in steps:
        if MODEL not in step.gives.values():
            continue
        name = str(step.fields["name"])
        if name in seen:
            expected = "a name for each model that it makes, such as one with ${iteration} in it"
            got = Verbatim(f"{name} twice, by {seen[name].key} and by {step.key}")
            raise RecipeFault(("steps", step.index, "with", "name"), Invalid(None, expected=expected, got=got))
        seen[name] = step


def spec_of(step: PlannedStep, results: Mapping[str, Mapping[str, Any]]) -> JobSpec:
    """The spec of a step, of which all is known that it takes: `results` are those of steps by their keys."""
    return step.kind.spec.read(with_made(step.fields, lambda key, made: results[key].get(made.output)))
