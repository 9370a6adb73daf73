"""A training at OpenAI: the dataset is uploaded, the vendor trains, and the tuned model is an API model like its base.

`app/finetuning/openai/` has the fields, the rows, the calls, and the steps that a worker takes.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase
from app.core.queues import BATCH
from app.datasets import store
from app.finetuning.backends import Backend, TrainedModel, tuned_options
from app.finetuning.config import Fields
from app.finetuning.files import JobFiles
from app.finetuning.openai import fields
from app.finetuning.openai.rows import vendor_row
from app.finetuning.tinker.address import service_of
from app.games.base import JSON
from app.models import Dataset, LanguageModel, TrainingJob
from app.players.api.options import read_options
from app.registry import add_api_model

API = "api"  # the kind of models that it goes on from


class OpenAIBackend:
    """Has OpenAI train, or another server with its API for fine-tuning, at the address and with the key of the base."""

    title = "At OpenAI"
    summary = (
        "The dataset is uploaded to the server of the base, an API model, and trained there. This costs money. OpenAI"
        " itself takes no new customers for it, and no jobs from 6 January 2027 on."
    )
    bases = Phrase("API model")
    queue = BATCH  # a look at a job takes a second, and must not wait behind a training here
    runner = "app.finetuning.openai.runner:follow_vendor"

    def fields(self, method: str) -> Fields:
        """The vendor's hyperparameters, suffix and seed."""
        return fields.fields() if method in fields.METHODS else {}

    def read_config(self, method: str, raw: Mapping[str, Any]) -> JSON:
        """The given fields, checked. Raises Invalid, also for a method that the vendor has not."""
        fields.check_method(method)
        return fields.read_config(raw)

    def check_row(self, row: Mapping[str, Any], dataset: str) -> None:
        """Raises Invalid for a row with a weight other than 0 and 1, or a negative reward."""
        vendor_row(row, 1, dataset)

    def check_base(self, base: LanguageModel, field: str = "base") -> None:
        """Raises Invalid, naming the field, for a model that is not behind an API, or behind one without keys."""
        if base.kind != API:
            raise Invalid(
                field,
                expected=Phrase("an API model, which OpenAI can go on from"),
                got=Phrase("%(name)s, which is %(kind)s", name=base.name, kind=base.kind),
            )
        if not may_be_trained(base):
            raise Invalid(
                field,
                expected=Phrase("an API model with a key, as OpenAI's have"),
                got=Phrase("%(name)s, whose server takes none", name=base.name),
            )
        if service_of(base) is not None:
            raise Invalid(
                field,
                expected=Phrase("an API model at OpenAI"),
                got=Phrase("%(name)s, which is at Tinker", name=base.name),
                remedy=Phrase("set backend to tinker"),
            )

    def check_files(self, home: Path, dataset: Dataset, base: LanguageModel | None, name: str) -> None:  # noqa: ARG002
        """Raises NotFound for a dataset whose file is gone."""
        store.path_of(home, dataset)

    def register(
        self,
        session: Session,
        row: TrainingJob,
        files: JobFiles,  # noqa: ARG002 - nothing of it is here
        games: Sequence[str],
        style: str,
    ) -> TrainedModel:
        """Register the tuned model with its base's options, but for the prices of play.

        Raises Conflict where the name was taken meanwhile.
        """
        base = session.get_one(LanguageModel, row.base_id)
        options = tuned_options(base, row.remote_model)
        return TrainedModel(add_api_model(session, row.name, None, games, options, prompt_style=style), row.step)


BACKEND: Backend = OpenAIBackend()


def may_be_trained(model: LanguageModel) -> bool:
    """Whether OpenAI may be able to go on from a model: it is called with a key."""
    return model.kind == API and bool(read_options(model.options).key_env)
