"""Installs the training part into this environment while Parlor runs: a child of the supervisor.

It uses pip with its own settings and the pins of constraints.txt. An interrupted installation is repeated in full:
half-written packages are recognized by their missing list of files, and written again.
"""

import contextlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from app import training_part
from app.core import logs
from app.core.config import ROOT, Settings, load_settings
from app.training_part import Lacking
from training.processor import has_gpu
from workers import heartbeat

FAILED = 3  # exit code: another try later may succeed
# Where PyTorch has its builds without libraries for GPUs, as its own instructions say; the index has others for Linux.
CPU_BUILDS = "https://download.pytorch.org/whl/cpu"
_PIP = (sys.executable, "-m", "pip")
_INSTALL = (*_PIP, "install", "--disable-pip-version-check", "--no-input", "--no-compile")
_MB = 10**6


def is_possible() -> str:
    """Why the training part cannot be installed here; empty if it can."""
    if sys.prefix == sys.base_prefix:
        return f"{sys.prefix} is no virtual environment"
    if not os.access(sys.prefix, os.W_OK):
        return f"{sys.prefix} cannot be written to"
    if (platform.system(), platform.machine()) == ("Darwin", "x86_64"):
        return "PyTorch has no builds for Macs with Intel processors any more"
    return ""


def torch_index(settings: Settings) -> str:
    """The index to get torch from; empty for pip's own."""
    if settings.TORCH_INDEX_URL:
        return settings.TORCH_INDEX_URL
    wants_gpu = settings.PARLOR_TRAINING == "gpu" or (settings.PARLOR_TRAINING == "auto" and has_gpu())
    # Except on Linux, the index's own build has no GPU libraries.
    return "" if wants_gpu or platform.system() != "Linux" or os.environ.get("PIP_NO_INDEX") else CPU_BUILDS


def requirements() -> list[str]:
    """The requirements of the extra `training`, with the version of each."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = {name.lower(): version for name, version in pins().items()}
    names = [each.partition("==")[0] for each in project["optional-dependencies"]["training"]]
    return [f"{name}=={known[name.lower()]}" for name in names]


def pins() -> dict[str, str]:
    """The versions in constraints.txt, by name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    return dict(line.split("==") for line in lines)


def remove_half_written() -> list[str]:
    """Remove packages whose installation was interrupted, so that pip writes them again; returns their names."""
    found = []
    for each in importlib.metadata.distributions(path=[p for p in sys.path if p.startswith(sys.prefix)]):
        folder = Path(str(each.locate_file(""))) / getattr(each, "_path", Path()).name
        if folder.suffix == ".dist-info" and folder.is_dir() and not (folder / "RECORD").exists():
            found.append(folder.name)
            shutil.rmtree(folder, ignore_errors=True)
    return found


def is_current() -> bool:
    """Whether all of it is installed in the versions of constraints.txt."""
    if not training_part.is_installed():
        return False
    wanted = pins()
    found = {name: importlib.metadata.version(name).partition("+")[0] for name in training_part.MODULES}
    return all(wanted[name] == version for name, version in found.items())


class Installation:
    """One attempt. pip's progress is recorded in the environment, for pages and commands."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._state = Lacking(step="asking the index", pid=os.getpid())
        self._told_at = 0.0
        self._error = ""

    def run(self) -> str:
        """Install everything; returns why it failed, in one line, or nothing."""
        self._note_state(force=True)
        remove_half_written()
        wanted, index = requirements(), torch_index(self._settings)
        constraints = ("-c", str(ROOT / "constraints.txt"))
        if index:
            torch = next(each for each in wanted if each.startswith("torch=="))
            alone = ("--no-deps", "--index-url", index, "--retries", "1", "--timeout", "10", torch)
            if not self._pip((*constraints, *alone)) and (refusal := self._without_index()):
                return refusal
        if not self._pip((*constraints, *wanted)):
            return self._error
        return "" if training_part.is_installed() else "pip was done, and packages are missing all the same"

    def _without_index(self) -> str:
        """Why torch's own index is required; empty if pip's index will do."""
        if self._settings.TORCH_INDEX_URL:
            return f"TORCH_INDEX_URL: {self._error}"
        if self._settings.PARLOR_TRAINING == "cpu":  # pip's own may bring gigabytes of libraries for GPUs
            return (
                f"PARLOR_TRAINING is cpu, and {CPU_BUILDS} has failed: {self._error};"
                " name another index by TORCH_INDEX_URL, or set PARLOR_TRAINING to auto to take what pip finds"
            )
        return ""

    def _pip(self, arguments: Sequence[str]) -> bool:
        self._error = ""
        bar = ("--progress-bar", "raw" if _pip_version() >= (24, 1) else "off")
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
        with subprocess.Popen(  # noqa: S603 - our own command
            [*_INSTALL, *bar, *arguments],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as process:
            assert process.stdout is not None  # noqa: S101 - a pipe, as asked for
            for line in process.stdout:
                self._hear(line.strip())
        self._error = self._error or f"pip ended with exit code {process.returncode}"
        return process.returncode == 0

    def _hear(self, line: str) -> None:
        if found := re.match(r"ERROR: Cannot install (\S+?),? .*conflicting dep", line):
            # How pip reports that no file of the pinned version is available.
            self._error = self._error or f"the package index has no {found[1]} for this machine"
        elif line.startswith("ERROR: "):
            self._error = self._error or line.removeprefix("ERROR: ")  # the first says most
        elif "Retrying (" in line and "connection broken" in line:
            self._error = "the package index does not answer"
        elif found := re.match(r"Progress (\d+) of (\d+)", line):
            done, whole = map(int, found.groups())
            self._state = replace(self._state, percent=100 * done // whole if whole else None)
            self._note_state()
        elif found := re.match(r"(?:Downloading|Processing) (?:\S*/)?([^\s-]+)-\S+(?: \(([^)]+)\))?", line):
            name, size = found.groups()
            self._state = replace(self._state, step=f"{name}, {size}" if size else name, percent=None)
            self._note_state(force=True)
        elif line.startswith("Installing collected packages"):
            self._state = replace(self._state, step="writing files", percent=None)
            self._note_state(force=True)

    def _note_state(self, *, force: bool = False) -> None:
        if force or time.monotonic() - self._told_at > 1:
            self._told_at = time.monotonic()
            training_part.record_missing(self._state)


def _pip_version() -> tuple[int, ...]:
    return tuple(int(part) for part in importlib.metadata.version("pip").split(".")[:2] if part.isdecimal())


def _size() -> int:
    """The size of the environment in bytes."""
    return sum(path.lstat().st_size for path in Path(sys.prefix).rglob("*") if not path.is_dir())


def _beat() -> None:
    while True:
        heartbeat.beat()
        time.sleep(heartbeat.EVERY)


def _print_line(line: str) -> None:
    with contextlib.suppress(OSError):
        print(line, flush=True)


def main() -> int:
    """Install it. 0: installed; 3: not yet, and one line says why."""
    os.umask(0o022)  # an environment is for all who may use the project
    logs.set_up()
    threading.Thread(target=_beat, daemon=True).start()
    began, before = time.monotonic(), _size()
    print(
        "torch and what else trains models is being installed in the background; all else works meanwhile.", flush=True
    )
    try:
        error = Installation(load_settings()).run()
    except OSError as problem:
        error = str(problem)
    if error:
        line = " ".join(error.split())
        with contextlib.suppress(OSError):
            training_part.record_missing(Lacking(error=line))
        print(
            f"not installed: {line}; the next try is in ten minutes. Pages and API models work without it.", flush=True
        )
        return FAILED
    training_part.record_missing(None)
    megabytes, seconds = (_size() - before) / _MB, time.monotonic() - began
    _print_line(f"installed, {megabytes:.0f} MB in {seconds:.0f} s: local models and trainings can be used now.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
