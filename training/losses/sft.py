"""Σ w·nll / Σ w over the tokens to be learnt: their mean negative log-likelihood, weighted by their spans' weights."""

from torch import Tensor

from training.losses.base import token_losses


def loss(logits: Tensor, labels: Tensor, weights: Tensor, total: Tensor | None = None) -> Tensor:
    """One micro-batch's part of the mean over all tokens that the optimizer step learns.

    Shapes: logits (B, T, V), labels and weights (B, T). `total` is the sum of the weights of the whole step; None for
    a batch that is a step of its own.
    """
    weighted = (token_losses(logits, labels) * weights[:, 1:]).sum()
    return weighted / (total if total is not None else weights[:, 1:].sum())
