"""A chart: a Vega-Lite spec that includes its data, in light or dark, and a text that says the same."""

import csv
import io
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.analysis.bootstrap import Figure
from app.analysis.language import ENGLISH, Language
from app.analysis.themes import LIGHT, Palette, config, palette
from app.core.csv_tables import short_names

Spec = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH, HEIGHT, ROW = 560, 220, 32  # pixels; ROW: a row of a chart with bars or points side by side
_WIDEST = 6  # columns of a table below a chart
_TITLE = 38  # letters in a line of an axis title, so that it fits the axis on a phone


@dataclass(frozen=True, slots=True)
class Description:
    """A chart in a sentence, and its numbers as a small table."""

    sentence: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Header and rows to fit a page: transposed where there are many columns and few rows."""
        if len(self.header) <= max(_WIDEST, len(self.rows)):
            return self.header, self.rows
        header, *rows = zip(self.header, *self.rows, strict=True)
        return header, rows


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart; `name` can name a file and an element, `draw` gives what differs between charts.

    `data` is what it shows, in full precision, as rows by column: the same in every language.
    """

    name: str
    title: str
    described: Description
    draw: Callable[[Palette], Spec]
    data: Sequence[Mapping[str, Any]] = ()
    language: Language = ENGLISH  # of its text

    def csv(self) -> str:
        """The data as CSV, header first; missing values are empty."""
        names = list(dict.fromkeys(name for row in self.data for name in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writerow(dict(zip(names, short_names(names), strict=True)))
        writer.writerows(self.data)
        return text.getvalue()

    def spec(self, theme: str = LIGHT, *, titled: bool = True) -> Spec:
        """The Vega-Lite spec in the colours of `light` or `dark`; not `titled` where its title already appears.

        Raises Invalid for another theme.
        """
        colours = palette(theme)
        return {
            "$schema": SCHEMA,
            "description": self.described.sentence,
            **({"title": self.title} if titled else {}),
            "config": {**config(colours), "locale": self.language.locale},
            **self.draw(colours),
        }


# ---- What several charts have ------------------------------------------------------


def ends(figure: Figure) -> Spec:
    return {"value": figure.value, "low": figure.low, "high": figure.high, "n": figure.n}


def whiskers(colours: Palette, rows: Sequence[Mapping[str, Any]]) -> list[Spec]:
    """The layers that draw the rows' intervals; none where no row has one, as Vega would warn.

    Each has an edge in the background colour, without which it would be invisible on a bar.
    """
    if all(row["low"] is None for row in rows):
        return []
    return [
        {
            "transform": [{"filter": {"field": "low", "valid": True}}],
            "mark": {"type": "rule", **look},
            "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}},
        }
        for look in (
            {"color": colours.surface, "strokeWidth": 6, "strokeCap": "square", "aria": False},
            {"color": colours.ink, "strokeWidth": 2},
        )
    ]


def in_lines(title: str, unit: str, letters: int = _TITLE) -> list[str]:
    """An axis title with its unit, in lines of at most `letters`; the unit is not broken."""
    *lines, last = textwrap.wrap(title, letters)
    whole = f"{last} ({unit})"
    return [*lines, whole] if len(whole) <= letters else [*lines, last, f"({unit})"]


def tooltip(field: str, title: str, form: str, language: Language) -> list[Spec]:
    return [{"field": field, "title": title}, *intervals(form, language)]


def intervals(form: str, language: Language) -> list[Spec]:
    """The tooltip fields of a figure: its value, the ends of its interval, and its n."""
    numbers = [
        ("value", language.gettext("Value")),
        ("low", language.gettext("95 %% from")),
        ("high", language.gettext("95 %% to")),
    ]
    return [
        *({"field": name, "title": text, "type": "quantitative", "format": form} for name, text in numbers),
        {"field": "n", "title": "n", "type": "quantitative"},
    ]
