"""Low-rank adapters: small matrices beside frozen weights are trained, and merged into the weights in the end.

Source: LoRA, arXiv 2106.09685, as the library peft has it.
"""

import warnings
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from transformers.pytorch_utils import Conv1D

from training import checkpoints
from training.errors import TrainingRefused
from training.methods.base import FromCheckpoint


def with_adapters(model: Any, config: FromCheckpoint) -> Any:
    """The model, frozen, with fresh adapters, which change nothing yet.

    Raises Refused where the model has no layers of the names in `lora_targets`.
    """
    targets: str | list[str] = "all-linear"
    if config.lora_targets is not None:
        targets = [name for each in config.lora_targets.split(",") if (name := each.strip())]
        head = model.get_output_embeddings()
        layers = ((name, layer) for name, layer in model.named_modules() if layer is not head)
        known = {name.rpartition(".")[2] for name, layer in layers if _can_be_adapted(layer)}
        if not targets or (unknown := sorted(set(targets) - known)):
            got = unknown[0] if targets else "none"
            raise TrainingRefused(
                f"lora_targets: expected names among {', '.join(sorted(known))}, got {got}; leave it out for all linear"
                " layers"
            )
    adapters = LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha or 2 * config.lora_rank,
        lora_dropout=config.lora_dropout,
        target_modules=targets,
        task_type=TaskType.CAUSAL_LM,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by names that it is to lose
        return get_peft_model(model, adapters)


def _can_be_adapted(layer: Any) -> bool:
    return isinstance(layer, (torch.nn.Linear, Conv1D))


def merged(config: FromCheckpoint, folder: Path) -> Any:
    """The base with the adapters of a run's checkpoint added to its weights. Raises Refused as `checkpoints.load`."""
    base, _ = checkpoints.load(config.base, config.base_sha256)
    return PeftModel.from_pretrained(base, str(folder)).merge_and_unload()
