"""What a training at OpenAI may be given: described once, for form, command line, checks and docs. Pure.

Names and meanings are the vendor's; what is said of a field beside type and default is as `training/methods/base.py`
has it.
Source: openai 3.51, `openai.types.fine_tuning.job_create_params` and `supervised_hyperparameters_param`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from app.core.errors import Invalid, Phrase
from app.finetuning.config import Fields, read_fields, refuse_fault
from app.games.base import JSON
from training.methods.base import FieldFault, fields_of, first_fault

METHODS = ("sft",)  # those of ours that the vendor has under another name: supervised
MOST_SUFFIX = 64  # characters
AUTO = "auto"  # the vendor chooses


class OpenAIFields(BaseModel):
    """The fields of a job whose model is trained at OpenAI; what is `auto`, or left out, the vendor chooses."""

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
        description="With the same one the same training comes to nearly the same model.",
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


def fields() -> Fields:
    """The JSON Schema of each field."""
    return fields_of(OpenAIFields)


def check_method(method: str) -> None:
    """Raises Invalid for a method that the vendor has not."""
    if method not in METHODS:
        expected = Phrase("%(methods)s, which is all that OpenAI trains with", methods=", ".join(METHODS))
        raise Invalid("method", expected=expected, got=method)


def read_config(raw: Mapping[str, Any]) -> JSON:
    """The given fields, checked; numbers may have come as text, and null stands for the default. Raises Invalid."""
    found = read_fields(fields(), raw, "openai")
    try:
        OpenAIFields.model_validate(found)
    except ValidationError as error:
        refuse_fault(first_fault(OpenAIFields, error))
    return found


def method_of(config: Mapping[str, Any]) -> JSON:
    """The vendor's `method` of a job with these fields: each hyperparameter, `auto` where it was not given."""
    given = OpenAIFields.model_validate(config)
    names = ("n_epochs", "batch_size", "learning_rate_multiplier")
    return {"type": "supervised", "supervised": {"hyperparameters": {name: getattr(given, name) for name in names}}}
