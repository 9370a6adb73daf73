"""float32 linear layers computed by oneDNN, on processors for which MKL does not use all instructions.

torch computes float32 matrix products with MKL, which uses 256-bit vectors on non-Intel processors. Where these have
AVX-512, oneDNN is about twice as fast. Lower precisions use oneDNN in any case.
"""

from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

_LEAST = 2**17  # weights of a layer: oneDNN compiles code for each shape first, which small layers do not repay


@cache
def is_onednn_faster() -> bool:
    """Whether this processor has AVX-512 and is not Intel's."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    vendors = [line for line in lines if line.startswith("vendor_id")]
    return (
        bool(vendors)
        and "GenuineIntel" not in vendors[0]
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and torch.backends.mkldnn.is_available()
    )


def use_onednn(model: nn.Module) -> None:
    """Make a model compute its linear layers with oneDNN where that is faster. The model is saved like any other."""
    if not is_onednn_faster():
        return
    for module in model.modules():
        if type(module) is nn.Linear and module.weight.numel() >= _LEAST:
            module.__class__ = _Linear


class _Linear(nn.Linear):
    """A linear layer that multiplies with oneDNN, unless it is on another device or in another precision."""

    def forward(self, values: Tensor) -> Tensor:
        """Shapes: (…, I) → (…, O)."""
        whole = type(self.weight) is nn.Parameter and self.weight.device.type == "cpu"  # not sharded over processes
        if whole and values.dtype == self.weight.dtype == torch.float32 and not torch.is_autocast_enabled("cpu"):
            rows: Tensor = _OneDnn.apply(values.flatten(0, -2), self.weight, self.bias)
            return torch.ops.aten._unsafe_view(rows, (*values.shape[:-1], len(self.weight)))
        return super().forward(values)


class _OneDnn(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        # Only the gradient of the weights needs the inputs: a frozen layer does not keep them.
        context.save_for_backward(values if context.needs_input_grad[1] else None, weight)
        return _product(values, weight, bias)

    @staticmethod
    def backward(context: Any, upstream: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        values, weight = context.saved_tensors
        of_values, of_weight, of_bias = context.needs_input_grad
        return (
            _product(upstream, weight.t(), None) if of_values else None,
            _product(upstream.t(), values.t(), None) if of_weight else None,
            upstream.sum(dim=0) if of_bias else None,
        )


def _product(values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """As `functional.linear`: shapes (N, I), (O, I) and (O,) → (N, O)."""
    found: Tensor = torch.ops.mkldnn._linear_pointwise(values, weight, bias, "none", [], "")
    return found
