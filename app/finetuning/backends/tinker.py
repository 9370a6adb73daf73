"""A training at Tinker: a process of the worker renders rows and computes losses, Tinker stores and updates the
weights.

`app/finetuning/tinker/` has the fields, `training/tinker/` the training. The model is an API model like its base.
"""

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app import training_part
from app.core.errors import Invalid, NotFound, Phrase, Verbatim
from app.core.files import replace_file
from app.core.queues import TRAIN
from app.datasets import store
from app.finetuning.backends import ProcessBackend, TrainedModel, row_files, tuned_options
from app.finetuning.config import Fields
from app.finetuning.files import JobFiles
from app.finetuning.tinker import fields
from app.finetuning.tinker.address import service_of
from app.games.base import JSON
from app.jobs.process import JobProcess
from app.models import Dataset, LanguageModel, TrainingJob
from app.players.api.addresses import check_host
from app.players.api.keys import read_key
from app.players.api.options import read_options, template_arguments
from app.players.local.options import read_template_arguments
from app.registry import add_api_model

PROGRAM = (sys.executable, "-m", "training.tinker")
INSTALL = "pip install -c constraints.txt -e '.[tinker]'"
_RESULT = "tinker.json"


class TinkerBackend:
    """Trains adapters on an open model at Tinker, or another server with its API, with the key of the base."""

    title = "At Tinker"
    summary = (
        "Tinker trains adapters on an open model: its server sees the rows as tokens, and losses are computed here."
        " This costs money, and needs no GPU."
    )
    vendor = None
    bases = Phrase("API model at Tinker")
    queue = TRAIN
    runner = "app.finetuning.runner:follow_process"

    def fields(self, method: str) -> Fields:
        """The fields of the method that apply at Tinker, with LoRA."""
        return fields.fields_of(method)

    def read_config(self, method: str, raw: Mapping[str, Any]) -> JSON:
        """The given fields, checked. Raises Invalid, also for a method that Tinker cannot train with."""
        return fields.read_config(method, raw)

    def check_row(self, row: Mapping[str, Any], dataset: str) -> None:
        """Accept every row: the training itself reports errors that depend on the base's tokenizer."""

    def check_base(self, base: LanguageModel, field: str = "base") -> None:
        """Raises Invalid, naming the field, for a model that is not at Tinker, and for a reference model."""
        if field != "base":
            raise Invalid(field, expected=Phrase("none at Tinker, where the base is the reference"), got=base.name)
        if service_of(base) is None:
            raise Invalid(
                field,
                expected=Phrase("an API model at Tinker, whose address ends with /oai/api/v1"),
                got=Phrase("%(name)s, which is elsewhere", name=base.name),
                remedy=Phrase("add one with `flask model add-api`; docs/training.md says how"),
            )

    def check_files(self, home: Path, dataset: Dataset, base: LanguageModel | None, name: str) -> None:  # noqa: ARG002
        """Raises NotFound for a dataset whose file is missing."""
        store.path_of(home, dataset)

    def check(self) -> None:
        """Raises NotFound if required packages are missing, and Conflict if they are still being installed."""
        training_part.require()
        needed = {"torch": training_part.BY_HAND, "transformers": training_part.BY_HAND, "tinker": INSTALL}
        for name, remedy in needed.items():
            if importlib.util.find_spec(name) is None:
                expected = "it to be installed where the job runs"
                raise NotFound(name, expected=expected, got=Verbatim("none"), remedy=remedy)

    def prepare(self, session: Session, row: TrainingJob, files: JobFiles) -> None:
        """Write the config. Raises Invalid for a host that may not be called, KeyRefused without a key, and NotFound
        and Invalid for missing or changed files.
        """
        base = session.get_one(LanguageModel, row.base_id)
        options = read_options(base.options)
        check_host(options.base_url, files.hosts)
        read_key(options)
        given = {**fields.usual(row.method), **row.config}
        place = {
            "service": service_of(base), "model": options.model, "key_env": options.key_env, "label": row.name,
            fields.TOKENIZER: given.pop(fields.TOKENIZER, None) or _tokenizer_of(session, base),
        }  # fmt: skip
        given |= row_files(session, files.home, row)
        if arguments := read_template_arguments(template_arguments(options)):
            given["template_arguments"] = arguments
        given |= {"output": str(files.folder / _RESULT), "run": str(files.run), "at": place}
        replace_file(files.config, [json.dumps(given, indent=2).encode()], private=True)

    def start(self, method: str, files: JobFiles, waiting: Callable[[], object]) -> JobProcess:
        """Raises Conflict if another process of the job cannot be ended."""
        command = [
            *PROGRAM, method, "--config", str(files.config), "--progress", str(files.progress),
            "--parent", str(os.getpid()),
        ]  # fmt: skip
        return JobProcess(command, files.lock, files.log, waiting, name="training")

    def collect(self, files: JobFiles) -> bool:
        """Whether Tinker has the model."""
        return (files.folder / _RESULT).exists()

    def register(
        self, session: Session, row: TrainingJob, files: JobFiles, games: Sequence[str], style: str
    ) -> TrainedModel:
        """Register the checkpoint with its base's options, except the prices of play.

        Raises Conflict if the name was taken meanwhile.
        """
        made = json.loads((files.folder / _RESULT).read_text(encoding="utf-8"))
        base = session.get_one(LanguageModel, row.base_id)
        row.remote_model = made["model"]
        options = tuned_options(base, row.remote_model)
        row.trained_tokens = made["tokens"]
        model = add_api_model(session, row.name, None, games, options, prompt_style=style)
        return TrainedModel(model, made["step"])


BACKEND: ProcessBackend = TinkerBackend()


def _tokenizer_of(session: Session, base: LanguageModel) -> str | None:
    """The tokenizer named for the training that made the base, if any."""
    made_by = session.scalar(select(TrainingJob).where(TrainingJob.model_id == base.id).limit(1))
    return None if made_by is None else made_by.config.get(fields.TOKENIZER)
