"""Terminals in which a command of `flask` runs until a test ends it, forked from a process that has loaded what a
training needs: that takes three seconds of processor time.
"""

import os
from collections.abc import Mapping
from importlib import import_module

from tests.fork_server import Forked, ForkServer, serve
from tests.shell import run_flask

_LOADED = (
    "app.factory",
    "app.cli.jobs",
    "app.finetuning.creation",
    "app.finetuning.runner",
    "app.finetuning.openai.vendor",
    "app.finetuning.together.vendor",
)
_terminals = ForkServer("tests.terminals")


def start_flask(*line: object, env: Mapping[str, str]) -> Forked:
    """Start a command line, without `flask` at its head, with these variables over the environment's."""
    with open(os.devnull, "wb") as output:  # noqa: PTH123 - not a path of the project
        return _terminals.fork([*map(str, line)], {**os.environ, **env}, (output.fileno(),))


if __name__ == "__main__":
    for each in _LOADED:
        import_module(each)
    serve(run_flask)
