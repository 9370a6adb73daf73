"""The file formats of figures, and drawing in a separate process, for the web process."""

import base64
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from app.core.config import ROOT
from app.core.errors import Phrase, Unavailable

SVG, PDF, PNG = "svg", "pdf", "png"
FORMATS = (SVG, PDF, PNG)
TYPES = {SVG: "image/svg+xml", PDF: "application/pdf", PNG: "image/png"}
_SECONDS = 60  # time limit for a figure
_SECONDS_MORE = 10  # for each additional figure


def draw_in_process(spec: Mapping[str, Any], form: str) -> bytes:
    """A Vega-Lite spec as the content of a file, identical to what commands write. Raises Unavailable."""
    [found] = draw_each_in_process([spec], [form])
    return found[form]


def draw_each_in_process(specs: Sequence[Mapping[str, Any]], forms: Sequence[str]) -> list[dict[str, bytes]]:
    """The files of each spec, by format, all drawn by one process. Raises Unavailable."""
    if not specs:
        return []
    try:
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "app.analysis.drawing", *forms],
            input=json.dumps(specs).encode(),
            capture_output=True,
            cwd=ROOT,
            timeout=_SECONDS + _SECONDS_MORE * len(specs),
            check=True,
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        raise Unavailable(Phrase("The figure could not be drawn. Please try again in a moment.")) from None
    found: list[dict[str, str]] = json.loads(done.stdout)
    return [{form: base64.b64decode(text) for form, text in each.items()} for each in found]
