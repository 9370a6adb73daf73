"""The machine's hardware, as far as it can be detected without torch."""

import platform
import shutil
from functools import cache
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_BFLOAT16 = {"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16", "svebf16"}  # as Linux names such instructions
SLOW_BFLOAT16 = (
    "the processor of this machine has no instructions for bfloat16 and imitates them, so that a step takes many times"
    " as long as in float32 (22 times where it was measured)"
)


def has_gpu() -> bool:
    """Whether the machine has an NVIDIA GPU, judging by its driver."""
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


@cache
def lacks_bfloat16() -> bool:
    """Whether the processor is known to lack bfloat16 instructions. Only Linux reports this."""
    if platform.system() != "Linux" or not _CPUINFO.exists():
        return False
    return lacks_instructions(_CPUINFO.read_text(encoding="utf-8", errors="replace"))


def lacks_instructions(cpuinfo: str) -> bool:
    """Whether a /proc/cpuinfo text of x86-64 (`flags`) or ARM (`Features`) lacks them; others do not report it."""
    lines = [line.partition(":")[2] for line in cpuinfo.splitlines() if line.startswith(("flags", "Features"))]
    return bool(lines) and not _BFLOAT16 & set(lines[0].split())


def slow_precision(precision: str, device: str) -> str | None:
    """Why a training or a model in this precision would be slow here; None if there is no known reason.

    `device` is where it computes: `cpu`, or a value that uses the GPU if there is one.
    """
    if precision != "bfloat16" or (device != "cpu" and has_gpu()) or not lacks_bfloat16():
        return None
    return SLOW_BFLOAT16
