"""Inspects a checkpoint with torch, in a separate process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from app import training_part
from app.core.config import ROOT
from app.core.errors import AppError, Invalid, Verbatim


def check_checkpoint(folder: Path, merged: Path | None = None) -> dict[str, Any]:
    """The output of `python -m training check` for a folder, run in a separate process; adapters are merged with their
    base and written to `merged`. Raises AppError with its line.
    """
    training_part.require()
    command = [sys.executable, "-m", "training", "check", str(folder)]
    if merged is not None:
        command += ["--merged", str(merged)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)  # noqa: S603 - our own
    lines = done.stderr.strip().splitlines() or ["it said nothing"]
    if "ModuleNotFoundError" in lines[-1]:
        raise Invalid(
            None,
            expected="torch and transformers",
            got=Verbatim(f"none ({lines[-1]})"),
            remedy=f"install them with {training_part.BY_HAND}",
        )
    if done.returncode != 0:
        raise AppError(f"path: {lines[-1].removeprefix('error: ')}", code=Invalid.code)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
