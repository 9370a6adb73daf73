"""Tokens from logits: one for each row, at the point given by a random number between 0 and 1.

Each row has its own number, so its token does not depend on any other row of the batch.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from app.inference.requests import Sampling


def log_probs_of(logits: Tensor, tokens: list[int]) -> list[float]:
    """The natural logarithm of the probability of one token of each row: logits (N, V), over the whole vocabulary."""
    chosen = torch.tensor(tokens, device=logits.device)
    # One pass over the logits, in float32: sums of bfloat16 would be far off.
    found: list[float] = (-cross_entropy(logits.float(), chosen, reduction="none")).tolist()
    return found


def sample(logits: Tensor, sampling: Sampling, points: list[float]) -> Tensor:
    """A token of each row: logits (N, V) and points of the rows, from 0 to less than 1 → (N,)."""
    if sampling.temperature == 0:
        return logits.argmax(-1)
    logits = logits.float() / sampling.temperature
    if sampling.top_k is None and sampling.top_p is None:
        return _at(logits.softmax(-1), points)
    most = logits.shape[-1] if sampling.top_k is None else min(sampling.top_k, logits.shape[-1])
    likeliest, tokens = logits.topk(most)
    shares = likeliest.softmax(-1)
    if sampling.top_p is not None:
        before = shares.cumsum(-1) - shares
        before[:, 0] = 0  # the likeliest stays, whatever rounding says
        shares = shares.masked_fill(before > sampling.top_p, 0)
    return tokens.gather(-1, _at(shares, points)[:, None])[:, 0]


def repeating_tokens(tokens: Sequence[int], size: int) -> set[int]:
    """The tokens that would make a sequence's last `size` tokens repeat an earlier run."""
    begin = tuple(tokens[len(tokens) - size + 1 :])
    if len(tokens) < size:
        return set()
    last = len(tokens) - size + 1
    return {tokens[at + size - 1] for at in range(last) if tuple(tokens[at : at + size - 1]) == begin}


def without_repetition(logits: Tensor, row: int, tokens: Sequence[int], size: int) -> None:
    """Mask the tokens in a row of the logits (N, V) that would repeat a run of that row's tokens.

    If no token would be left, nothing is changed.
    """
    banned = repeating_tokens(tokens, size)
    if banned:
        kept = logits[row].clone()
        logits[row, torch.tensor(sorted(banned), device=logits.device)] = -torch.inf
        if bool(torch.isneginf(logits[row]).all()):
            logits[row] = kept


def _at(shares: Tensor, points: list[float]) -> Tensor:
    """The first index of each row at which the cumulative sum of shares exceeds the point times their total."""
    sums = shares.cumsum(-1)
    whole = sums[:, -1:]
    # Rounding may lift a point near 1 to the sum itself, beyond which there is nothing.
    marks = torch.minimum(
        torch.tensor(points, dtype=whole.dtype, device=whole.device)[:, None] * whole, whole.nextafter(-whole)
    )
    return torch.searchsorted(sums, marks, right=True)[:, 0]
