"""Environments of other programs, which need other releases of what Parlor is pinned to: for long forms of tests."""

import subprocess
import sys
from pathlib import Path

import pytest

_PATIENCE = 900  # seconds that an installation may take


def make_environment(folder: Path, *requirements: str) -> Path:
    """The Python of a new environment with these packages. Without an index that has them the test is skipped."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=_PATIENCE)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    if done.returncode:
        pytest.skip(f"{', '.join(requirements)} cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    return python
