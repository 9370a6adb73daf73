"""What losses share, and how a loss is found by name.

A token loss (`sft`, `tiny`) is a sum over tokens. A span loss consists of values, one for each span or, where responses
are compared, one for each query; the trainer takes their mean over the whole optimizer step.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

IGNORED = -100  # the label of a token that is not to be learnt
_PART_ON_CPU, _PART_ON_GPU = 2**18, 2**24  # logits whose losses are computed at once
LARGEST_LOG_RATIO = 20.0  # e^20 = 5e8; beyond it a ratio of probabilities would overflow, and its gradient with it

Loss = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


@dataclass(frozen=True, slots=True)
class SpanBatch:
    """The S target spans of a micro-batch. Each field has the shape (S,).

    `log_probs` is ℓ, the mean log-probability of a span's tokens, and `reference` is the same under the reference model
    (0 for a method without one). `rewards` holds rewards, advantages or ratings, and 0 for a supervised span;
    `supervised` marks those spans. `items` is the number of the row or query that a span belongs to, in ascending
    order.
    """

    log_probs: Tensor
    reference: Tensor
    weights: Tensor
    rewards: Tensor
    supervised: Tensor
    items: Tensor


@dataclass(frozen=True, slots=True)
class SpanValues:
    """The result of a span loss for a micro-batch.

    `values` (U,) are to be averaged. `figures` are extra training metrics, each a pair: the sum of its values and their
    number.
    """

    values: Tensor
    figures: Mapping[str, tuple[Tensor, Tensor]]


SpanLoss = Callable[[SpanBatch, Any], SpanValues]


def find_loss(name: str) -> Loss:
    """The loss in the module of `training.losses` that has this name."""
    found: Loss = import_module(f"training.losses.{name}").loss
    return found


def find_span_loss(name: str) -> SpanLoss:
    """The span loss in the module of `training.losses` that has this name."""
    found: SpanLoss = import_module(f"training.losses.{name}").loss
    return found


def token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The negative log-likelihood of each token to be learnt, 0 elsewhere.

    Shapes: logits (B, T, V), labels (B, T), IGNORED where nothing is learnt → (B, T − 1).
    """
    return losses_of(logits[:, :-1], labels[:, 1:])


def losses_of(logits: Tensor, wanted: Tensor) -> Tensor:
    """The negative log-likelihood of each wanted token under the logits at its position, 0 where it is IGNORED.

    Shapes: logits (B, P, V), wanted (B, P) → (B, P).
    """
    flat = functional.cross_entropy(
        logits.float().flatten(0, 1), wanted.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return flat.view(wanted.shape)


def losses_overwriting(logits: Tensor, wanted: Tensor) -> Tensor:
    """The same as `losses_of`, for logits that nothing else reads: their gradient overwrites them.

    Memory thus holds one tensor of their size instead of three. Only one backward pass is possible. Logits that were
    not computed from other tensors (leaves) are not overwritten. Shapes: logits (B, P, V), wanted (B, P) → (B, P),
    float32.
    """
    together = logits.contiguous()
    own = together.clone() if together.is_leaf and together.requires_grad else together
    losses: Tensor = _OverwritingLosses.apply(own, wanted)
    return losses


class _OverwritingLosses(torch.autograd.Function):
    """Cross-entropy in parts of a few rows, small enough for a processor's cache."""

    @staticmethod
    def forward(context: Any, logits: Tensor, wanted: Tensor) -> Tensor:
        """The losses. Where gradients are computed, the softmax minus 1 at the wanted token overwrites the logits."""
        overwrites = context.needs_input_grad[0]
        rows, columns = logits.detach().flatten(0, -2), wanted.flatten().clamp(min=0)[:, None]
        losses = torch.empty(len(rows), dtype=torch.float32, device=rows.device)
        size = max(1, (_PART_ON_CPU if rows.device.type == "cpu" else _PART_ON_GPU) // rows.shape[1])
        for part, column, loss in zip(rows.split(size), columns.split(size), losses.split(size), strict=True):
            shifted = part.float() - part.amax(dim=1, keepdim=True)
            of_wanted = shifted.gather(1, column)
            total = shifted.exp_().sum(dim=1, keepdim=True)
            loss.copy_((total.log() - of_wanted)[:, 0])
            if overwrites:
                part.copy_(shifted.div_(total).scatter_add_(1, column, torch.full_like(total, -1)))
        learnt = wanted.ne(IGNORED)
        context.save_for_backward(logits, learnt)
        return losses.view(wanted.shape).masked_fill(~learnt, 0)

    @staticmethod
    def backward(context: Any, upstream: Tensor) -> tuple[Tensor, None]:
        """The gradient of the logits, written over them."""
        logits, learnt = context.saved_tensors
        return logits.detach().mul_((upstream * learnt)[..., None]), None


def span_means(losses: Tensor, owners: Tensor, count: int) -> Tensor:
    """ℓ of each span: minus the mean loss of its tokens.

    Shapes: losses and owners (B, P) → (count,). `owners` is the number of each token's span, −1 for none.
    """
    learnt = owners >= 0
    sums = losses.new_zeros(count).index_add(0, owners[learnt], losses[learnt])
    return -sums / torch.bincount(owners[learnt], minlength=count)


def step_mean(values: Tensor, kinds: Tensor, totals: Tensor) -> Tensor:
    """A micro-batch's contribution to the means over an optimizer step, one mean for each kind of value.

    Shapes: values and kinds (U,), totals (K,), the number of values of each kind in the whole step.
    """
    return (values / totals[kinds]).sum()


def probability_ratio(log_ratio: Tensor) -> Tensor:
    """e^x, with a finite value and gradient for any x."""
    return log_ratio.clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO).exp()


def figure_of(values: Tensor, counted: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The sum of the values that are counted (all, by default) and their number, without gradients."""
    counted = torch.ones_like(values, dtype=torch.bool) if counted is None else counted
    return values.detach()[counted].double().sum(), counted.sum()
