"""Resolves the references in a step's fields: inputs, loop variables, and outputs of earlier steps. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.core.errors import Invalid, Verbatim, either
from app.core.validation import KeyPath
from app.recipes.expressions import (
    ALL,
    LAST,
    PREVIOUS,
    RUN,
    Loop,
    Path,
    Scalar,
    filled_in,
    read_reference,
    references_in,
    same_scalar,
    whole_reference,
)
from app.recipes.faults import RecipeFault
from app.recipes.made import Made
from app.recipes.outline import LoopTurn, Outline, key_of, turn_of
from app.recipes.sweep_reach import paths_of


class _Missing(NamedTuple):
    """The reason why an alternative of a reference names nothing that exists."""

    why: str


class ReferenceReader:
    """Fills in the references in the fields of steps, one step after another.

    `gives` has the outputs of earlier steps, by their keys; the planner of a step adds that step's outputs.
    """

    def __init__(self, outline: Outline, run: str, gives: Mapping[str, Mapping[str, str]]) -> None:
        self._outline, self._run, self._gives = outline, run, gives

    def value(self, value: Any, path: KeyPath, turn: LoopTurn) -> Any:
        """A value with its references resolved, including those in the keys of mappings."""
        try:
            if isinstance(value, str):
                return self._resolve_text(value, turn)
        except Invalid as error:
            raise RecipeFault(path, error, turn_of(turn.values)) from None
        if isinstance(value, list):
            found: list[Any] = []
            for place, each in enumerate(value):
                one = self.value(each, (*path, place), turn)
                found.extend(one) if isinstance(one, list | tuple) and not isinstance(one, Made) else found.append(one)
            return found
        if isinstance(value, dict):
            return {
                self._resolve_key(key, (*path, key), turn): self.value(each, (*path, key), turn)
                for key, each in value.items()
            }
        return value

    def _resolve_key(self, key: str, path: KeyPath, turn: LoopTurn) -> Any:
        found = self.value(key, path, turn)
        if isinstance(found, list) or (isinstance(found, Made) and found.many):
            raise RecipeFault(path, Invalid(None, expected="one name", got=Verbatim("several")), turn_of(turn.values))
        return found if isinstance(found, Made) else str(found)

    def _resolve_text(self, text: str, turn: LoopTurn) -> Any:
        """A text with its references replaced by their values; a reference that is the whole text keeps its type."""
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

    def _referenced(self, reference: str, turn: LoopTurn) -> Any:
        missing: list[str] = []
        for path in read_reference(reference, self._outline.variables):
            found = self._resolve_alternative(path, turn)
            if not isinstance(found, _Missing):
                return found
            missing.append(found.why)
        expected = f"an existing value for ${{{reference}}}"
        remedy = "give another with or, such as ${previous.train.model or base}"
        raise Invalid(None, expected=expected, got=Verbatim("; ".join(missing)), remedy=remedy)

    def _resolve_alternative(self, path: Path, turn: LoopTurn) -> Any:
        """What one alternative names: a value, an output of a step, or the reason why it does not exist."""
        outline = self._outline
        if path.at is not None:
            return self._item(path.name, path.at, turn)
        if path.name in outline.indices:
            return self._resolve_step_output(path, turn)
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

    def _item(self, name: str, variable: str, turn: LoopTurn) -> Scalar:
        """The value of a list input at the current position of a variable in its loop. Raises Invalid."""
        values: Any = self._outline.inputs.get(name)
        if not isinstance(values, list | tuple):
            lists = [each for each, value in self._outline.inputs.items() if isinstance(value, list | tuple)]
            raise Invalid(None, expected=f"an input that is a list ({', '.join(lists) or 'there is none'})", got=name)
        loop = next((each for each in self._outline.loops(turn.index, turn.values) if each.name == variable), None)
        if loop is None:
            expected = f"a variable of the step’s loops in brackets ({', '.join(turn.values) or 'it has none'})"
            raise Invalid(None, expected=expected, got=variable)
        if len(values) != len(loop.values):
            expected = f"as many values of {name} as {variable} has, {len(loop.values)}"
            raise Invalid(None, expected=expected, got=Verbatim(str(len(values))))
        now = turn.values[variable]
        found: Scalar = next(item for value, item in zip(loop.values, values, strict=True) if same_scalar(value, now))
        return found

    # ---- What earlier steps make ---------------------------------------------------

    def _resolve_step_output(self, path: Path, turn: LoopTurn) -> Made | _Missing:
        outline, index = self._outline, self._outline.indices[path.name]
        of = outline.file.steps[index]
        qualified = self._qualified(path, index, turn)
        combinations: list[dict[str, Scalar]] = [{}]
        for loop in outline.loops(index, turn.values):
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
            loop.name in turn.values and qualified.get(loop.name) == ALL for loop in outline.loops(index, turn.values)
        )
        if bounded:  # all up to this turn
            there = [each for each in there if each.place < turn.place]
        if not there:
            return self._none_of(path, combinations, index)
        if any(each.place >= turn.place for each in there):
            raise self._later(path, turn, index)
        given = [self._gives[each.key] for each in there]
        output = path.output or next(iter(given[0]))
        if without := next((each for each in given if output not in each), None):
            raise Invalid(None, expected=f"what {of.name} gives: {either(without)}", got=output)
        return Made(tuple(each.key for each in there), output, given[0][output], many)

    def _qualified(self, path: Path, index: int, turn: LoopTurn) -> dict[str, str]:
        """The qualifier for each variable of a step's loops. Raises Invalid where that is ambiguous."""
        loops = self._outline.loops(index, turn.values)
        own = [loop.name for loop in loops if not self._outline.is_swept(loop.name)]  # a cell sees only its own steps
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

    def _values_of(self, loop: Loop, qualifier: str | None, path: Path, turn: LoopTurn) -> Sequence[Scalar] | _Missing:
        """The values of a loop's variable to which a reference applies."""
        now = turn.values.get(loop.name)
        if qualifier in (ALL, LAST):
            if loop.name not in turn.values:
                return loop.values
            place = loop.place_of(turn.values[loop.name])
            return loop.values if place is None else loop.values[: place + 1]
        if loop.name not in turn.values:
            expected = f"{LAST}.{path.name} or {ALL}.{path.name}, as it is done for each {loop.name}"
            raise Invalid(None, expected=expected, got=Verbatim(path.text))
        if qualifier is None:
            return [now] if now is not None else []
        place = loop.place_of(turn.values[loop.name])
        if not place:
            return _Missing(f"{path.text}, as nothing is before {turn_of({loop.name: turn.values[loop.name]})}")
        return [loop.values[place - 1]]

    def _none_of(self, path: Path, combinations: Sequence[Mapping[str, Scalar]], index: int) -> _Missing:
        step = self._outline.file.steps[index]
        if step.when is not None:
            turn = turn_of(combinations[0]) if len(combinations) == 1 else ""
            return _Missing(f"{path.text}, left out{f' for {turn}' if turn else ''} by its when: {step.when}")
        return _Missing(f"{path.text}, of which there is none yet")

    def _later(self, path: Path, turn: LoopTurn, index: int) -> Invalid:
        """The error for a reference to a later step, or to the step itself."""
        expected = "a step before this one"
        if index == turn.index:
            return Invalid(None, expected=expected, got=Verbatim(f"{path.text}, which is the step itself"))
        back = self._leads_to(index, self._outline.file.steps[turn.index].name)
        got = f"{path.text}, which comes later"
        return Invalid(
            None, expected=expected, got=Verbatim(f"{got} and itself waits for this one: a cycle" if back else got)
        )

    def _leads_to(self, start: int, name: str) -> bool:
        """Whether a step refers to that name, directly or through other steps."""
        outline, seen, due = self._outline, {start}, [start]
        while due:
            for path in paths_of(outline.file.steps[due.pop()], outline.variables):
                if path.name == name and not any(each == PREVIOUS for each, _ in path.qualifiers):
                    return True
                if (index := outline.indices.get(path.name)) is not None and index not in seen:
                    seen.add(index)
                    due.append(index)
        return False
