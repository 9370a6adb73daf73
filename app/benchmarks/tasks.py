"""The tasks that models are scored on: shipped with Parlor, presets, and those of lm-evaluation-harness.

Only the harness can tell which tasks it knows, and whether their data is on this machine. It is asked in a separate
process, which takes some seconds: never by the web process.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from app.core.config import ROOT
from app.core.errors import AppError, Invalid, Phrase, Verbatim
from app.games.base import JSON

PROGRAM = (sys.executable, "-m", "training.benchmarks")
FOLDER = ROOT / "data" / "benchmarks"
MOST_TASKS = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,119}")


class ShippedTask(NamedTuple):
    """Questions in a file of `data/benchmarks`.

    `answers`: a model is asked for a letter, as one behind an API can be. Otherwise the log-likelihoods of the choices
    are compared, which needs a checkpoint.
    """

    name: str
    file: Path
    answers: bool

    def as_config(self) -> JSON:
        """The task in the form of a run's config."""
        return {"name": self.name, "questions": str(self.file), "form": "letters" if self.answers else "choices"}


SHIPPED: Mapping[str, ShippedTask] = {
    name: ShippedTask(name, FOLDER / "everyday-reasoning.jsonl", answers)
    for name, answers in (("everyday-reasoning", False), ("everyday-reasoning-letters", True))
}
# Source: Cheng et al. 2024, arXiv 2404.10642, with the harness's names for these tasks.
PRESETS: Mapping[str, Sequence[str]] = {
    "spag": ("mmlu", "bbh", "mutual", "arc_easy", "arc_challenge", "logiqa2", "winogrande", "piqa"),
}


def read_tasks(text: str) -> list[str]:
    """Task names from a list with commas or blanks, presets replaced by their tasks, each once. Raises Invalid."""
    named = [each for each in re.split(r"[,\s]+", text) if each]
    found = list(dict.fromkeys(task for each in named for task in PRESETS.get(each, (each,))))
    if not found:
        known = ", ".join((*PRESETS, *SHIPPED))
        raise Invalid(
            "tasks",
            expected=Phrase("%(known)s, or tasks of lm-evaluation-harness, with commas between", known=known),
            got=Phrase("none"),
        )
    if len(found) > MOST_TASKS:
        raise Invalid("tasks", expected=Phrase("at most %(most)s of them", most=MOST_TASKS), got=len(found))
    for name in found:
        if not _NAME.fullmatch(name):
            raise Invalid("tasks", expected=Phrase("names of tasks, with commas between"), got=name)
    return found


def is_installed() -> bool:
    """Whether lm-evaluation-harness is installed, without loading it."""
    return find_spec("lm_eval") is not None


def of_the_harness(names: Sequence[str]) -> list[str]:
    """The names of tasks that do not ship with Parlor."""
    return [name for name in names if name not in SHIPPED]


def check_shipped(names: Sequence[str], kind: str) -> None:
    """Raises Invalid if a shipped task does not fit a kind of model: only a checkpoint has log-likelihoods."""
    for task in (SHIPPED[name] for name in names if name in SHIPPED):
        if task.answers != (kind == "api"):
            other = next(each.name for each in SHIPPED.values() if each.file == task.file and each is not task)
            raise Invalid(
                "tasks",
                expected=Phrase("tasks that score answers alone, for a model behind an API")
                if kind == "api"
                else Phrase("tasks that compare log-likelihoods, for a local model"),
                got=task.name,
                remedy=Phrase("take %(task)s", task=other),
            )


def check_here(names: Sequence[str], kind: str) -> None:
    """Raises AppError if the harness's tasks cannot be run on this machine, for lack of it or of their data."""
    if named := of_the_harness(names):
        refused = describe_tasks(named, answers=kind == "api")["refused"]
        if refused is not None:
            raise AppError(Verbatim(refused))


def describe_tasks(names: Sequence[str], *, answers: bool) -> Mapping[str, Any]:
    """The harness's answer for each of `tasks`, and as `refused`, in a line, why they cannot be run here.

    `refused` is None if they can. `answers`: by a model that only answers. Raises AppError if the harness could not be
    asked.
    """
    command = [*PROGRAM, "tasks", *(("--answers",) if answers else ()), *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)  # noqa: S603 - our own command
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise AppError(last.removeprefix("error: "))
    found: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
