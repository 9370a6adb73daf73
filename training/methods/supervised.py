"""What methods have in common that mix rows which are learnt as they are into rows of another kind."""

from pathlib import Path

from pydantic import Field

from training.methods.base import FromCheckpoint


class WithSupervisedRows(FromCheckpoint):
    """The fields of a method that learns from a second file of conversations, too."""

    sft_data: Path | None = Field(
        default=None,
        title="Supervised rows",
        description="Conversations that are learnt as they are, all of them, beside `data`.",
        json_schema_extra={"given_by": "job", "unset": "none"},
    )
