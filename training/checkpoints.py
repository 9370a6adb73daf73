"""Checkpoint folders: safetensors, a tokenizer, and `parlor.json`, which records where the model came from.

A folder may hold adapters (LoRA) in place of a model. Then `adapter_of` in its `parlor.json` gives the checkpoint that
they were trained over: its path relative to the folder, and its hash.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from training.errors import TrainingFailed, TrainingRefused, is_disk_full, one_line
from training.hashes import PROVENANCE, checkpoint_hash
from training.marks import FIRST_RENDERER, RENDERER

ADAPTER_CONFIG, ADAPTER_OF = "adapter_config.json", "adapter_of"
_OPTIONS: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}


def check(folder: Path, expected: str | None = None, *, with_base: bool = True) -> str:
    """The hash of a checkpoint that may be loaded; for adapters `with_base`, only if their base may be loaded, too.

    Raises Refused for a folder without config, safetensors or tokenizer, one that wants to run code of its own, one
    that does not match its `parlor.json`, or the `expected` hash, and for adapters whose base is missing.
    """
    if is_adapter(folder):
        base = base_of(folder)
        if with_base:
            check(*base)
    elif not (folder / "config.json").is_file():
        raise TrainingRefused(
            f"{folder}: expected a checkpoint folder with a config.json, got none there; name another"
        )
    if not any(folder.glob("*.safetensors")):
        raise TrainingRefused(
            f"{folder}: expected weights as .safetensors, got none; convert them, other formats can run code"
        )
    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise TrainingRefused(f"{folder}: expected a tokenizer beside the weights, got none; put the model's own there")
    return check_unchanged(folder, expected)


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds adapters in place of a model."""
    return (folder / ADAPTER_CONFIG).is_file()


def base_of(folder: Path) -> tuple[Path, str]:
    """The checkpoint that the adapters in a folder were trained over, and its hash. Raises Refused if none is named or
    it is missing.
    """
    try:
        found = read_provenance(folder)[ADAPTER_OF]
        base, sha256 = Path(os.path.normpath(folder / found["path"])), str(found["sha256"])
    except (KeyError, TypeError):
        raise TrainingRefused(
            f"{folder}: expected adapters whose {PROVENANCE} names their base, got none named; merge them with the"
            " library that made them, and take the whole checkpoint"
        ) from None
    if not base.is_dir():
        raise TrainingRefused(
            f"{folder}: expected the base of its adapters in {base}, got none there; put back the checkpoint with hash"
            f" {sha256[:12]}…"
        )
    return base, sha256


def check_unchanged(folder: Path, expected: str | None = None) -> str:
    """The hash of a folder that matches its `parlor.json`, or the `expected` hash. Raises Refused."""
    found = checkpoint_hash(folder)
    wanted = expected or read_provenance(folder).get("checkpoint_sha256", found)
    if found != wanted:
        raise TrainingRefused(
            f"{folder}: expected the checkpoint with hash {wanted[:12]}…, got {found[:12]}…; it was changed"
        )
    return found


def load(folder: Path, expected: str | None = None, dtype: torch.dtype = torch.float32) -> tuple[Any, Any]:
    """Model and tokenizer of a checkpoint folder; no code in it is ever run. Raises Refused as `check`.

    Adapters are merged into the weights of their base.
    """
    check(folder, expected, with_base=False)
    if is_adapter(folder):
        model, _ = load(*base_of(folder))
        return import_module("training.lora").merged(model, folder).to(dtype), load_tokenizer(folder)
    tokenizer = load_tokenizer(folder)
    try:
        model, found = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, output_loading_info=True, **_OPTIONS
        )
    except Exception as error:  # the library raises whatever its readers of a dozen formats raise
        raise unloadable(folder, error) from None
    if missing := sorted(found["missing_keys"]):
        raise TrainingRefused(
            f"{folder}: expected all weights of the model, got none for {missing[0]}; take the whole checkpoint"
        )
    known = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > known:
        raise TrainingRefused(
            f"{folder}: expected a tokenizer of at most {known} tokens, got {len(tokenizer)}; put the model's own there"
        )
    return model, tokenizer


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a checkpoint folder. Raises Refused if none can be loaded."""
    try:
        return AutoTokenizer.from_pretrained(folder, **_OPTIONS)
    except Exception as error:  # likewise
        raise unloadable(folder, error) from None


def unloadable(folder: Path, error: Exception) -> TrainingRefused:
    """The error for a folder that a library could not load."""
    return TrainingRefused(f"{folder}: expected a causal language model that can be loaded, got {one_line(error)}")


def length_of(model: Any) -> int:
    """The maximum number of tokens of a model according to its config; very many if it does not say."""
    return int(getattr(model.config, "max_position_embeddings", None) or 2**20)


def read_provenance(folder: Path) -> dict[str, Any]:
    """The content of `parlor.json`; empty for a checkpoint that was not made here. Raises Refused if it is broken."""
    try:
        return dict(json.loads((folder / PROVENANCE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError):
        raise TrainingRefused(
            f"{folder / PROVENANCE}: expected an object of JSON, got something else; was it cut off?"
        ) from None


def renderer_of(provenance: Mapping[str, Any]) -> int:
    """The version of the renderer that a checkpoint was trained with; the newest for one that was not trained here."""
    return int(provenance.get("renderer", FIRST_RENDERER if "method" in provenance else RENDERER))


def write_provenance(folder: Path, facts: Mapping[str, Any]) -> str:
    """Writes `parlor.json` beside a complete checkpoint and returns the checkpoint's hash, which it contains."""
    found = checkpoint_hash(folder)
    text = json.dumps({**facts, "checkpoint_sha256": found, "versions": versions()}, indent=2, ensure_ascii=False)
    (folder / PROVENANCE).write_text(text + "\n", encoding="utf-8")
    return found


def versions() -> dict[str, str]:
    """The versions of what the model was made with."""
    names = ("torch", "transformers", "tokenizers", "safetensors", "accelerate", "peft")
    return {"python": python_version()} | {name: version(name) for name in names}


def unfinished(folder: Path) -> Path:
    """The name of a folder until it is complete."""
    return folder.with_name(f".{folder.name}.part")


@contextlib.contextmanager
def written(folder: Path) -> Iterator[Path]:
    """An empty folder that is renamed to `folder` when it is complete, and removed if something goes wrong.

    Raises Failed when the disk is full.
    """
    part = unfinished(folder)
    shutil.rmtree(part, ignore_errors=True)
    mask = os.umask(0o077)
    os.umask(mask)
    try:
        part.mkdir(parents=True)
        yield part
        for path in (each for each in part.rglob("*") if each.is_file()):
            path.chmod(0o666 & ~mask)  # safetensors makes files private, regardless of the umask
        part.rename(folder)
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        if is_disk_full(error):
            raise TrainingFailed(f"{folder}: the disk is full ({one_line(error)}); make room and start again") from None
        raise
