"""Charts as files, for the commands that write them."""

import importlib
from pathlib import Path

from app.analysis.chart import Chart
from app.analysis.figure_files import FORMATS
from app.core.errors import Invalid, Verbatim
from app.core.files import replace_file

_DRAWING = "app.analysis.drawing"  # loaded by name, only for charts: commands are part of the web process


def write_chart(chart: Chart, path: Path, form: str, theme: str) -> None:
    """Draw a chart into a file, which is written completely or not at all. Raises OSError."""
    replace_file(path, [importlib.import_module(_DRAWING).draw(chart, form, theme)])


def write_as_named(chart: Chart, path: Path, theme: str) -> None:
    """Draw a chart into the `--chart` file, as SVG, PDF or PNG depending on its name. Raises Invalid."""
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        raise Invalid("--chart", expected="a file that ends in .svg, .pdf or .png", got=path.name)
    try:
        write_chart(chart, path, form, theme)
    except OSError as error:
        reason = error.strerror or "it cannot be written"
        raise Invalid("--chart", expected="a file that can be written to", got=Verbatim(f"{path} ({reason})")) from None
