"""Writes adapters and their base as one checkpoint, for programs that take nothing else."""

import shutil
from pathlib import Path
from typing import Any

from transformers.utils.logging import disable_progress_bar

from training import checkpoints
from training.errors import TrainingRefused
from training.hashes import checkpoint_hash

MERGED_FROM = "merged_from"  # in parlor.json: the hash of the adapters


def merge(folder: Path, output: Path) -> str:
    """Merge the adapters in a folder into their base, in float32, and write the checkpoint; returns its hash.

    Raises Refused where the folder holds no adapters or cannot be loaded, and as `write_merged`.
    """
    if not checkpoints.is_adapter(folder):
        raise TrainingRefused(f"{folder}: expected adapters, got none; a whole checkpoint needs no merging")
    disable_progress_bar()
    sha256 = checkpoints.check(folder, with_base=False)
    return write_merged(*checkpoints.load(folder, sha256), folder, sha256, output)


def write_merged(model: Any, tokenizer: Any, folder: Path, sha256: str, output: Path) -> str:
    """Write the model loaded from the adapters in a folder, which have that hash; returns the checkpoint's hash.

    An existing checkpoint that is complete and made from these adapters is kept; any other is replaced. Raises Failed
    when the disk is full.
    """
    if (found := _hash_of_merged(output, sha256)) is not None:
        return found
    shutil.rmtree(output, ignore_errors=True)
    renderer = checkpoints.renderer_of(checkpoints.read_provenance(folder))
    with checkpoints.written(output) as part:
        model.save_pretrained(part)
        tokenizer.save_pretrained(part)
        return checkpoints.write_provenance(part, {MERGED_FROM: sha256, "renderer": renderer})


def _hash_of_merged(output: Path, sha256: str) -> str | None:
    """The hash of the checkpoint in a folder, if it is complete and merged from adapters with that hash; else None."""
    try:
        about = checkpoints.read_provenance(output)
    except TrainingRefused:
        return None
    found = about.get("checkpoint_sha256")
    if about.get(MERGED_FROM) != sha256 or found is None or checkpoint_hash(output) != found:
        return None
    return str(found)
