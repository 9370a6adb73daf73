"""A training as a child process of the worker. If its worker dies, it ends itself, with a checkpoint."""

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app import training_part
from app.core.errors import Conflict, Invalid, NotFound, Phrase, Verbatim, shown
from app.core.files import replace_file
from app.core.queues import TRAIN
from app.datasets import store
from app.finetuning.backends import ProcessBackend, TrainedModel, row_files
from app.finetuning.config import JOB_DEFAULTS, LOCAL, REFERENCE, Fields, find_method, read_config
from app.finetuning.files import JobFiles
from app.games.base import JSON
from app.inference.weights import adapter_rank
from app.jobs.process import JobProcess
from app.models import Dataset, LanguageModel, TrainingJob
from app.players.local.options import PLAYED_WITH, read_options, resolve
from app.registry import add_local_model, get_model
from app.registry.adapters import play_as_base
from training.methods.base import Need

PROGRAM = (sys.executable, "-m", "training")
LAUNCH = (sys.executable, "-m", "training.launch")


class TrainingProcess(JobProcess):
    """The process that trains. Raises Conflict if another process of the job cannot be ended."""

    def __init__(self, method: str, files: JobFiles, waiting: Callable[[], object]) -> None:
        """Start it, once an earlier process of the same job is over; `waiting` is called meanwhile."""
        training = [method, "--config", str(files.config), "--progress", str(files.progress)]
        command, environment = _training_command(files, training), _environment(files)
        super().__init__(command, files.lock, files.log, waiting, name="training", environment=environment)


class LocalBackend:
    """Trains on this machine, in a child process of the worker, which writes the checkpoint itself."""

    title = "Here"
    summary = "A worker of this installation trains it. The checkpoint stays here."
    vendor = None
    bases = Phrase("local model")
    queue = TRAIN
    runner = "app.finetuning.runner:follow_process"

    def fields(self, method: str) -> Fields:
        """The fields of the method, except the job's own."""
        known = find_method(method)
        return known.job_fields if known.loss else {}

    def read_config(self, method: str, raw: Mapping[str, Any]) -> JSON:
        """The given fields, checked. Raises Invalid."""
        return read_config(method, raw)

    def check_row(self, row: Mapping[str, Any], dataset: str) -> None:
        """Accept every row: the training itself reports errors that depend on the base."""

    def check(self) -> None:
        """Raises NotFound if packages that a training needs are missing, and Conflict if they are still being
        installed; none of them is loaded.
        """
        training_part.require()
        for name in ("torch", "transformers", "accelerate", "peft", "psutil"):
            if importlib.util.find_spec(name) is None:
                raise NotFound(
                    name,
                    expected="it to be installed where the job runs",
                    got=Verbatim("none"),
                    remedy=training_part.BY_HAND,
                )

    def check_base(self, base: LanguageModel, field: str = "base") -> None:
        """Raises Invalid, naming the field, for a model without local weights."""
        if base.kind != LOCAL:
            raise Invalid(
                field,
                expected=Phrase("a local model, which has weights"),
                got=Phrase("%(name)s, which is %(kind)s", name=base.name, kind=base.kind),
            )

    def check_files(self, home: Path, dataset: Dataset, base: LanguageModel | None, name: str) -> None:
        """Raises NotFound for a missing file or checkpoint, Conflict if the model's own checkpoint already exists."""
        store.path_of(home, dataset)
        if base is not None:
            _checkpoint_of(home, base)
        if (output := JobFiles(home, 0, name).output).exists():
            raise Conflict(
                "name",
                expected=Phrase("one without a checkpoint"),
                got=Phrase("%(name)s, which has %(output)s", name=shown(name), output=output),
                remedy=Phrase("remove it"),
            )

    def prepare(self, session: Session, row: TrainingJob, files: JobFiles) -> None:
        """Write the config. Raises NotFound for missing files, Invalid for a changed one."""
        home = files.home
        fields: dict[str, Any] = {**JOB_DEFAULTS, **row.config, **row_files(session, home, row)}
        if row.base_id is not None:
            base = session.get_one(LanguageModel, row.base_id)
            options = read_options(base.options)
            fields |= {"base": str(_checkpoint_of(home, base)), "base_sha256": options.sha256}
            if options.template_arguments:
                fields["template_arguments"] = options.template_arguments
        if Need.REFERENCE_MODEL in find_method(row.method).needs:
            fields["reference_cache"] = str(files.reference_cache)
        if (name := row.config.get(REFERENCE)) is not None:
            reference = get_model(session, name)
            fields[REFERENCE] = str(_checkpoint_of(home, reference, REFERENCE))
            fields["reference_sha256"] = read_options(reference.options).sha256
        fields |= {"output": str(files.output), "run": str(files.run)}
        replace_file(files.config, [json.dumps(fields, indent=2).encode()], private=True)

    def start(self, method: str, files: JobFiles, waiting: Callable[[], object]) -> TrainingProcess:
        """Raises Conflict if another process of the job cannot be ended."""
        return TrainingProcess(method, files, waiting)

    def collect(self, files: JobFiles) -> bool:
        """Whether the process has written the checkpoint."""
        return files.output.exists()

    def register(
        self, session: Session, row: TrainingJob, files: JobFiles, games: Sequence[str], style: str
    ) -> TrainedModel:
        """Register the checkpoint as a local model. Raises Conflict if the name was taken meanwhile."""
        made = json.loads((files.output / "parlor.json").read_text(encoding="utf-8"))
        options = {"path": files.output_name, "sha256": made["checkpoint_sha256"]}
        base = None if row.base_id is None else session.get_one(LanguageModel, row.base_id)
        if base is not None:  # it plays with the arguments that it was trained with
            options |= {name: base.options[name] for name in PLAYED_WITH if name in base.options}
        adapter_of = made.get("adapter_of", {}).get("sha256")
        model = add_local_model(
            session, row.name, None, games, options, prompt_style=style, adapter_of=adapter_of, trained_from=base
        )
        if adapter_of is not None and base is not None:
            play_as_base(model, base, adapter_rank(files.output))
        return TrainedModel(model, made.get("step"))


BACKEND: ProcessBackend = LocalBackend()


def _checkpoint_of(home: Path, base: LanguageModel, field: str = "base") -> Path:
    """The checkpoint of a local model. Raises NotFound, naming the field, if it is missing."""
    folder = resolve(home, read_options(base.options).path)
    if not folder.is_dir():
        raise NotFound(
            field,
            expected=Phrase("the checkpoint of %(name)s in %(folder)s", name=base.name, folder=folder),
            got=Phrase("none there"),
            remedy=Phrase("put it back"),
        )
    return folder


def _training_command(files: JobFiles, training: Sequence[str]) -> list[str]:
    """The command for one process, or for a launcher of several; either ends itself when this process is gone."""
    parent = ("--parent", str(os.getpid()))
    if not files.launcher:
        return [*PROGRAM, *training, *parent]
    devices = ("--devices", files.devices) if files.devices else ()
    return [*LAUNCH, "--launcher", files.launcher, *devices, *parent, *training]


def _environment(files: JobFiles) -> Mapping[str, str]:
    """The environment that tells a single process which GPU to use."""
    alone = files.devices and not files.launcher
    return {**os.environ, "CUDA_VISIBLE_DEVICES": files.devices} if alone else os.environ
