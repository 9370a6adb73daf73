"""Adapters (LoRA) for tests: random ones over a checkpoint, in folders as trainings with `keep_adapters` leave them."""

import json
import os
import shutil
import warnings
from pathlib import Path

import torch
from peft import LoraConfig, TaskType, get_peft_model

from training import checkpoints
from training.hashes import checkpoint_hash
from training.lora import merged


def adapters_over(base: Path, folder: Path, seed: int = 1, rank: int = 2) -> str:
    """Adapters of all linear layers that change what the base says; returns their hash."""
    torch.manual_seed(seed)
    model, tokenizer = checkpoints.load(base)
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type=TaskType.CAUSAL_LM)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries, about each other
        adapted = get_peft_model(model, config)
    for name, weights in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weights, std=0.3)
    adapted.save_pretrained(str(folder))
    (folder / "README.md").unlink(missing_ok=True)
    tokenizer.save_pretrained(folder)
    sha256 = checkpoint_hash(base)
    written = json.loads((folder / checkpoints.ADAPTER_CONFIG).read_text())
    (folder / checkpoints.ADAPTER_CONFIG).write_text(json.dumps({**written, "base_model_name_or_path": sha256}))
    where = os.path.relpath(base.resolve(), folder.resolve())
    return checkpoints.write_provenance(folder, {checkpoints.ADAPTER_OF: {"path": where, "sha256": sha256}})


def merged_into(base: Path, adapters: Path, folder: Path) -> str:
    """The base with adapters added to its weights, as a checkpoint of its own; returns its hash."""
    model, tokenizer = checkpoints.load(base)
    merged(model, adapters).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return checkpoints.write_provenance(folder, {})


def cut_off(adapters: Path) -> None:
    """Leave half of the file of the weights, as a copy that broke off does."""
    weights = adapters / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])


def of_other_hash(base: Path) -> None:
    """Change a checkpoint, so that it is no longer the one that its adapters were trained over."""
    with (base / "config.json").open("a") as config:
        config.write(" ")


def removed(base: Path) -> None:
    """Take a checkpoint away."""
    shutil.rmtree(base)
