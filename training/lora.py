"""Low-rank adapters: small matrices trained beside frozen weights, then merged into the weights or kept separately.

Source: LoRA, arXiv 2106.09685, as the library peft has it.
"""

import json
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from peft.utils import SAFETENSORS_WEIGHTS_NAME
from transformers.pytorch_utils import Conv1D

from training import checkpoints
from training.errors import TrainingRefused, one_line
from training.hashes import checkpoint_hash
from training.methods.base import FromCheckpoint


def with_adapters(model: Any, config: FromCheckpoint) -> Any:
    """The model, frozen, with new adapters that have no effect yet.

    If adapters are kept separately and the base has some, their training continues, on the base they were trained on.
    Raises Refused where the model has no layers of the names in `lora_targets`, or the base's adapters are others.
    """
    if config.keep_adapters and checkpoints.is_adapter(config.base):
        return _with_those_of_base(config)
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
        warnings.simplefilter("ignore", FutureWarning)  # peft uses names that transformers is about to drop
        return get_peft_model(model, adapters)


def _can_be_adapted(layer: Any) -> bool:
    return isinstance(layer, (torch.nn.Linear, Conv1D))


def _with_those_of_base(config: FromCheckpoint) -> Any:
    known: Any = LoraConfig.from_pretrained(str(config.base))
    if config.lora_rank != known.r or config.lora_alpha not in (None, known.lora_alpha) or config.lora_targets:
        raise TrainingRefused(
            f"lora_rank: expected {known.r}, with lora_alpha {known.lora_alpha} and no lora_targets, as the adapters of"
            f" the base have them, got others; give these, or leave out keep_adapters, which merges the base's first"
        )
    known.lora_dropout, known.inference_mode = config.lora_dropout, False
    base, sha256 = checkpoints.base_of(config.base)
    known.base_model_name_or_path = str(base)  # where the library looks when it saves
    model, _ = checkpoints.load(base, sha256)
    return PeftModel.from_pretrained(model, str(config.base), is_trainable=True, config=known)


def merged(base: Any, folder: Path) -> Any:
    """The base model with the adapters in a folder merged into its weights, all of which are trainable again.

    Raises Refused where they do not fit it.
    """
    return _adapted(base, folder).merge_and_unload().requires_grad_(True)


def with_kept(base: Any, folder: Path) -> Any:
    """The base model with the adapters in a folder beside its weights, which stay unchanged and may be shared.

    Raises Refused where they do not fit it.
    """
    return _adapted(base, folder).base_model.model


def _adapted(base: Any, folder: Path) -> PeftModel:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about deprecated names, and problems that it fixes itself
            warnings.filterwarnings("error", message="Found missing adapter keys")  # these would keep initial values
            return PeftModel.from_pretrained(base, str(folder))
    except Exception as error:  # the library raises various errors for mismatched shapes
        raise TrainingRefused(
            f"{folder}: expected adapters that fit their base, got {one_line(error)}; take the whole folder, and the"
            " base that they were trained over"
        ) from None


def keep_adapters(config: FromCheckpoint, trained: Path, folder: Path) -> dict[str, Any]:
    """Copy the adapters of a run's checkpoint into a folder of their own.

    Returns the base's entry for the provenance, with its path relative to `config.output`. The config names the base by
    its hash, so that the same adapters have the same hash wherever they are trained.
    """
    base, sha256 = config.base, config.base_sha256 or checkpoint_hash(config.base)
    if checkpoints.is_adapter(base):
        base, sha256 = checkpoints.base_of(base)
    adapters = json.loads((trained / checkpoints.ADAPTER_CONFIG).read_text(encoding="utf-8"))
    text = json.dumps({**adapters, "base_model_name_or_path": sha256}, indent=2, sort_keys=True)
    (folder / checkpoints.ADAPTER_CONFIG).write_text(text + "\n", encoding="utf-8")
    shutil.copy(trained / SAFETENSORS_WEIGHTS_NAME, folder)
    path = os.path.relpath(base.resolve(), config.output.resolve())
    return {checkpoints.ADAPTER_OF: {"path": path, "sha256": sha256}}
