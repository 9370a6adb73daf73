"""A report as one HTML page that loads nothing: its figures, fonts and style are embedded.

The same report gives the same bytes except for the line that says when it was made. The page has no script and no
outgoing link, which its own Content-Security-Policy enforces.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import count
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from app import __version__
from app.analysis.themes import DARK, LIGHT, palette
from app.core.config import ROOT
from app.reports.report import Report

MOST_ROWS = 500  # in a table on the page, which a browser lays out in one go; its CSV has all of them
_HERE = Path(__file__).parent
_TOKENS = ROOT / "static" / "css" / "tokens.css"
_FONTS = ROOT / "static" / "vendor"
# Figures are laid out in a family with these widths, so its letters fit their places.
_FAMILY = "Liberation Sans"
_RANGES = {  # of letters, by the part of the font that contains them
    "latin": "U+0000-00FF, U+0131, U+0152-0153, U+02BB-02BC, U+02C6, U+02DA, U+02DC, U+0304, U+0308, U+0329,"
    " U+2000-206F, U+20AC, U+2122, U+2191, U+2193, U+2212, U+2215, U+FEFF, U+FFFD",
    "greek": "U+0370-0377, U+037A-037F, U+0384-038A, U+038C, U+038E-03A1, U+03A3-03FF",
}
_WEIGHTS = (400, 700)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_FIGURE = re.compile(r"(?:< )?[+−]?\d[\d.]*(?: %| pp)?(?: to .*| \(.*\))?")
_BESIDE = re.compile(r"([+−]?\d[\d.]*(?: %| pp)?) \((.*)\)")
_HASH = re.compile(r"[0-9a-f]{64}")
_NAMES = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')


def report_page(report: Report, drawn: Mapping[str, bytes], made_at: datetime) -> str:
    """The page of a report. `drawn` has the SVG of each of its charts, by name; `made_at` is in UTC."""
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    sections = [each for each in report.sections if not each.is_empty]
    return environment.get_template("report.html").render(
        report=report,
        sections=sections,
        style=Markup(style),  # noqa: S704 - our own file
        digest=digest,
        figures={each.name: _inline(drawn[each.name], each.described.sentence) for each in report.charts},
        figure_numbers=count(1),
        table_numbers=count(1),
        next_number=next,
        most_rows=MOST_ROWS,
        numeric=_numeric,
        parts=_split_figure_cell,
        is_hash=lambda text: bool(_HASH.fullmatch(text)),
        version=__version__,
        made_at=f"{made_at.day} {made_at:%B %Y, %H:%M} UTC",
    )


def _inline(svg: bytes, sentence: str) -> Markup:
    """A drawing as part of the page: a single image with a text, whose marks have no names of their own."""
    head, mark, rest = svg.decode().partition(">")
    plain = _NAMES.sub("", rest)
    label = Markup.escape(sentence)
    return Markup(f'{head} role="img" aria-label="{label}" focusable="false"{mark}{plain}')  # noqa: S704 - it is drawn here


def _split_figure_cell(cell: str) -> tuple[str, str]:
    """A figure and the text in brackets after it: its interval and n."""
    found = _BESIDE.fullmatch(cell)
    return (cell, "") if found is None else (found[1], found[2].replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"))


def _numeric(rows: Sequence[Sequence[str]]) -> set[int]:
    """The right-aligned columns: those that contain only figures, with or without intervals."""
    columns = enumerate(zip(*rows, strict=True))
    return {
        place for place, cells in columns
        if all(each == "–" or _FIGURE.fullmatch(each) for each in cells) and any(each != "–" for each in cells)
    }  # fmt: skip


@lru_cache(maxsize=1)
def _style() -> str:
    own = (_HERE / "report.css").read_text(encoding="utf-8")
    tokens = _TOKENS.read_text(encoding="utf-8")
    parts = [*_font_faces(), _COMMENT.sub("", tokens), _COMMENT.sub("", own), *_dark_figures()]
    return "\n" + "\n".join(line for part in parts for line in part.splitlines() if line.strip()) + "\n"


def _font_faces() -> Iterator[str]:
    for weight in _WEIGHTS:
        for part, letters in _RANGES.items():
            content = base64.b64encode((_FONTS / f"arimo-{part}-{weight}.woff2").read_bytes()).decode()
            yield (
                f'@font-face {{ font-family: "{_FAMILY}"; font-weight: {weight}; font-display: block;'
                f' src: url(data:font/woff2;base64,{content}) format("woff2"); unicode-range: {letters}; }}'
            )


def _dark_figures() -> Sequence[str]:
    """CSS rules that replace the light colours of drawn figures with the dark ones on a dark page."""
    light, dark = palette(LIGHT), palette(DARK)
    names = ("surface", "ink", "soft", "line", "strong", "first", "second", "brass", "good", "warn", "bad")
    pairs = {getattr(light, name): getattr(dark, name) for name in names}
    pairs |= dict(zip(light.scale, dark.scale, strict=True))
    rules = [
        f'  figure svg [{paint}="{old}"] {{ {paint}: {new}; }}'
        for old, new in pairs.items()
        for paint in ("fill", "stroke")
    ]
    return ["@media screen and (prefers-color-scheme: dark) {", *rules, "}"]
