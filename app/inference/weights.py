"""How many weights a checkpoint has, and the memory that there is for them. Loads no torch."""

import json
import math
import os
from pathlib import Path

_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


def parameters(folder: Path) -> int | None:
    """How many weights a checkpoint's files hold, as their headers say; None if they cannot be read here.

    Those of adapters (LoRA) alone come on top of those of their base.

    Source: the format of safetensors, https://github.com/huggingface/safetensors#format
    """
    found = 0
    try:
        for path in folder.glob("*.safetensors"):
            with path.open("rb") as file:
                header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            found += sum(math.prod(each["shape"]) for name, each in header.items() if name != "__metadata__")
        if is_adapter(folder):
            about = json.loads((folder / "parlor.json").read_text(encoding="utf-8"))
            found += parameters(folder / about["adapter_of"]["path"]) or 0
    except (OSError, ValueError, KeyError, TypeError, MemoryError):
        return None
    return found or None


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds adapters (LoRA) in place of a model."""
    return (folder / "adapter_config.json").is_file()


def machine_memory() -> int:
    """The bytes of memory that processes may have here: those of the machine, or of the container if these are fewer.

    Source: cgroup v2, https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files
    """
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(found, int(_CONTAINER_LIMIT.read_text("utf-8")))
    except (OSError, ValueError):  # no container, or one without a limit
        return found
