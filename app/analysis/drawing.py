"""Charts as files. The only module that loads the drawing library, which the web process must not load.

The same chart gives the same bytes: its font comes with the library, not from the machine, and no time is written. As a
program (`python -m app.analysis.drawing FORM …`) it takes a list of Vega-Lite specs as JSON, and prints an object for
each, with its files in Base64 by format.
"""

import base64
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import vl_convert

from app.analysis.chart import Chart
from app.analysis.figure_files import PDF, PNG
from app.analysis.pdf_order import in_order
from app.analysis.themes import LIGHT

_FONT = "Liberation Sans"  # shipped with vl-convert
_HOW: Mapping[str, Any] = {"vl_version": "6.4", "allowed_base_urls": []}


def draw(chart: Chart, form: str, theme: str = LIGHT) -> bytes:
    """The chart as the content of an SVG, PDF or PNG file."""
    return draw_spec(chart.spec(theme), form)


def draw_spec(spec: Mapping[str, Any], form: str) -> bytes:
    """A Vega-Lite spec, which includes its data, as the content of an SVG, PDF or PNG file."""
    given = {**spec, "config": {**spec.get("config", {}), "font": _FONT}}
    if form == PNG:
        return bytes(vl_convert.vegalite_to_png(given, scale=2, **_HOW))
    if form == PDF:
        return in_order(bytes(vl_convert.vegalite_to_pdf(given, **_HOW)))
    return str(vl_convert.vegalite_to_svg(given, **_HOW)).encode()


def draw_specs(specs: Sequence[Mapping[str, Any]], forms: Sequence[str]) -> list[dict[str, bytes]]:
    """The files of each spec, by format."""
    return [{form: draw_spec(spec, form) for form in forms} for spec in specs]


if __name__ == "__main__":
    drawn = draw_specs(json.load(sys.stdin), sys.argv[1:])
    json.dump([{form: base64.b64encode(found).decode() for form, found in each.items()} for each in drawn], sys.stdout)
