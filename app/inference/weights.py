"""The number of weights in a checkpoint, and the memory available for them. Loads no torch."""

import json
import math
import os
from pathlib import Path
from typing import NamedTuple

from training.hashes import checkpoint_hash

_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
_FLOAT32 = 4  # bytes of a number


class WeightsPart(NamedTuple):
    """Weights that are in memory once however many models use them: their checkpoint's hash, and the bytes per
    weight.
    """

    sha256: str
    size: int


def parameters(folder: Path) -> int | None:
    """The number of a model's weights according to its checkpoint's files; None if they cannot be read here.

    Weights of adapters (LoRA) are counted in addition to those of their base.
    """
    found = own_parameters(folder)
    if found is None or not is_adapter(folder):
        return found
    base = base_of(folder)
    return found + ((base and own_parameters(base.folder)) or 0)


def parts_of(folder: Path, sha256: str, size: int) -> dict[WeightsPart, int]:
    """The bytes of a model's weights, `size` bytes per weight, by part: adapters and their base are separate parts. The
    library keeps adapters in float32.
    """
    own = own_parameters(folder) or 0
    if not is_adapter(folder):
        return {WeightsPart(sha256, size): own * size}
    parts = {WeightsPart(sha256, _FLOAT32): own * _FLOAT32}
    if (base := base_of(folder)) is not None:
        parts[WeightsPart(base.sha256, size)] = (own_parameters(base.folder) or 0) * size
    return parts


def own_parameters(folder: Path) -> int | None:
    """The number of weights in a folder's files, according to their headers; None if they cannot be read here.

    Source: the format of safetensors, https://github.com/huggingface/safetensors#format
    """
    found = 0
    try:
        for path in folder.glob("*.safetensors"):
            with path.open("rb") as file:
                header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            found += sum(math.prod(each["shape"]) for name, each in header.items() if name != "__metadata__")
    except (OSError, ValueError, KeyError, TypeError, MemoryError):
        return None
    return found or None


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds adapters (LoRA) in place of a model."""
    return (folder / "adapter_config.json").is_file()


class AdapterBase(NamedTuple):
    """The checkpoint that adapters were trained on."""

    folder: Path
    sha256: str


def base_of(folder: Path) -> AdapterBase | None:
    """The base named by adapters, not checked to exist; None if they name none that can be read."""
    try:
        found = json.loads((folder / "parlor.json").read_text(encoding="utf-8"))["adapter_of"]
        return AdapterBase(Path(os.path.normpath(folder / found["path"])), str(found["sha256"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def adapter_rank(folder: Path) -> int:
    """The largest rank of the adapters in a folder. Raises OSError, ValueError, KeyError where that cannot be read."""
    config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    return max(int(config["r"]), *map(int, config.get("rank_pattern", {}).values()), 0)


def is_unchanged(folder: Path, sha256: str) -> bool:
    """Whether a folder holds the complete checkpoint with that hash."""
    try:
        return checkpoint_hash(folder) == sha256
    except OSError:
        return False


def machine_memory() -> int:
    """The bytes of memory available to processes here: the machine's, or the container's if that is less.

    Source: cgroup v2, https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files
    """
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(found, int(_CONTAINER_LIMIT.read_text("utf-8")))
    except (OSError, ValueError):  # no container, or one without a limit
        return found
