"""The plan of a recipe: a step for each loop iteration, with the outputs that it takes from earlier steps.

The plan depends only on the file and the inputs, so it is complete before the first step begins. A step's outputs are
known when it is done; until then a `Made` stands in for them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.core.errors import AppError, FieldError, Invalid, Verbatim, either
from app.core.validation import KeyPath
from app.finetuning.spec import TrainingSpec
from app.jobs.spec import JobSpec, fields_of
from app.recipes.expressions import Input, Scalar
from app.recipes.faults import RecipeFault
from app.recipes.made import Made, made_in, with_made
from app.recipes.outline import LoopTurn, Outline, key_of, turn_of
from app.recipes.recipe_file import RecipeFile, WrittenStep
from app.recipes.references import ReferenceReader
from app.recipes.step_kinds import ANY_DATA, DATASETS, FIGURES, MODEL, STEP_KINDS, StepKind
from app.recipes.sweep import SEED, SWEEP, Sweep

_LARGEST_OF_STEP = 2**31 - 1  # for the seeds derived from the run's: every kind of job accepts it
_LONGEST_NAME = 80  # for models and datasets
_NUMBERED = 1_000_000_000  # placeholders for the numbers of what does not exist yet are above this


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step in one iteration of its loops. `fields` are its kind's spec fields, with a Made for each output that it
    takes.
    """

    place: int  # position among all steps of the run
    key: str  # its name and the values of its loops' variables
    step: WrittenStep
    index: int  # the step's position in the file
    kind: StepKind
    values: Mapping[str, Scalar]  # the values of its loops' variables
    fields: Mapping[str, Any]
    gives: Mapping[str, str]
    draft: JobSpec  # with placeholders for what does not exist yet

    @property
    def turn(self) -> str:
        """The values of its loop variables, for display."""
        return turn_of(self.values)

    @property
    def takes(self) -> Sequence[Made]:
        """The outputs that it takes from earlier steps."""
        return [*made_in(self.fields)]


@dataclass(frozen=True, slots=True)
class RecipePlan:
    """All steps of a run in order, the inputs that determine them, and the sweep."""

    file: RecipeFile
    inputs: Mapping[str, Input]
    steps: Sequence[PlannedStep]
    by_key: Mapping[str, PlannedStep] = field(repr=False)
    sweep: Sweep


def plan(file: RecipeFile, given: Mapping[str, Input] | None = None, run: str | None = None) -> RecipePlan:
    """The steps of a recipe with these inputs. `run` is the name of the run, by default the recipe's.

    Raises RecipeFault for the first error.
    """
    inputs = {**file.inputs, **(given or {})}
    _check_seed(inputs)
    outline = outline_of(file, inputs)
    planner = _Planner(outline, run or file.recipe)
    steps = [planner.planned(turn) for turn in outline.turns]
    _check_model_names(steps)
    return RecipePlan(file, inputs, steps, {step.key: step for step in steps}, outline.sweep)


def outline_of(file: RecipeFile, inputs: Mapping[str, Input]) -> Outline:
    """The steps for each iteration of their loops. Raises RecipeFault."""
    return Outline(file, inputs, [index for index, step in enumerate(file.steps) if _takes_seed(step)])


def _takes_seed(step: WrittenStep) -> bool:
    """Whether a step's seed is derived from the run's; for a training whose method is a reference, it may be."""
    kind = STEP_KINDS.get(step.do)
    if kind is None:
        return False
    path = ("config", SEED) if kind.spec is TrainingSpec else kind.seed(step.fields)
    value: Any = step.fields
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return bool(path) and value is None


def _check_seed(inputs: Mapping[str, Input]) -> None:
    seed = inputs.get(SEED, 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**62:
        expected = "a whole number from 0 to below 2^62, from which the seeds of steps follow"
        raise RecipeFault(("inputs", SEED), Invalid(None, expected=expected, got=seed))


class _Planner:
    """Fills in the fields of steps in order."""

    def __init__(self, outline: Outline, run: str) -> None:
        self._outline, self._run = outline, run
        self._done: dict[str, PlannedStep] = {}
        self._gives: dict[str, Mapping[str, str]] = {}
        self._references = ReferenceReader(outline, run, self._gives)

    def planned(self, turn: LoopTurn) -> PlannedStep:
        """A step with its fields, checked by its kind. Raises RecipeFault."""
        step = self._outline.file.steps[turn.index]
        base: KeyPath = ("steps", turn.index)
        if step.do not in STEP_KINDS:
            raise RecipeFault((*base, "do"), Invalid(None, expected=str(either(STEP_KINDS)), got=step.do))
        try:
            return self._plan_step(turn, step, STEP_KINDS[step.do], base)
        except RecipeFault as fault:
            axis = self._outline.sweep.axis_of(step.name, fault.path[3:])
            raise fault if axis is None else RecipeFault((SWEEP, axis.field), fault.error, fault.turn) from None

    def _plan_step(self, turn: LoopTurn, step: WrittenStep, kind: StepKind, base: KeyPath) -> PlannedStep:
        written = self._outline.sweep.fields(step.name, step.fields, turn.values)
        fields = self._references.value(written, (*base, "with"), turn)
        takes = kind.takes(fields)
        for name, value in fields.items():
            for made in made_in(value):
                self._check_taken(made, takes.get(name), (*base, "with", name), turn)
        fields = self._with_defaults(kind, fields, turn, takes)
        gives = kind.gives(fields)
        draft = self._read_draft(kind, fields, turn)
        found = PlannedStep(turn.place, turn.key, step, turn.index, kind, turn.values, fields, gives, draft)
        self._check_compared(found, (*base, "with"))
        self._done[turn.key], self._gives[turn.key] = found, gives
        return found

    def _check_taken(self, made: Made, wanted: Sequence[str] | None, path: KeyPath, turn: LoopTurn) -> None:
        """Raises RecipeFault if an output of a step does not fit the field that takes it."""
        source = f"{self._done[made.keys[0]].step.name}.{made.output}, which is {made.what}"
        if wanted is None:
            expected = "an input or a variable of a loop here"
        elif made.what in wanted or (made.what == ANY_DATA and set(wanted) & set(DATASETS)):
            return
        else:
            expected = str(either(each for each in wanted if each != ANY_DATA or len(wanted) == 1))
        raise RecipeFault(path, Invalid(None, expected=expected, got=Verbatim(source)), turn_of(turn.values))

    def _with_defaults(self, kind: StepKind, fields: Mapping[str, Any], turn: LoopTurn, takes: Any) -> dict[str, Any]:
        """The fields with taken numbers as text, and with a name and a seed where none are given."""
        found = {name: _numbers_as_text(value) if name in takes else value for name, value in fields.items()}
        known = fields_of(kind.spec)
        if "name" in known and "name" not in found:
            found["name"] = self.name_of(kind, turn)
        if path := kind.seed(found):
            step = self._outline.file.steps[turn.index]
            run_seed = turn.values.get(SEED, self._outline.inputs.get(SEED, 0))
            seed = seed_of(run_seed, step.name if kind.same_seed else self._key_without_swept(turn))
            *outer, last = path
            into = found
            for name in outer:
                inner = into.get(name, {})
                if not isinstance(inner, Mapping):
                    return found  # the spec refuses it
                into[name] = {**inner}
                into = into[name]
            into.setdefault(last, seed)
        return found

    def _key_without_swept(self, turn: LoopTurn) -> str:
        """The key of a step without swept values, so that cells of one seed differ only in these."""
        step, swept = self._outline.file.steps[turn.index], [axis.variable for axis in self._outline.sweep.axes]
        return key_of(step.name, {name: value for name, value in turn.values.items() if name not in swept})

    def name_of(self, kind: StepKind, turn: LoopTurn) -> str:
        """The default name for the model, round or dataset that a step makes."""
        step = self._outline.file.steps[turn.index].name
        if MODEL in kind.gives({}).values():
            values = "-".join(_in_model_name(value) for value in turn.values.values())
            return f"{self._run}-{step}{f'-{values}' if values else ''}"
        return f"{self._run}, {turn.key}"[:_LONGEST_NAME].strip()

    def _read_draft(self, kind: StepKind, fields: Mapping[str, Any], turn: LoopTurn) -> JobSpec:
        """The fields parsed by the kind's own spec. Raises RecipeFault for what it refuses."""
        path: KeyPath = ("steps", turn.index, "with")
        stands_for = _StandIns(self._done)
        try:
            spec = kind.spec.read(with_made(fields, stands_for.one))
            kind.check(spec)
        except FieldError as error:
            reworded = error.of(error.field, got=stands_for.reworded(error.parts["got"]))
            at = _path_of(error.field, fields)
            raise RecipeFault((*path, *at), reworded, turn_of(turn.values)) from None
        except AppError as error:
            refused = Invalid(None, expected="what can be done", got=Verbatim(error.message))
            raise RecipeFault(path, refused, turn_of(turn.values)) from None
        return spec

    def _check_compared(self, planned: PlannedStep, path: KeyPath) -> None:
        """Raises RecipeFault for an evaluation beside other matches, and for means over a loop that a step lacks."""
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
    """Placeholders for things that do not exist yet, used while a spec is checked; each thing has its own."""

    def __init__(self, done: Mapping[str, PlannedStep]) -> None:
        self._done = done
        self._of: dict[str, str] = {}

    def one(self, key: str, made: Made) -> str:
        """The placeholder for one thing."""
        step = self._done[key]
        if made.what == FIGURES:
            return key
        text = f"{step.step.name}-{step.place}" if made.what == MODEL else str(_NUMBERED + step.place)
        self._of[text] = f"{step.step.name}.{made.output}"
        return text

    def reworded(self, got: Any) -> Any:
        """The refused value, with a placeholder replaced by its reference."""
        return Verbatim(f"${{{self._of[got]}}}") if isinstance(got, str) and got in self._of else got


def _numbers_as_text(value: Any) -> Any:
    """Numbers of database objects as text, which specs take."""
    if isinstance(value, list):
        return [_numbers_as_text(each) for each in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _in_model_name(value: Scalar) -> str:
    """A value in characters that model names may contain."""
    return "".join(each if each.isascii() and (each.isalnum() or each in "._") else "_" for each in str(value))


def _path_of(name: str | None, fields: Mapping[str, Any]) -> KeyPath:
    """The key path of a field from its name in an error; numbers are positions in lists."""
    path: list[str | int] = []
    value: Any = fields
    for part in (name or "").split(".") if name else ():
        step: str | int = int(part) if isinstance(value, list) and part.isdecimal() else part
        path.append(step)
        value = value.get(part) if isinstance(value, Mapping) else None
    return tuple(path)


def seed_of(seed: Input, key: str) -> int:
    """The seed of a step, derived from the run's seed and the step's key."""
    digest = hashlib.sha256(f"{seed}/{key}".encode()).digest()
    return int.from_bytes(digest[:8]) % (_LARGEST_OF_STEP + 1)


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
    """The spec of a step whose inputs are all known: `results` has those of earlier steps by their keys."""
    return step.kind.spec.read(with_made(step.fields, lambda key, made: results[key].get(made.output)))
