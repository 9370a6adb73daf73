"""Charts as files. The only module that loads what draws them, which the web process must not."""

import vl_convert

from app.analysis.chart import Chart
from app.analysis.themes import LIGHT

SVG, PNG = "svg", "png"
FORMATS = (SVG, PNG)


def draw(chart: Chart, form: str, theme: str = LIGHT) -> bytes:
    """The chart as the content of an SVG or PNG file."""
    spec = chart.spec(theme)
    if form == PNG:
        return bytes(vl_convert.vegalite_to_png(spec, vl_version="6.4", scale=2))
    return str(vl_convert.vegalite_to_svg(spec, vl_version="6.4")).encode()
