"""Checkpoints in memory, each once: a checkpoint and the adapters (LoRA) on top of it share the same weights.

Each model has its own layers around them, so that several may answer at once, each in its thread.
"""

import copy
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import torch

from app.inference.requests import Checkpoint
from training import checkpoints
from training.lora import with_kept

_whole: WeakValueDictionary[tuple[str, str, torch.dtype], Any] = WeakValueDictionary()  # by hash, device and numbers


class LoadedModel(NamedTuple):
    """A model and its tokenizer. Other models share `weights` while it is referenced."""

    model: Any
    tokenizer: Any
    weights: Any


def load(checkpoint: Checkpoint, device: str, dtype: torch.dtype) -> LoadedModel:
    """Load the model of a checkpoint on a device. Not thread-safe. Raises TrainingRefused."""
    folder, sha256 = checkpoint.folder, checkpoint.sha256
    if not checkpoints.is_adapter(folder):
        if (sha256, device, dtype) in _whole:
            checkpoints.check(folder, sha256)
        weights = _loaded(checkpoint, device, dtype)
        return LoadedModel(_sharing(weights), checkpoints.load_tokenizer(folder), weights)
    checkpoints.check(folder, sha256, with_base=False)
    base, base_sha256 = checkpoints.base_of(folder)
    weights = _loaded(checkpoint._replace(folder=base, sha256=base_sha256), device, dtype)
    model = with_kept(_sharing(weights), folder).to(device).eval()
    return LoadedModel(model, checkpoints.load_tokenizer(folder), weights)


def _loaded(checkpoint: Checkpoint, device: str, dtype: torch.dtype) -> Any:
    """The whole checkpoint, which is read from its folder unless it is in memory."""
    key = checkpoint.sha256, device, dtype
    found = _whole.get(key)
    if found is None:
        model, _ = checkpoints.load(checkpoint.folder, checkpoint.sha256, dtype)
        found = _whole[key] = model.to(device).eval()
    return found


def _sharing(model: Any) -> Any:
    """A model with its own layers and settings around the same weights."""
    return copy.deepcopy(model, {id(each): each for each in (*model.parameters(), *model.buffers())})
