"""Reads and writes the files of studies in a process of its own. `app/studies/design_command.py` is that process."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.core.reading_process import read_in_process
from app.studies.design import StudyDesign
from app.studies.loaded_design import LoadedDesign
from app.studies.warnings import Warned

_MODULE = "app.studies.design_command"


def read_design(path: Path) -> LoadedDesign:
    """The design in a study's file. Raises RefusedFiles."""
    found = read_in_process(_MODULE, "read", str(path), given=None)
    return LoadedDesign(
        StudyDesign.model_validate_json(json.dumps(found["written"])),
        found["written"],
        found["texts"],
        found["material"],
        [Warned(tuple(path), text) for path, text in found["warned"]],
        found["sha256"],
    )


def write_design_files(folder: Path, written: Mapping[str, Any], texts: Mapping[str, str]) -> None:
    """Write a design and its files into a new folder, from which it loads unchanged."""
    read_in_process(_MODULE, "write", str(folder), given={"written": dict(written), "texts": dict(texts)})
