"""The tasks of lm-evaluation-harness that can be run on this machine. Loads the harness only to look one up."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

INSTALL = "pip install -c constraints.txt -e '.[training,benchmarks]'"


class TasksHere(NamedTuple):
    """One JSON object per task, and one line on why they cannot be run here, if they cannot. Each task has its own
    line, too.
    """

    tasks: Sequence[dict[str, Any]]
    refused: str | None


def is_installed() -> bool:
    """Whether the harness is installed."""
    return find_spec("lm_eval") is not None


def load_harness() -> Any:
    """The module that knows the harness."""
    return import_module("training.benchmarks.harness")


def describe_tasks(names: Sequence[str], *, answers: bool) -> TasksHere:
    """The description of tasks of the harness, and whether they can be run; `answers`: by a model that only answers."""
    if not is_installed():
        absent = [{"name": name, "refused": _not_installed([name])} for name in names]
        return TasksHere(absent, _not_installed(names))
    harness = load_harness()
    found = {name: harness.find_task(name) for name in names}
    described = [
        {
            "name": name,
            **({} if task is None else {"answers": task.generates, "missing": [*task.missing]}),
            "refused": _reason_to_refuse({name: task}, harness, answers=answers),
        }
        for name, task in found.items()
    ]
    return TasksHere(described, _reason_to_refuse(found, harness, answers=answers))


def _not_installed(names: Sequence[str]) -> str:
    return f"tasks: expected lm-evaluation-harness for {', '.join(names)}, got none here; {INSTALL}"


def _reason_to_refuse(found: dict[str, Any], harness: Any, *, answers: bool) -> str | None:
    if unknown := [name for name, task in found.items() if task is None]:
        return f"tasks: expected tasks or groups of {harness.source()}, got {', '.join(unknown)}"
    if answers and (scored := [each.name for each in found.values() if not each.generates]):
        return (
            f"tasks: expected tasks that score answers alone for a model behind an API, got {', '.join(scored)}, which"
            " compare log-likelihoods; run them on a local checkpoint"
        )
    if absent := [each.name for each in found.values() if each.missing]:
        return (
            f"tasks: expected their data in {harness.data_folder()}, got none for {', '.join(absent)}; run `python -m"
            f" training.benchmarks fetch {' '.join(absent)}` on a machine with a network, and copy its folder here"
        )
    return None
