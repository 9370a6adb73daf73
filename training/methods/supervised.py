"""What methods have in common that mix supervised rows into rows of another kind."""

from pathlib import Path

from pydantic import Field

from training.methods.base import FromCheckpoint


class WithSupervisedRows(FromCheckpoint):
    """The fields of a method that also learns from a second file of conversations."""

    sft_data: Path | None = Field(
        default=None,
        title="Supervised rows",
        description="Conversations for supervised training, all of them, beside `data`.",
        json_schema_extra={"given_by": "job", "unset": "none"},
    )
