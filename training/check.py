"""Looks at a checkpoint folder by loading it, as play and training do, and says what it is."""

from pathlib import Path
from typing import Any

from transformers.utils.logging import disable_progress_bar

from training.checkpoints import check, length_of, load


def facts(folder: Path) -> dict[str, Any]:
    """What there is to know of a checkpoint before it is used. Raises Refused where it cannot be."""
    disable_progress_bar()
    sha256 = check(folder)
    model, tokenizer = load(folder, sha256)
    return {
        "sha256": sha256,
        "architecture": type(model).__name__,
        "parameters": model.num_parameters(),
        "length": length_of(model),
        "vocabulary": len(tokenizer),
        "chat_template": bool(tokenizer.chat_template),
    }
