"""The language of a chart: how its words are translated, and how it writes numbers. Pure.

What is drawn for the command line is English; a page hands over its own language (`app/web/chart_language.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.core.errors import Phrase

PERSON, PEOPLE = "person", "people"  # who plays without a name


@dataclass(frozen=True, slots=True)
class Language:
    """How to translate a text, which stays as it is where no translation is known, and the signs of numbers."""

    translate: Callable[[str], str] = str
    decimal: str = "."
    thousands: str = ","
    percent: str = "%"  # with the space before it, if there is one

    def gettext(self, text: str, **values: object) -> str:
        """The text with its values, `%%` as a percent sign; `python -m scripts.translations` finds it by this name."""
        return self.translate(text) % values

    def phrase(self, phrase: Phrase) -> str:
        """A phrase of a layer below."""
        return phrase.render(self.translate)

    def player(self, name: str) -> str:
        """Who sat in a seat: a model has its name, a person none."""
        return self.translate(name) if name in (PERSON, PEOPLE) else name

    def decimals(self, value: float, digits: int) -> str:
        """A number with so many digits after its decimal sign."""
        return self._signs(f"{value:.{digits}f}")

    def shortest(self, value: float) -> str:
        """A number with as many digits as it needs, six at most."""
        return self._signs(f"{value:g}")

    @property
    def locale(self) -> Mapping[str, Any]:
        """The signs of numbers as Vega's config has them."""
        signs = {"decimal": self.decimal, "thousands": self.thousands, "percent": self.percent}
        return {"number": {**signs, "grouping": [3], "currency": ["$", ""]}}

    def _signs(self, number: str) -> str:
        return number.replace("-", "−").replace(".", self.decimal)


ENGLISH = Language()
