"""Answers of models that cannot continue sequences in `rows`: sliding windows, recurrent states, own positions.

The library's own loop generates them, one whole batch at a time, padded on the left.
"""

from collections import deque
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

from app.inference.reasoning import ReasoningTokens
from app.inference.requests import GenerationRequest, Sampling
from app.inference.sampling import log_probs_of, sample, without_repetition


class GenerateBatch:
    """Like `batch.Batch`; `padding` is a token used for padding."""

    def __init__(
        self, model: Any, ends: frozenset[int], reasoning: ReasoningTokens, logit_mask: Tensor, padding: int
    ) -> None:
        self._model = model
        self._ends = ends
        self._reasoning = reasoning
        self._logit_mask = logit_mask
        self._padding = padding
        self._requests: list[GenerationRequest] = []

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def urgent(self) -> bool:
        """Whether a person waits for one of the answers."""
        return any(request.urgent for request in self._requests)

    def join(self, waiting: deque[GenerationRequest], most: int, most_new: int) -> None:
        """Admit requests from the left with equal sampling and urgency, up to `most` answers in all, `most_new` now."""
        most = min(most, len(self._requests) + most_new)
        while waiting and len(self._requests) < most and _kind(waiting[0]) == _kind((self._requests or waiting)[0]):
            self._requests.append(waiting.popleft())

    def step(self) -> list[GenerationRequest]:
        """Generate all answers to their ends."""
        if not self._requests:
            return []
        device = self._model.device
        longest = max(len(request.prompt) for request in self._requests)
        paddings = [longest - len(request.prompt) for request in self._requests]
        ids = [
            [self._padding] * padding + request.prompt
            for padding, request in zip(paddings, self._requests, strict=True)
        ]
        mask = torch.arange(longest) >= torch.tensor(paddings)[:, None]
        sampled = _SampledTokens(self._requests, self._logit_mask)
        self._model.generate(
            input_ids=torch.tensor(ids, device=device),
            attention_mask=mask.long().to(device),
            generation_config=GenerationConfig(
                do_sample=False,
                max_new_tokens=max(request.most for request in self._requests),
                eos_token_id=sorted(self._ends) or None,
                pad_token_id=self._padding,
            ),
            logits_processor=LogitsProcessorList([sampled]),
        )
        for request, row in zip(self._requests, zip(*sampled.steps, strict=True), strict=True):
            for token, log_prob in row:
                request.sampled.append(token)
                request.log_probs.append(log_prob)
                self._reasoning.follow(request)
                if token in self._ends or len(request.sampled) >= request.limit:
                    break
        return self.leave()

    def shrink(self) -> None:
        """Nothing is cached between answers."""

    def leave(self) -> list[GenerationRequest]:
        """Clear the batch. Returns the unfinished answers."""
        requests, self._requests = self._requests, []
        return requests


def _kind(request: GenerationRequest) -> tuple[Sampling, bool]:
    return request.sampling, request.urgent


class _SampledTokens(LogitsProcessor):
    """Forces the library to take the token sampled for each answer.

    `steps` has each step's tokens with their log-probabilities, which the library does not keep.
    """

    def __init__(self, requests: list[GenerationRequest], logit_mask: Tensor) -> None:
        self._rngs = [request.rng for request in requests]
        self._prompts = [request.prompt for request in requests]
        self._sampling: Sampling = requests[0].sampling
        self._logit_mask = logit_mask
        self.steps: list[list[tuple[int, float]]] = []

    def __call__(self, _ids: Tensor, scores: Tensor) -> Tensor:
        """Logits (N, V) in which all but one token of each row are impossible."""
        logits = scores + self._logit_mask
        if (size := self._sampling.no_repeat_ngram) is not None:
            for row, prompt in enumerate(self._prompts):
                without_repetition(logits, row, [*prompt, *(step[row][0] for step in self.steps)], size)
        tokens = sample(logits, self._sampling, [rng.random() for rng in self._rngs])
        drawn: list[int] = tokens.tolist()
        self.steps.append(list(zip(drawn, log_probs_of(scores, drawn), strict=True)))
        return torch.full_like(scores, -torch.inf).scatter_(1, tokens[:, None], 0)
