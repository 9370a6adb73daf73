"""What losses have in common, and how one is found by its name."""

from collections.abc import Callable
from importlib import import_module

from torch import Tensor
from torch.nn import functional

IGNORED = -100  # the label of a token that is not to be learnt

Loss = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


def find_loss(name: str) -> Loss:
    """The loss in the module of `training.losses` that has this name."""
    found: Loss = import_module(f"training.losses.{name}").loss
    return found


def token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The negative log-likelihood of each token to be learnt, 0 elsewhere.

    Shapes: logits (B, T, V), labels (B, T), IGNORED where nothing is learnt → (B, T − 1).
    """
    wanted = labels[:, 1:]
    flat = functional.cross_entropy(
        logits[:, :-1].float().flatten(0, 1), wanted.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return flat.view(wanted.shape)
