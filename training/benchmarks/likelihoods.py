"""Log-likelihoods of continuations under a checkpoint: sums of log-probabilities, many continuations at once."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers.utils.logging import disable_progress_bar

from training.benchmarks.config import BenchmarkedCheckpoint
from training.checkpoints import length_of, load
from training.errors import TrainingFailed, TrainingRefused, shown
from training.rendering import begin_of_text


def load_checkpoint(checkpoint: BenchmarkedCheckpoint) -> tuple[Any, Any]:
    """Model and tokenizer, on the device that computes. Raises TrainingRefused."""
    disable_progress_bar()
    there = torch.cuda.is_available()
    if checkpoint.device == "cuda" and not there:
        raise TrainingRefused("device: expected a GPU, got none that torch can use; set the model's device to auto")
    device = "cuda" if there and checkpoint.device != "cpu" else "cpu"
    usual = "bfloat16" if device == "cuda" else "float32"
    dtype = getattr(torch, usual if checkpoint.dtype == "auto" else checkpoint.dtype)
    model, tokenizer = load(checkpoint.path, checkpoint.sha256, dtype)
    return model.to(device).eval(), tokenizer


class LogLikelihoods:
    """Sums the log-probabilities of continuations under a model, `batch` sequences at once.

    A pair is tokenised as one text, as lm-evaluation-harness does, after the tokenizer's beginning-of-text token:
    whatever follows the tokens of the context alone is the continuation. A pair that is too long for the model is
    truncated at its beginning, even into the continuation if that alone is too long. `progress` is called with the
    number of pairs done and their total.
    """

    def __init__(self, model: Any, tokenizer: Any, batch: int, progress: Callable[[int, int], None]) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._batch = batch
        self._progress = progress
        self._longest = length_of(model)
        self._begin = begin_of_text(tokenizer)

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The log-likelihood of each continuation after its context, in nats. Raises Failed for one that is not
        finite.
        """
        encoded = [self._encode(*pair) for pair in pairs]
        order = sorted(range(len(pairs)), key=lambda at: -len(encoded[at][0]))
        found = [0.0] * len(pairs)
        for begin in range(0, len(order), self._batch):
            part = order[begin : begin + self._batch]
            for at, value in zip(part, self._sums_of_log_probs([encoded[at] for at in part]), strict=True):
                if not math.isfinite(value):
                    raise TrainingFailed(
                        f"expected log-likelihoods that are numbers, got {value} of the continuation"
                        f" {shown(pairs[at][1])}; look at the model's weights, or set its dtype to float32"
                    )
                found[at] = value
            self._progress(begin + len(part), len(pairs))
        return found

    def _encode(self, context: str, continuation: str) -> tuple[list[int], int]:
        """The tokens of both, and the number of those at the end that belong to the continuation."""
        both, alone = (
            self._tokenizer(each, add_special_tokens=False)["input_ids"] for each in (context + continuation, context)
        )
        kept = [*self._begin, *both][-(self._longest + 1) :]
        return kept, min(len(both) - len(alone), len(kept) - 1)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def _sums_of_log_probs(self, rows: Sequence[tuple[list[int], int]]) -> list[float]:
        """Sequences are padded on the right, which causal attention never looks at: no mask is needed."""
        width = max(len(ids) for ids, _ in rows)
        tokens = torch.zeros((len(rows), width), dtype=torch.long)  # (B, T)
        for at, (ids, _) in enumerate(rows):
            tokens[at, : len(ids)] = torch.tensor(ids)
        tokens = tokens.to(self._model.device)
        logits = self._model(input_ids=tokens[:, :-1], use_cache=False).logits  # (B, T - 1, V)
        sums = []
        for at, (ids, following) in enumerate(rows):
            scored = slice(len(ids) - following, len(ids))
            log_probs = logits[at, len(ids) - following - 1 : len(ids) - 1].float().log_softmax(-1)  # (K, V)
            sums.append(float(log_probs.gather(-1, tokens[at, scored, None]).sum()))
        return sums
