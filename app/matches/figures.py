"""Figures of finished matches, used to filter and sort lists."""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, case

from app.core.errors import Invalid, Phrase
from app.models import MatchRow

_FIRST, _SECOND = MatchRow.utility_0, MatchRow.utility_1
# Figures that the database computes of a match, by name; NULL until it is over.
FIGURES: Mapping[str, Any] = {
    "lower_score": case((_FIRST < _SECOND, _FIRST), else_=_SECOND),
    "higher_score": case((_FIRST > _SECOND, _FIRST), else_=_SECOND),
    "joint_score": _FIRST + _SECOND,
    "moves": MatchRow.moves,
    "words": MatchRow.words,
    "refused": MatchRow.refused,
}
_OPERATORS: Mapping[str, Callable[[Any, float], Any]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "=": operator.eq,
}  # fmt: skip
_BOUND = re.compile(r"(?P<name>[a-z_]+)\s*(?P<operator><=|>=|<|>|=)\s*(?P<number>-?\d{1,9}(\.\d{1,6})?)", re.ASCII)


class Bound(NamedTuple):
    """A bound on a figure: `name` is one of FIGURES, `operator` one of < > <= >= =."""

    name: str
    operator: str
    number: float

    def __str__(self) -> str:
        return f"{self.name}{self.operator}{self.number:.15g}"

    @property
    def condition(self) -> ColumnElement[bool]:
        """The bound as a WHERE condition over MatchRow, true only of finished matches."""
        found: ColumnElement[bool] = _OPERATORS[self.operator](FIGURES[self.name], self.number)
        return found & (MatchRow.status == "over")


def read_figures(text: str) -> list[Bound]:
    """Bounds as they are typed, such as `refused>=2 lower_score<3`, with spaces or commas between them.

    Raises Invalid for anything else.
    """
    found, place = [], 0
    while rest := text[place:].lstrip(" ,"):
        bound = _BOUND.match(rest)
        after = rest[bound.end() : bound.end() + 1] if bound else ""
        if bound is None or bound["name"] not in FIGURES or (after and after not in " ,"):
            expected = Phrase(
                "bounds such as %(example)s, of %(figures)s", example="refused>=2", figures=", ".join(FIGURES)
            )
            raise Invalid("figures", expected=expected, got=rest)
        found.append(Bound(bound["name"], bound["operator"], float(bound["number"])))
        place = len(text) - len(rest) + bound.end()
    return found


def is_of_scores(name: str) -> bool:
    """Whether a figure reveals how a match ended."""
    return name.endswith("_score")
