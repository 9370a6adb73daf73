"""Reads and writes the files of studies in a process of its own, for the web process: YAML takes long to read, and
those who play meanwhile do not wait. `app/studies/design_command.py` is that process.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.core.config import ROOT
from app.core.errors import AppError, Phrase, Unavailable
from app.studies.design import StudyDesign
from app.studies.loaded_design import LoadedDesign
from app.studies.warnings import Warned

_SECONDS = 60  # that a file may take
_MODULE = "app.studies.design_command"


class RefusedDesign(AppError):
    """The file of a study, or one that it names, cannot be read; the text says where and why."""

    code = "invalid"
    status = 400


def read_design(path: Path) -> LoadedDesign:
    """What the file of a study comes to. Raises RefusedDesign."""
    found = _run_process("read", path, None)
    return LoadedDesign(
        StudyDesign.model_validate_json(json.dumps(found["written"])),
        found["written"],
        found["texts"],
        found["material"],
        [Warned(tuple(path), text) for path, text in found["warned"]],
        found["sha256"],
    )


def write_design_files(folder: Path, written: Mapping[str, Any], texts: Mapping[str, str]) -> None:
    """Write a design and its files into a new folder, from which it loads as it is."""
    _run_process("write", folder, {"written": dict(written), "texts": dict(texts)})


def _run_process(action: str, path: Path, given: Any) -> Any:
    command = [sys.executable, "-m", _MODULE, action, str(path)]
    try:
        done = subprocess.run(  # noqa: S603 - our own command
            command, input=json.dumps(given).encode(), capture_output=True, cwd=ROOT, timeout=_SECONDS, check=True
        )
    except subprocess.TimeoutExpired:
        raise RefusedDesign(Phrase("The files took longer than %(most)s seconds to read.", most=_SECONDS)) from None
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise Unavailable(Phrase("The files could not be read: %(why)s", why="".join(last))) from None
    answer = json.loads(done.stdout)
    if "refused" in answer:
        raise RefusedDesign(answer["refused"])
    return answer
