"""The contents of any report: its sections with figures and tables, before they are written to files. Pure."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from app.analysis.chart import Chart


class KeyFigure(NamedTuple):
    """A figure among those under the headline: what it is, its value, and its interval or other text beside it."""

    title: str
    value: str
    beside: str = ""


class ReportTable(NamedTuple):
    """A table with the CSV behind it. The first cell of a row names it; `name` is the file's name."""

    name: str
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    csv: bytes


class ReportFigure(NamedTuple):
    """A figure with its caption. Its numbers are a CSV file, and folded below it unless a table has them."""

    chart: Chart
    caption: str
    has_table: bool = False


class FoldedText(NamedTuple):
    """A long text that is folded away on a screen and open on paper: a prompt, a config."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A numbered part of a report, its elements in this order. `key` is the target of links."""

    key: str
    title: str
    paragraphs: Sequence[str] = ()
    figures: Sequence[ReportFigure] = ()
    tables: Sequence[ReportTable] = ()
    points: Sequence[str] = ()  # of a bulleted list
    commands: Sequence[str] = ()
    folded: Sequence[FoldedText] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it has no content under its heading."""
        return not any((self.paragraphs, self.figures, self.tables, self.points, self.commands, self.folded))


@dataclass(frozen=True, slots=True)
class Report:
    """A report. `name` is that of its files, `finding` the headline sentence and `more` its qualification."""

    name: str
    title: str
    about: str
    finding: str
    more: str = ""
    beside: Sequence[KeyFigure] = ()
    sections: Sequence[ReportSection] = field(default=())

    @property
    def charts(self) -> list[Chart]:
        """The charts of all figures, in their order."""
        return [each.chart for section in self.sections for each in section.figures]


def plain_table(name: str, caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> ReportTable:
    """A table of texts, with the same content as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return ReportTable(name, caption, header, rows, text.getvalue().encode())
