"""Checks a checkpoint folder by loading it, as play and training do, and describes it."""

from pathlib import Path
from typing import Any

import torch
from transformers.utils.logging import disable_progress_bar

from training.checkpoints import base_of, check, is_adapter, length_of, load
from training.marks import FAMILIES
from training.merging import write_merged
from training.rendering import Renderer, marks_of


def facts(folder: Path, merged: Path | None = None) -> dict[str, Any]:
    """The facts about a checkpoint before it is used; adapters are also written to `merged`, with their base.

    Raises Refused if it cannot be used, Failed when the disk is full.
    """
    disable_progress_bar()
    sha256 = check(folder, with_base=False)
    model, tokenizer = load(folder, sha256)
    if merged is not None and is_adapter(folder):
        write_merged(model, tokenizer, folder, sha256, merged)
    return {
        "sha256": sha256,
        "adapter_of": base_of(folder)[1] if is_adapter(folder) else None,  # the hash of their base
        "architecture": type(model).__name__,
        "parameters": model.num_parameters(),
        "length": length_of(model),
        "vocabulary": len(tokenizer),
        "chat_template": bool(tokenizer.chat_template),
        "gpu": torch.cuda.is_available(),
        "tokenizer": _tokenizer_facts(model, tokenizer),
    }


def _tokenizer_facts(model: Any, tokenizer: Any) -> dict[str, Any]:
    """The facts about a model's tokenizer that clients of its server need, because the tokenizer renders the prompts
    there.
    """
    renderer = Renderer(tokenizer, length_of(model))
    marks = marks_of(tokenizer)
    own = tuple(token for token in marks.tokens if FAMILIES.broken(f"a {token} a") == f"a {token} a")
    return {
        "sha256": renderer.tokenizer_hash,
        "ends": sorted(renderer.end_tokens(model.generation_config.eos_token_id)),
        "lets_reason": renderer.lets_reason,
        "marks": marks._replace(tokens=own)._asdict(),
    }
