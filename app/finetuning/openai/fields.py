"""The fields of a training at OpenAI: described once, for form, command line, checks and docs. Pure.

Names and meanings are the vendor's; metadata beyond type and default follows `training/methods/base.py`. Source: openai
3.51, `openai.types.fine_tuning.job_create_params` and `supervised_hyperparameters_param`.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from app.finetuning.vendors.answers import TOKEN
from app.finetuning.vendors.request import VendorRequest
from app.games.base import JSON
from training.methods.base import FieldFault

MOST_SUFFIX = 64  # characters
_USUAL_EPOCHS, _MOST_EPOCHS = 3, 25
_FEWEST_SEEN, _MOST_SEEN = 100, 25_000  # rows times epochs


class OpenAIFields(BaseModel):
    """The fields of a job trained at OpenAI; the vendor chooses those that are `auto` or left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    n_epochs: Annotated[int, Field(ge=1, le=100)] | Literal["auto"] = Field(
        default="auto", title="Epochs", description="How often each row is seen.", json_schema_extra={"rank": 1}
    )
    learning_rate_multiplier: Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["auto"] = Field(
        default="auto",
        title="Learning rate, multiplier",
        description="What the vendor's own learning rate is multiplied by.",
        json_schema_extra={"rank": 2},
    )
    batch_size: Annotated[int, Field(ge=1, le=10_000)] | Literal["auto"] = Field(
        default="auto",
        title="Batch",
        description="Rows in a step.",
        json_schema_extra={"unit": "rows", "rank": 3},
    )
    suffix: str | None = Field(
        default=None,
        title="Suffix",
        description="What the vendor puts into the name of the model, at most 64 characters.",
        json_schema_extra={"unset": "none", "rank": 4},
    )
    seed: int | None = Field(
        default=None,
        ge=0,
        lt=2**31,
        title="Seed",
        description="With the same seed, the same training gives nearly the same model.",
        json_schema_extra={"unset": "the vendor's own", "rank": 5},
    )

    @field_validator("suffix")
    @classmethod
    def _suffix_is_a_name(cls, raw: str | None) -> str | None:
        expected = f"1 to {MOST_SUFFIX} characters without line breaks"
        if raw is None or (0 < len(raw) <= MOST_SUFFIX and raw.isprintable()):
            return raw
        got = f"{len(raw)} characters" if len(raw) > MOST_SUFFIX else repr(raw)
        raise FieldFault("suffix", expected=expected, got=got)


def epochs_of(config: JSON, rows: int) -> int:
    """The epochs of a training with these fields on this number of rows.

    Where OpenAI chooses, it repeats small datasets more often and passes over very large ones once. Source: OpenAI's
    cookbook, "Data preparation and analysis for chat model fine-tuning".
    """
    given = OpenAIFields.model_validate(config).n_epochs
    if isinstance(given, int):
        return given
    if rows * _USUAL_EPOCHS < _FEWEST_SEEN:
        return min(_MOST_EPOCHS, _FEWEST_SEEN // max(1, rows))
    if rows * _USUAL_EPOCHS > _MOST_SEEN:
        return max(1, _MOST_SEEN // rows)
    return _USUAL_EPOCHS


def body_of(asked: VendorRequest) -> JSON:
    """The body of the request that creates a job: each hyperparameter, `auto` where it was not given."""
    given = OpenAIFields.model_validate(asked.config)
    names = ("n_epochs", "batch_size", "learning_rate_multiplier")
    method = {"type": "supervised", "supervised": {"hyperparameters": {name: getattr(given, name) for name in names}}}
    more = {"suffix": given.suffix, "seed": given.seed}
    return {
        "model": asked.model,
        "training_file": asked.file_id,
        "method": method,
        "metadata": {TOKEN: asked.token},
        **{name: value for name, value in more.items() if value is not None},
    }
