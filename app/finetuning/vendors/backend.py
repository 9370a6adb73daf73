"""A backend whose trainings a vendor runs. The web process loads it, so nothing here calls a vendor."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ValidationError
from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase, either
from app.core.queues import BATCH
from app.datasets import store
from app.finetuning.backends import Backend, TrainedModel, tuned_options
from app.finetuning.config import Fields, read_fields, refuse_fault
from app.finetuning.files import JobFiles
from app.finetuning.vendors.rows import RowReader, vendor_row
from app.games.base import JSON
from app.models import Dataset, LanguageModel, TrainingJob
from app.players.api.options import read_options
from app.registry import add_api_model
from training.methods.base import fields_of, first_fault

API = "api"  # the kind of models that vendors start from


class VendorBackend(Backend):
    """The base class of all backends whose trainings a vendor runs.

    `configs` are the fields by method, for the methods that the vendor offers.
    """

    vendor: str
    configs: ClassVar[Mapping[str, type[BaseModel]]]
    rows: RowReader  # a static method, as the next one
    epochs: Callable[[JSON, int], int]  # of a training with these fields on this number of rows
    queue = BATCH  # checking a job takes a second and must not wait behind a training here

    def fields(self, method: str) -> Fields:
        """The vendor's fields for a method."""
        return fields_of(self.configs[method]) if method in self.configs else {}

    def read_config(self, method: str, raw: Mapping[str, Any]) -> JSON:
        """The given fields, checked; numbers may be given as text, and null stands for the default.

        Raises Invalid, also for a method that the vendor does not offer.
        """
        if method not in self.configs:
            expected = Phrase(
                "%(methods)s, which is all that %(vendor)s trains with",
                methods=either(self.configs),
                vendor=self.vendor,
            )
            raise Invalid("method", expected=expected, got=method)
        config = self.configs[method]
        found = read_fields(fields_of(config), raw, self.vendor.lower())
        try:
            config.model_validate(found)
        except ValidationError as error:
            refuse_fault(first_fault(config, error))
        return found

    def check_row(self, row: Mapping[str, Any], dataset: str) -> None:
        """Raises Invalid for a row that the vendor would not take."""
        vendor_row(row, 1, dataset, self.rows)

    def check_base(self, base: LanguageModel, field: str = "base") -> None:
        """Raises Invalid, naming the field, for a model that is not an API model, or whose API takes no key."""
        if base.kind != API:
            raise Invalid(
                field,
                expected=Phrase("an API model, which %(vendor)s can start from", vendor=self.vendor),
                got=Phrase("%(name)s, which is %(kind)s", name=base.name, kind=base.kind),
            )
        if not read_options(base.options).key_env:
            raise Invalid(
                field,
                expected=Phrase("an API model with a key, as %(vendor)s's have", vendor=self.vendor),
                got=Phrase("%(name)s, whose server takes none", name=base.name),
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
        """Register the tuned model with its base's options, except the prices of play.

        Raises Conflict if the name has been taken meanwhile.
        """
        base = session.get_one(LanguageModel, row.base_id)
        options = tuned_options(base, row.remote_model)
        return TrainedModel(add_api_model(session, row.name, None, games, options, prompt_style=style), row.step)
