"""The language of a chart: how its words are translated and its numbers written. Pure.

Charts for the command line are in English; a page passes its own language (`app/web/chart_language.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.core.errors import Phrase

PERSON, PEOPLE = "person", "people"  # players without a name


@dataclass(frozen=True, slots=True)
class Language:
    """How to translate a text, which is unchanged without a translation, and the signs used in numbers."""

    translate: Callable[[str], str] = str
    decimal: str = "."
    thousands: str = ","
    percent: str = "%"  # including any space before it

    def gettext(self, text: str, **values: object) -> str:
        """The text with its values, `%%` as a percent sign; `python -m scripts.translations` looks for this name."""
        return self.translate(text) % values

    def phrase(self, phrase: Phrase) -> str:
        """A phrase from a lower layer."""
        return phrase.render(self.translate)

    def player(self, name: str) -> str:
        """The player in a seat: a model has a name, a person none."""
        return self.translate(name) if name in (PERSON, PEOPLE) else name

    def decimals(self, value: float, digits: int) -> str:
        """A number with `digits` digits after its decimal sign."""
        return self._signs(f"{value:.{digits}f}")

    def shortest(self, value: float) -> str:
        """A number with as many digits as it needs, at most six."""
        return self._signs(f"{value:g}")

    @property
    def locale(self) -> Mapping[str, Any]:
        """The signs of numbers, as in Vega's config."""
        signs = {"decimal": self.decimal, "thousands": self.thousands, "percent": self.percent}
        return {"number": {**signs, "grouping": [3], "currency": ["$", ""]}}

    def _signs(self, number: str) -> str:
        return number.replace("-", "−").replace(".", self.decimal)


ENGLISH = Language()
