"""Places where models are trained, one module each, found by name.

A module has a `BACKEND`. Everything specific to one place is in its module: the bases, methods and fields it accepts,
the files it needs, what runs a job, and how a trained model is registered. The web process loads these modules, so none
of them loads code that trains or that calls a vendor; the `runner` does, in a worker.
"""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase, either
from app.datasets import store
from app.finetuning.config import SFT_DATA, Fields
from app.finetuning.files import JobFiles
from app.games.base import JSON
from app.models import Dataset, LanguageModel, TrainingJob
from app.registry.prices import PRICES

# key_host is determined anew. Playing with a tuned model has other prices than its base; training it further is priced
# by their common model family, so price_training is the base's until somebody edits it.
_NOT_TAKEN_OVER = ("key_host", *PRICES)


class RunningTraining(Protocol):
    """A training that was started. Whoever started it kills it at the end, if it still runs."""

    def poll(self, seconds: float) -> int | None:
        """Its exit code (docs/training.md) as soon as it is over; None if it still runs after `seconds`."""

    def cancel(self) -> None:
        """Ask it to save a checkpoint from which it can continue, and to end."""

    def kill(self) -> None:
        """Kill it, if it still runs."""


class TrainedModel(NamedTuple):
    """The result of a training: a row of the registry, and the step of its weights, if known."""

    model: LanguageModel
    step: int | None


class Backend(Protocol):
    """A place where models are trained for jobs."""

    title: str  # its name in the job form
    summary: str
    bases: Phrase  # what it starts from: "local model"
    queue: str  # of the workers that run its jobs
    runner: str  # "module:function", loaded by the worker that calls it with its context, a job's number and its record

    @property
    def vendor(self) -> str | None:
        """The vendor that runs its jobs; None if a process here does, even if the weights are elsewhere."""

    def fields(self, method: str) -> Fields:
        """The fields that a job with this method may set; empty for an unsupported method."""

    def read_config(self, method: str, raw: Mapping[str, Any]) -> JSON:
        """The given fields, checked. Raises Invalid, also for an unsupported method."""

    def check_row(self, row: Mapping[str, Any], dataset: str) -> None:
        """Raises Invalid if it cannot train on the first row of a dataset; the error calls that `dataset`."""

    def check_base(self, base: LanguageModel, field: str = "base") -> None:
        """Raises Invalid, naming the field, for a model that no training here can start from or compare with."""

    def check_files(self, home: Path, dataset: Dataset, base: LanguageModel | None, name: str) -> None:
        """Raises NotFound for a missing file, or Conflict for one in the way of the model with this name."""

    def register(
        self, session: Session, row: TrainingJob, files: JobFiles, games: Sequence[str], style: str
    ) -> TrainedModel:
        """Register the model of a job, which plays these games in this prompt style. Raises Conflict."""


class ProcessBackend(Backend, Protocol):
    """A backend that trains in a process, which the worker follows by the events in the job's `progress` file.

    Each of its trainings ends with the checkpoint, or reports why there is none.
    """

    def check(self) -> None:
        """Raises NotFound if something that a training needs is missing here."""

    def prepare(self, session: Session, row: TrainingJob, files: JobFiles) -> None:
        """Store what `start` needs from the database. Raises NotFound and Invalid for anything missing or changed."""

    def start(self, method: str, files: JobFiles, waiting: Callable[[], object]) -> RunningTraining:
        """Start or continue the training of a job. `waiting` is called while it has to wait."""

    def collect(self, files: JobFiles) -> bool:
        """Whether the model of a job is ready."""


def row_files(session: Session, home: Path, row: TrainingJob) -> JSON:
    """The files with the rows for a training, by the fields of its config. Raises NotFound and Invalid."""
    numbers = {"data": row.dataset_id, SFT_DATA: row.config.get(SFT_DATA)}
    return {name: store.checked_path(session, home, each) for name, each in numbers.items() if each is not None}


def tuned_options(base: LanguageModel, model: str | None) -> JSON:
    """The options of a tuned API model that its vendor calls `model`: those of its base, except the prices of play."""
    return {name: value for name, value in base.options.items() if name not in _NOT_TAKEN_OVER} | {"model": model}


def backend_names() -> tuple[str, ...]:
    """The names of all backends, without loading them."""
    return tuple(sorted(each.name for each in pkgutil.iter_modules(__path__)))


def find_backend(name: str) -> Backend:
    """The backend with this name. Raises Invalid."""
    if name not in backend_names():
        raise Invalid("backend", expected=either(backend_names()), got=name)
    found: Backend = import_module(f"{__name__}.{name}").BACKEND
    return found


def backend_of(model: LanguageModel) -> str | None:
    """The first backend that can train a model; None if there is none."""
    for name, backend in all_backends().items():
        try:
            backend.check_base(model)
        except Invalid:
            continue
        return name
    return None


def all_backends() -> Mapping[str, Backend]:
    """All backends by name, loaded."""
    return {name: find_backend(name) for name in backend_names()}
