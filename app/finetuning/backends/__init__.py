"""Where models are trained, one module each, found by name: a backend starts, polls, cancels and collects trainings.

A module has a `BACKEND`. It writes what happens, as events, into the job's `progress` file, which the runner follows.
"""

import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Protocol

from app.finetuning.files import JobFiles

GRACE = 30.0  # seconds to end a step and save a checkpoint before a training is killed


class RunningTraining(Protocol):
    """A training that was started. Whoever started it kills it in the end, if it still runs."""

    def poll(self, seconds: float) -> int | None:
        """Its exit code (docs/training.md) as soon as it is over; None if it still runs after so many seconds."""

    def cancel(self) -> None:
        """Ask it to save what it can go on from, and to end."""

    def kill(self) -> None:
        """End it at once, if it still runs."""


class Backend(Protocol):
    """Trains models for jobs. Each of its trainings ends with the checkpoint, or says why there is none."""

    def check(self) -> None:
        """Raises NotFound where something is missing that a training needs here."""

    def start(self, method: str, files: JobFiles, waiting: Callable[[], object]) -> RunningTraining:
        """Start or go on with the training of a job by its config file. `waiting` is called while it has to wait."""

    def collect(self, files: JobFiles) -> bool:
        """Whether the checkpoint of a job is in its output folder; fetches it first where it was made elsewhere."""


def backend_names() -> tuple[str, ...]:
    """The names of all backends; none of them is loaded."""
    return tuple(sorted(each.name for each in pkgutil.iter_modules(__path__)))


def find_backend(name: str) -> Backend:
    """The backend of that name."""
    found: Backend = import_module(f"{__name__}.{name}").BACKEND
    return found
