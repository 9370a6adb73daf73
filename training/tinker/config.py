"""The config of a training at Tinker: the fields of its method and, under `at`, the service and the model to train."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from training.errors import TrainingRefused, shown
from training.methods.base import Config, Method, first_fault


class TinkerPlace(BaseModel):
    """Where a training runs. No file holds the key itself: `key_env` is the environment variable that does."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    service: str  # the address of Tinker's API
    model: str  # its name for an open model, or the `tinker://` path of a checkpoint for sampling
    key_env: str
    tokenizer: str | None  # a folder, or a name at Hugging Face; None: the one that the service names
    label: str  # of the run, as Tinker's own lists show it


def read_job(method: Method, path: Path) -> tuple[Config, TinkerPlace]:
    """The config of the method, and the place. Raises TrainingRefused, naming the field."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        place = TinkerPlace.model_validate(raw.pop("at"))
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise TrainingRefused(f"{path}: expected a config with a place under at, got {shown(error)}") from None
    fields: dict[str, Any] = {"base": ".", **raw}  # whose weights are not here
    try:
        return method.config.model_validate(fields), place
    except ValidationError as error:
        raise TrainingRefused(f"{path}: {first_fault(method.config, error)}") from None
