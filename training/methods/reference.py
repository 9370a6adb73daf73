"""What methods have in common that compare the model with a reference model."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from training.methods.base import FromCheckpoint, Packing


class WithReference(FromCheckpoint):
    """The fields of a method that also uses its rows' log-probabilities under a reference model."""

    packing: Packing = True
    reference: Path | None = Field(
        default=None,
        title="Reference",
        description="The checkpoint folder of the reference model, which has the vocabulary of the base.",
        json_schema_extra={"given_by": "job", "unset": "the base"},
    )
    reference_sha256: str | None = Field(
        default=None,
        title="Hash of the reference",
        description="The hash that the reference must have.",
        json_schema_extra={"given_by": "job", "unset": "any"},
    )
    reference_cache: Path | None = Field(
        default=None,
        title="Cache of the reference",
        description="A folder for the log-probabilities under the reference; trainings may share it.",
        json_schema_extra={"given_by": "job", "unset": "`reference` in the run folder"},
    )

    @property
    def cache_folder(self) -> Path:
        """Where the log-probabilities under the reference model are cached."""
        return self.reference_cache or self.run_folder / "reference"


KlWeight = Annotated[
    float,
    Field(
        ge=0,
        allow_inf_nan=False,
        title="KL weight",
        description="Weight of the term that keeps the model near the reference (β).",
    ),
]
