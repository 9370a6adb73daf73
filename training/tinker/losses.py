"""Our losses at Tinker: rows as its data, and a step's loss as a function of the log-probabilities it returns.

Tinker computes the log-probability of every token of a datum. Its `cross_entropy` is the sum of −w·log p, which is the
loss of `sft` for weights divided by their sum; the others are computed here, and Tinker takes their gradient.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from training.errors import StepFailed
from training.losses.base import find_span_loss, span_means, step_mean
from training.methods.base import Config
from training.rendering import MarkedTokens
from training.span_data import KINDS, SpanCollator, SpanItem, span_batch

_PADDING = 0  # the token after a shorter sequence; nothing is computed from it


def datum(types: Any, sequence: MarkedTokens, weights: Sequence[float]) -> Any:
    """A sequence of T tokens as T − 1 inputs and the token and weight after each of them."""
    return types.Datum(
        model_input=types.ModelInput.from_ints(sequence.ids[:-1]),
        loss_fn_inputs={"target_tokens": sequence.ids[1:], "weights": [float(each) for each in weights]},
    )


def token_data(types: Any, sequences: Sequence[MarkedTokens]) -> list[Any]:
    """The data of a step of `sft`: its loss is Σ w·nll / Σ w over all its tokens."""
    total = sum(sum(each.weights[1:]) for each in sequences)
    return [datum(types, each, [weight / total for weight in each.weights[1:]]) for each in sequences]


def bare_data(types: Any, sequences: Sequence[MarkedTokens]) -> list[Any]:
    """Data for which only the log-probabilities are requested."""
    return [datum(types, each, [0.0] * (len(each.ids) - 1)) for each in sequences]


def token_loss(data: Sequence[Any], outputs: Sequence[Mapping[str, Any]]) -> float:
    """Σ −w·log p of data, from the log-probabilities returned for them."""
    pairs = zip(data, outputs, strict=True)
    return sum(float(-(each.loss_fn_inputs["weights"].to_torch() * log_probs_of(of)).sum()) for each, of in pairs)


def mean_token_loss(sequences: Sequence[MarkedTokens], log_probs: Sequence[Tensor]) -> float:
    """Σ −w·log p / Σ w of sequences, from their log-probabilities (T − 1,) each."""
    weights = [torch.tensor(each.weights[1:], dtype=torch.float64) for each in sequences]
    total = sum(float((-of * weight).sum()) for of, weight in zip(log_probs, weights, strict=True))
    return total / sum(float(each.sum()) for each in weights)


def log_probs_of(output: Mapping[str, Any]) -> Tensor:
    """The log-probabilities of a datum's target tokens. Shape (T − 1,)."""
    found: Tensor = output["logprobs"].to_torch()
    return found.flatten()


def span_log_probs(batch: Mapping[str, Any], log_probs: Sequence[Tensor]) -> Tensor:
    """ℓ of each span of a padded batch (`SpanCollator`). `log_probs` are those of each sequence (T − 1,) → (S,)."""
    losses = -pad_sequence(list(log_probs), batch_first=True)
    return span_means(losses, batch["owners"][:, 1:], len(batch["items"]))


def sequence_log_probs(sequences: Sequence[MarkedTokens], log_probs: Sequence[Tensor]) -> Tensor:
    """ℓ of each learnt span of sequences, from their log-probabilities (T − 1,) each → (S,)."""
    items = [(number, SpanItem((each,), ())) for number, each in enumerate(sequences)]
    return span_log_probs(SpanCollator(_PADDING)(items), log_probs)


class SpanStepLoss:
    """The loss of a step of span items, in the form Tinker's SDK calls: (data, log-probabilities) → (loss, metrics)."""

    def __init__(self, loss: str, config: Config, items: Sequence[SpanItem]) -> None:
        self._loss = find_span_loss(loss)
        self._config = config
        self._batch = SpanCollator(_PADDING)([(number, item) for number, item in enumerate(items)])
        self.value = float("nan")
        self.figures: dict[str, float] = {}

    def loss_of(self, log_probs: Sequence[Tensor]) -> float:
        """The loss alone, possibly NaN or infinite, without a gradient."""
        with suppress(StepFailed):
            self((), log_probs)
        return self.value

    def __call__(self, _data: Sequence[Any], log_probs: Sequence[Tensor]) -> tuple[Tensor, dict[str, float]]:
        """Raises StepFailed where the loss is not finite: Tinker then computes no gradient."""
        found = self._loss(span_batch(self._batch, span_log_probs(self._batch, log_probs)), self._config)
        totals = torch.bincount(self._batch["kinds"], minlength=KINDS)
        loss = step_mean(found.values, self._batch["kinds"], totals)
        self.value = float(loss.detach())
        self.figures = {name: float(total / count) for name, (total, count) in found.figures.items() if count}
        if not torch.isfinite(loss):
            raise StepFailed("expected a loss that is a number, got NaN or infinity; lower learning_rate")
        return loss, {}
