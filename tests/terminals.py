"""Terminals in which a command of `flask` runs until a test ends it, forked from a process that has loaded what a
training needs: that takes three seconds of processor time.
"""

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from app.cli import local_model
from app.jobs import process
from tests.fork_server import Forked, ForkServer, serve
from tests.shell import run_flask
from tests.trainings import ForkingSubprocess

_LOADED = (
    "app.factory",
    "app.cli.jobs",
    "app.cli.model_serve",
    "app.finetuning.creation",
    "app.finetuning.runner",
    "app.finetuning.openai.vendor",
    "app.finetuning.together.vendor",
)
_terminals = ForkServer("tests.terminals")


def start_flask(*line: object, env: Mapping[str, str], output: Path = Path(os.devnull)) -> Forked:
    """Start a command line, without `flask` at its head, with these variables over the environment's. What it prints is
    added to `output`.
    """
    with output.open("ab") as file:
        return _terminals.fork([*map(str, line)], {**os.environ, **env}, (file.fileno(),))


def _run(line: list[str]) -> int:
    for each in (process, local_model):
        vars(each)["subprocess"] = ForkingSubprocess()
    return run_flask(line)


if __name__ == "__main__":
    for each in _LOADED:
        import_module(each)
    serve(_run)
