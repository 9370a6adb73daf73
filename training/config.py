"""Reads the config of a training: one YAML or JSON file, checked before anything heavy is loaded."""

import json
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from training.errors import TrainingRefused, shown
from training.methods.base import Config, first_fault

C = TypeVar("C", bound=Config)


def read_config(kind: type[C], path: Path) -> C:
    """The config in a file. Raises TrainingRefused, naming the field, what was expected and what came."""
    raw = _parse_file(path)
    if not isinstance(raw, dict):
        raise TrainingRefused(f"{path}: expected fields and their values, got {shown(raw)}")
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise TrainingRefused(f"{path}: {first_fault(kind, error)}") from None


def _parse_file(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise TrainingRefused(f"{path}: expected a config file, got none: {error.strerror}") from None
    except (ValueError, yaml.YAMLError) as error:
        raise TrainingRefused(f"{path}: expected YAML or JSON, got {' '.join(str(error).split())}") from None
