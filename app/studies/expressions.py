"""Rules about a person: a name, a comparison and a value, such as `attention < 2`. Pure."""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from app.core.errors import Invalid, Verbatim, either

_FORM = re.compile(r"([a-z][a-z0-9_]*)\s*(<=|>=|!=|<|>|=)\s*(\S.*)")
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip


_EQUALITY = ("=", "!=")


class Words(NamedTuple):
    """A value that is one of these choices, or any text if there are none."""

    choices: Sequence[str] = ()


class Numbers(NamedTuple):
    """A number in this range, a whole one if `whole`."""

    least: float = -math.inf
    most: float = math.inf
    whole: bool = False


class ComparisonRule(NamedTuple):
    """A rule. `value` is kept as written; it is a number if it is compared with one."""

    name: str
    sign: str
    value: str

    @property
    def number(self) -> float | None:
        """The value as a number; None if it is not one."""
        try:
            found = float(self.value)
        except ValueError:
            return None
        return found if math.isfinite(found) else None

    def holds(self, found: float | str | None) -> bool:
        """Whether the rule holds for a value; never for a missing one, and only numbers are ordered."""
        if isinstance(found, str):
            return self.sign in _EQUALITY and (found == self.value) == (self.sign == "=")
        return found is not None and self.number is not None and _COMPARE[self.sign](found, self.number)


def check_rule(rule: ComparisonRule, possible: Words | Numbers) -> None:
    """Raises Invalid for a rule that never or always holds for the possible values."""
    text = Verbatim(f"{rule.name} {rule.sign} {rule.value}")
    if isinstance(possible, Words):
        if rule.sign not in _EQUALITY:
            raise Invalid(None, expected=f"= or !=, as {rule.name} is answered in words", got=text)
        if possible.choices and rule.value not in possible.choices:
            raise Invalid(None, expected=either(possible.choices), got=rule.value)
        return
    if rule.number is None:
        raise Invalid(None, expected=f"a number, as {rule.name} is one", got=text)
    least, most, whole = possible
    among = [least, most]
    if least <= rule.number <= most and (rule.number.is_integer() or not whole):
        among.append(rule.number)
    if len({_COMPARE[rule.sign](each, rule.number) for each in among}) < 2:
        span = "" if math.isinf(most) else f" to {most:g}"
        kind = "a whole number" if whole else "a number"
        expected = f"a rule that holds for some, as {rule.name} is {kind} from {least:g}{span}"
        raise Invalid(None, expected=expected, got=text)


def read_comparison(text: str) -> ComparisonRule:
    """The rule in a text. Raises Invalid if it is not a comparison."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise Invalid(None, expected="a comparison such as attention < 2", got=text)
    rule = ComparisonRule(*found.groups())
    if rule.sign not in _EQUALITY and rule.number is None:
        raise Invalid(None, expected=f"a number after {rule.sign}", got=rule.value)
    return rule
