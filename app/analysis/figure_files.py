"""Files that a figure can be saved as, and their drawing in a process of its own, for the web process."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from app.core.config import ROOT
from app.core.errors import Phrase, Unavailable

SVG, PDF, PNG = "svg", "pdf", "png"
FORMATS = (SVG, PDF, PNG)
TYPES = {SVG: "image/svg+xml", PDF: "application/pdf", PNG: "image/png"}
_SECONDS = 60  # that a figure may take


def draw_in_process(spec: Mapping[str, Any], form: str) -> bytes:
    """A Vega-Lite spec as the content of a file, the same that commands write. Raises Unavailable."""
    try:
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "app.analysis.drawing", form],
            input=json.dumps(spec).encode(),
            capture_output=True,
            cwd=ROOT,
            timeout=_SECONDS,
            check=True,
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        raise Unavailable(Phrase("The figure could not be drawn. Please try again in a moment.")) from None
    return done.stdout
