"""What a training is told: one YAML or JSON file, checked before anything heavy is loaded."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from training.errors import TrainingRefused, shown

RENAMED = {"clip": "max_grad_norm"}  # fields under their names of before 0.2, which files and checkpoints still have


def with_new_names(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields under their names of today. Raises ValueError where one is given under both."""
    for old, new in RENAMED.items():
        if old in raw and new in raw:
            raise ValueError(f"{old}: expected {new} alone, which is its new name, got both; leave {old} out")
    return {RENAMED.get(name, name): value for name, value in raw.items()}


class Config(BaseModel):
    """What every method is told; docs/training.md says what each field means. Relative paths start where one stands."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data: Path
    output: Path
    run: Path | None = None
    chat_template: Path | None = None
    max_length: int | None = Field(default=None, ge=8)

    seed: int = Field(default=0, ge=0, lt=2**32)
    epochs: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    max_steps: int | None = Field(default=None, ge=1)
    batch: int = Field(default=8, ge=1)
    accumulation: int = Field(default=1, ge=1)
    learning_rate: float = Field(default=5e-5, gt=0, allow_inf_nan=False)
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    warmup: float = Field(default=0.03, ge=0, lt=1)
    weight_decay: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    max_grad_norm: float = Field(default=1.0, ge=0, allow_inf_nan=False)

    eval_data: Path | None = None
    eval_share: float = Field(default=0.0, ge=0, lt=1)
    eval_every: int | None = Field(default=None, ge=1)
    patience: int = Field(default=0, ge=0)

    save_every: int | None = Field(default=None, ge=1)
    keep: int = Field(default=2, ge=1)
    log_every: Annotated[int, Field(ge=1)] | Literal["auto"] = 1
    device: Literal["auto", "cpu"] = "auto"
    precision: Literal["float32", "bfloat16"] = "float32"
    threads: int | None = Field(default=None, ge=1)
    resume: bool = True

    @model_validator(mode="before")
    @classmethod
    def _old_names_are_read(cls, raw: Any) -> Any:
        return with_new_names(raw) if isinstance(raw, Mapping) else raw

    @model_validator(mode="after")
    def _fields_fit_together(self) -> Self:
        if self.eval_data is not None and self.eval_share:
            raise ValueError("expected eval_data or eval_share, got both; leave one out")
        for name in ("patience", "eval_every"):
            if getattr(self, name) and not self.evaluates:
                raise ValueError(f"{name}: expected eval_data or eval_share beside it, got neither; name one")
        return self

    @property
    def evaluates(self) -> bool:
        """Whether some rows are kept aside to be evaluated on."""
        return self.eval_data is not None or self.eval_share > 0

    @property
    def run_folder(self) -> Path:
        """Where a training keeps what it needs to go on after a kill, and its logs."""
        return self.run or self.output.with_name(self.output.name + ".run")


class SftConfig(Config):
    """Goes on from a checkpoint, which has to have the hash if one is named."""

    base: Path
    base_sha256: str | None = None


class TinyConfig(Config):
    """Begins from nothing: what the model looks like, too."""

    width: int = Field(default=128, ge=8)
    layers: int = Field(default=6, ge=1)
    heads: int = Field(default=4, ge=1)
    length: int = Field(default=512, ge=8)
    min_count: int = Field(default=2, ge=1)
    max_words: int = Field(default=8000, ge=1)
    batch: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=3e-3, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _heads_divide_the_width(self) -> Self:
        if self.width % (2 * self.heads):
            raise ValueError(f"width: expected a multiple of twice the heads ({2 * self.heads}), got {self.width}")
        return self


C = TypeVar("C", bound=Config)


def read_config(kind: type[C], path: Path) -> C:
    """The config in a file. Raises Refused, naming the field, what was expected and what came."""
    raw = _read(path)
    if not isinstance(raw, dict):
        raise TrainingRefused(f"{path}: expected fields and their values, got {shown(raw)}")
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise TrainingRefused(f"{path}: {_first_fault(kind, error)}") from None


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise TrainingRefused(f"{path}: expected a config file, got none: {error.strerror}") from None
    except (ValueError, yaml.YAMLError) as error:
        raise TrainingRefused(f"{path}: expected YAML or JSON, got {' '.join(str(error).split())}") from None


def _first_fault(kind: type[Config], error: ValidationError) -> str:
    fault = error.errors()[0]
    name = str(fault["loc"][0]) if fault["loc"] else ""
    if fault["type"] == "extra_forbidden":
        return f"{name}: expected one of {', '.join(kind.model_fields)}"
    if fault["type"] == "missing":
        return f"{name}: expected a value, got none"
    if fault["type"] == "value_error":
        return str(fault["ctx"]["error"])
    return f"{name}: {fault['msg'].replace('Input should be', 'expected')}, got {shown(fault['input'])}"
