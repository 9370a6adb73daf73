"""Environments of other programs, which need other releases of what Parlor is pinned to: for long forms of tests."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from app.core.config import ROOT

_PATIENCE = 900  # seconds that an installation may take


def make_environment(folder: Path, *requirements: str, beside_parlor: bool = False) -> Path:
    """The Python of a new environment with these packages. Without an index that has them the test is skipped.

    One that is `beside_parlor` has what Parlor is installed with, too, by whose pins the packages are chosen.
    """
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=_PATIENCE)
    python = folder / "bin" / "python"
    pins = []
    if beside_parlor:
        packages = next((folder / "lib").glob("python*")) / "site-packages"
        (packages / "parlor.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
        pins = ["-c", str(ROOT / "constraints.txt")]
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *pins, *requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    if done.returncode:
        pytest.skip(f"{', '.join(requirements)} cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    return python
