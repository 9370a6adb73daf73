"""The fields of a training at Together: described once, for form, command line, checks and docs. Pure.

Names, meanings and defaults are the vendor's.
Source: https://docs.together.ai/reference/post-fine-tunes and together-py,
`lib/resources/fine_tuning.py`.
"""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.finetuning.together.answers import SUFFIX
from app.finetuning.vendors.request import VendorRequest
from app.games.base import JSON
from training.methods.base import FieldFault

# Fields that a job cannot choose, with the vendor's defaults: its server reportedly reads omitted ones as 0.
_USUAL = {"n_checkpoints": 1, "n_evals": 0, "warmup_ratio": 0.0, "max_grad_norm": 1.0, "weight_decay": 0.0}


class SftFields(BaseModel):
    """The fields of a job trained at Together."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    n_epochs: int = Field(
        default=1,
        ge=1,
        le=100,
        title="Epochs",
        description="How often each row is seen.",
        json_schema_extra={"rank": 1},
    )
    learning_rate: float = Field(
        default=1e-5,
        gt=0,
        allow_inf_nan=False,
        title="Learning rate",
        description="Peak value; large models need lower rates than small ones.",
        json_schema_extra={"rank": 2},
    )
    batch_size: Annotated[int, Field(ge=1, le=10_000)] | Literal["max"] = Field(
        default="max",
        title="Batch",
        description="Rows in a step, up to Together’s limit for the base; max is that limit.",
        json_schema_extra={"unit": "rows", "rank": 3},
    )
    training_type: Literal["lora", "full"] = Field(
        default="lora",
        title="What is trained",
        description="Adapters, or all weights.",
        json_schema_extra={"rank": 4},
    )
    lora_rank: int | None = Field(
        default=None,
        ge=1,
        le=512,
        title="LoRA rank",
        description="Of the adapters.",
        json_schema_extra={"unset": "the vendor's own", "rank": 5},
    )

    @model_validator(mode="after")
    def _has_adapters_for_a_rank(self) -> Self:
        if self.lora_rank is not None and self.training_type == "full":
            raise FieldFault("lora_rank", expected="none beside training_type full", got=str(self.lora_rank))
        return self


class DpoFields(SftFields):
    """The fields of a job that learns from preferences."""

    dpo_beta: float = Field(
        default=0.1,
        gt=0,
        allow_inf_nan=False,
        title="Beta (β)",
        description="How close the model stays to its base; higher is closer.",
        json_schema_extra={"rank": 6},
    )


CONFIGS = {"sft": SftFields, "dpo": DpoFields}


def epochs_of(config: JSON, _rows: int) -> int:
    """The epochs of a training with these fields."""
    return DpoFields.model_validate(config).n_epochs


def body_of(asked: VendorRequest) -> JSON:
    """The body of the request that creates a job.

    Jobs take no metadata: the suffix of the model's name marks ours. A base that was trained there is a checkpoint.
    """
    given = CONFIGS[asked.method].model_validate(asked.config)
    return {
        ("from_checkpoint" if asked.is_tuned else "model"): asked.model,
        "training_file": asked.file_id,
        "suffix": SUFFIX + asked.token,
        "n_epochs": given.n_epochs,
        "learning_rate": given.learning_rate,
        "batch_size": given.batch_size,
        "training_method": {"method": "dpo", "dpo_beta": given.dpo_beta}
        if isinstance(given, DpoFields)
        else {"method": "sft", "train_on_inputs": False},
        **_training_type(given),
        **_USUAL,
    }


def _training_type(given: SftFields) -> JSON:
    """Together trains adapters by default; if a rank is given, it requires the scale, too."""
    if given.training_type == "full":
        return {"training_type": {"type": "Full"}}
    if given.lora_rank is None:
        return {}
    return {"training_type": {"type": "Lora", "lora_r": given.lora_rank, "lora_alpha": 2 * given.lora_rank}}
