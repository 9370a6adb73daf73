"""Expressions in a recipe's `for` and `when`, and between `${` and `}`: parsed, never run as code. Pure.

for:   NAME in 1..3  NAME in [1, 2, tiny]  NAME in an input that is a list
when:  NAME > 1       NAME == tiny and OTHER in [1, 3]  NAME  not NAME
${…}:  NAME           STEP.OUTPUT  previous.STEP.OUTPUT  all.NAME.STEP.OUTPUT  one or another  LIST[NAME]
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from app.core.errors import Invalid, Verbatim

Scalar = str | int | float | bool
Input = Scalar | Sequence[Scalar]

NAME = r"[a-z][a-z0-9_]{0,39}"
PREVIOUS, LAST, ALL = "previous", "last", "all"
QUALIFIERS = (PREVIOUS, LAST, ALL)
RUN = "run"  # the name of the run, in references
RESERVED = (*QUALIFIERS, RUN, "and", "or", "not", "in", "true", "false")
MOST_TURNS = 1000  # of one loop

_NAME = re.compile(NAME)
_CLAUSE = re.compile(rf"({NAME})\s+in\s+(\S.*)", re.DOTALL)
_RANGE = re.compile(rf"(-?\d{{1,9}}|{NAME})\s*\.\.\s*(-?\d{{1,9}}|{NAME})")
_LIST = re.compile(r"\[(.*)\]", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(\.\d+)?(?:[eE][+-]?\d{1,3})?")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_COMPARISON = re.compile(rf"({NAME})\s*(==|!=|<=|>=|<|>|\bin\b)\s*(\S.*)", re.DOTALL)
_ITEM = re.compile(rf"({NAME})\[({NAME})\]")
_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_ESCAPED = "$${"  # stands for a literal `${`
_EXAMPLES = "NAME in 1..3, or NAME in [1, 2, 3]"


# ---- Loops -----------------------------------------------------------------------


class Loop(NamedTuple):
    """A loop variable and the values that it takes in turn."""

    name: str
    values: tuple[Scalar, ...]

    def place_of(self, value: Scalar) -> int | None:
        """The position of a value; None if it is not one of the values."""
        return next((place for place, each in enumerate(self.values) if same_scalar(each, value)), None)


def read_loop(text: str, inputs: Mapping[str, Input]) -> Loop:
    """The loop that a clause of `for` describes. Raises Invalid."""
    found = _CLAUSE.fullmatch(text.strip())
    if found is None:
        raise Invalid(None, expected=_EXAMPLES, got=text)
    name, values = found[1], _read_loop_values(found[2].strip(), text, inputs)
    if not 1 <= len(values) <= MOST_TURNS:
        expected = f"1 to {MOST_TURNS} values of {name}"
        raise Invalid(None, expected=expected, got=Verbatim(str(len(values)) if values else "none"))
    if len({(type(each), each) for each in values}) < len(values):
        twice = next(each for place, each in enumerate(values) if each in values[:place])
        raise Invalid(None, expected=f"each value of {name} once", got=twice)
    return Loop(name, tuple(values))


def _read_loop_values(text: str, clause: str, inputs: Mapping[str, Input]) -> Sequence[Scalar]:
    if (ends := _RANGE.fullmatch(text)) is not None:
        first, last = (_whole(end, inputs) for end in ends.groups())
        if last - first >= MOST_TURNS:
            raise Invalid(None, expected=f"at most {MOST_TURNS} values", got=Verbatim(str(last - first + 1)))
        return range(first, last + 1)
    if (within := _LIST.fullmatch(text)) is not None:
        return [read_scalar(each) for each in split_items(within[1])]
    if _NAME.fullmatch(text):
        given = _input(text, inputs)
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise Invalid(
                None, expected=f"an input that is a list, or {_EXAMPLES}", got=Verbatim(f"{text}, which is {given!r}")
            )
        return given
    raise Invalid(None, expected=_EXAMPLES, got=clause)


def _whole(text: str, inputs: Mapping[str, Input]) -> int:
    if not _NAME.fullmatch(text):
        return int(text)
    given = _input(text, inputs)
    if not isinstance(given, int) or isinstance(given, bool):
        raise Invalid(None, expected="whole numbers at both ends", got=Verbatim(f"{text}, which is {given!r}"))
    return given


def _input(name: str, inputs: Mapping[str, Input]) -> Input:
    if name not in inputs:
        raise Invalid(None, expected=f"one of the inputs {', '.join(inputs) or '(there are none)'}", got=name)
    return inputs[name]


def split_items(text: str) -> list[str]:
    """The items between the brackets of a list, split at commas outside quotes."""
    if not text.strip():
        return []
    return [each.strip() for each in re.findall(r"(?:'[^']*'|\"[^\"]*\"|[^,])+", text)]


def read_scalar(text: str) -> Scalar:
    """A number, true, false, or text with or without quotes. Raises Invalid."""
    if (quoted := _QUOTED.fullmatch(text)) is not None:
        return quoted[1] if quoted[1] is not None else quoted[2]
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text):
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    if not text or re.search(r"[\s'\"\[\]{}$]", text):
        raise Invalid(None, expected="a number, a word, or text in quotes", got=text)
    return text


# ---- Conditions ------------------------------------------------------------------

_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


class ConditionPart(NamedTuple):
    """A part of a condition: a name, an operator and its operands; without an operator, that the name is true."""

    name: str
    sign: str
    values: tuple[Scalar, ...]


def read_condition(text: str) -> Sequence[ConditionPart]:
    """The comparisons of a condition, all of which must hold. Raises Invalid."""
    found = []
    for part in (each.strip() for each in re.split(r"\band\b", text)):
        if (comparison := _COMPARISON.fullmatch(part)) is not None:
            name, sign, right = comparison.groups()
            found.append(ConditionPart(name, sign, _read_compared_values(sign, right.strip(), text)))
        elif (plain := re.fullmatch(rf"(not\s+)?({NAME})", part)) is not None and plain[2] not in RESERVED:
            found.append(ConditionPart(plain[2], "==", (not plain[1],)))
        else:
            raise Invalid(None, expected="comparisons such as NAME > 1, with and between them", got=text)
    return found


def _read_compared_values(sign: str, right: str, text: str) -> tuple[Scalar, ...]:
    if sign != "in":
        value = read_scalar(right)
        if sign in _SIGNS and (isinstance(value, str | bool)):
            raise Invalid(None, expected=f"a number after {sign}", got=value)
        return (value,)
    within = _LIST.fullmatch(right)
    if within is None:
        raise Invalid(None, expected="a list in brackets after in", got=text)
    return tuple(read_scalar(each) for each in split_items(within[1]))


def holds(condition: Sequence[ConditionPart], known: Mapping[str, Input]) -> bool:
    """Whether all comparisons hold for these values.

    Raises Invalid for an unknown name, and for a value that cannot be compared in this way.
    """
    return all(_is_comparison_true(each, known) for each in condition)


def _is_comparison_true(comparison: ConditionPart, known: Mapping[str, Input]) -> bool:
    name, sign, values = comparison
    if name not in known:
        raise Invalid(
            None, expected=f"an input or a variable of the step's loops ({', '.join(known) or 'none'})", got=name
        )
    value = known[name]
    if sign in _SIGNS:
        if isinstance(value, str | bool) or not isinstance(value, int | float):
            raise Invalid(None, expected=f"a number before {sign}", got=Verbatim(f"{name}, which is {value!r}"))
        return _SIGNS[sign](value, float(values[0]))
    equal = any(same_scalar(value, each) for each in values)
    return equal != (sign == "!=")


def same_scalar(one: Input, other: Scalar) -> bool:
    """Whether two values are equal; true is not 1, and 1 is 1.0."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


# ---- References ------------------------------------------------------------------


class Path(NamedTuple):
    """One alternative of a reference.

    `name` is an input, a loop variable or a step; `output` is an output of the step, by default its first. `qualifiers`
    select the iterations of loops, each with the loop's variable if it is named. With `at`, the input is a list, from
    which the value at the position of the variable `at` in its loop is taken.
    """

    name: str
    output: str | None = None
    qualifiers: tuple[tuple[str, str | None], ...] = ()
    text: str = ""
    at: str | None = None


def read_reference(text: str, variables: Sequence[str]) -> Sequence[Path]:
    """The alternatives between `${` and `}`; the first that exists is used.

    `variables` are the variables of all loops. Raises Invalid.
    """
    return [_read_reference_path(each.strip(), text, variables) for each in re.split(r"\bor\b", text)]


def _read_reference_path(text: str, whole: str, variables: Sequence[str]) -> Path:
    if (item := _ITEM.fullmatch(text)) is not None and item[1] not in RESERVED:
        return Path(item[1], text=text, at=item[2])
    parts = text.split(".")
    if not all(_NAME.fullmatch(each) for each in parts):
        expected = "a reference such as base, play.round or previous.train.model, with or between alternatives"
        raise Invalid(None, expected=expected, got=Verbatim(f"${{{whole}}}"))
    qualifiers: list[tuple[str, str | None]] = []
    while parts and parts[0] in QUALIFIERS:
        qualifier = parts.pop(0)
        qualifiers.append((qualifier, parts.pop(0) if parts and parts[0] in variables else None))
    if not 1 <= len(parts) <= 2 or (parts[0] in RESERVED and parts != [RUN]):
        expected = "the name of a step, perhaps with a dot and what it gives"
        raise Invalid(None, expected=expected, got=Verbatim(f"${{{whole}}}"))
    return Path(parts[0], parts[1] if len(parts) > 1 else None, tuple(qualifiers), text)


def references_in(text: str) -> Sequence[str]:
    """The text between each `${` and `}`. Raises Invalid if one is not closed."""
    plain = text.replace(_ESCAPED, "")
    found = _REFERENCE.findall(plain)
    if "${" in _REFERENCE.sub("", plain):
        raise Invalid(None, expected="a } for each ${", got=text, remedy="write $${ for a ${ that is no reference")
    return found


def whole_reference(text: str) -> str | None:
    """The text between `${` and `}` if they enclose the whole text, else None."""
    found = _REFERENCE.fullmatch(text.strip())
    return None if found is None else found[1]


def filled_in(text: str, value: Callable[[str], str]) -> str:
    """A text with each reference replaced by its value."""
    parts = text.split(_ESCAPED)
    return "${".join(_REFERENCE.sub(lambda found: value(found[1]), part) for part in parts)


def literal(value: Any) -> Any:
    """A value for the fields of a step, with each `${` in its texts escaped, so that it is no reference."""
    if isinstance(value, str):
        return value.replace("${", _ESCAPED)
    if isinstance(value, Mapping):
        return {literal(name): literal(each) for name, each in value.items()}
    return [literal(each) for each in value] if isinstance(value, list | tuple) else value
