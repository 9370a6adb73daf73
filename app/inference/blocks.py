"""Memory for keys and values that returns to the system as soon as it is freed.

They are kept in blocks of all sizes, for as long as conversations go on. Among the short-lived values of forward passes
in glibc's heap they would leave holes, adding a third to the memory they take; with a memory map for each there are
none.
"""

import math
import mmap

import torch
from torch import Tensor

_LARGE = 256 << 10  # bytes from which a block is memory-mapped separately


def zeros(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """A tensor of zeros with the type and the device of `like`. Raises MemoryError if there is no room."""
    size = math.prod(shape) * like.element_size()
    if like.device.type != "cpu" or size < _LARGE:
        return torch.zeros(shape, dtype=like.dtype, device=like.device)
    try:
        block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(str(error)) from None
    return torch.frombuffer(block, dtype=like.dtype).view(shape)
