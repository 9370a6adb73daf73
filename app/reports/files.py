"""The files of a report: its page, the CSV behind each figure and table, and the figures as SVG, PDF and PNG."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from app.analysis.chart import Spec
from app.analysis.figure_files import FORMATS, SVG
from app.reports.page import report_page
from app.reports.report import Report

PAGE = "report.html"
# Draws specs; returns the files of each, by format.
Draw = Callable[[Sequence[Spec], Sequence[str]], Sequence[Mapping[str, bytes]]]


def html_of(report: Report, draw: Draw, made_at: datetime) -> bytes:
    """The page alone, with its figures and tables included. Raises Unavailable where they could not be drawn."""
    drawn = _draw_charts(report, draw, (SVG,))
    return report_page(report, {name: found[SVG] for name, found in drawn.items()}, made_at).encode()


def files_of(report: Report, draw: Draw, made_at: datetime) -> dict[str, bytes]:
    """All files by name: the page, `data/NAME.csv` and `figures/NAME.svg|pdf|png`. Raises Unavailable."""
    drawn = _draw_charts(report, draw, FORMATS)
    page = report_page(report, {name: found[SVG] for name, found in drawn.items()}, made_at)
    tables = [each for section in report.sections for each in section.tables]
    return {
        PAGE: page.encode(),
        **{f"data/{each.name}.csv": each.csv().encode() for each in report.charts},
        **{f"data/{each.name}.csv": each.csv for each in tables},
        **{f"figures/{name}.{form}": found[form] for name, found in drawn.items() for form in FORMATS},
    }


def _draw_charts(report: Report, draw: Draw, forms: Sequence[str]) -> dict[str, Mapping[str, bytes]]:
    charts = report.charts
    found = draw([each.spec(titled=False) for each in charts], forms)
    return {chart.name: drawn for chart, drawn in zip(charts, found, strict=True)}
