"""Answers that are made together, a token of each at a time: they join when there is room, and leave when they end."""

from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from app.inference.key_value_cache import KeyValueCache, whole_columns
from app.inference.prefix_cache import PrefixCache
from app.inference.reasoning import ReasoningTokens
from app.inference.requests import GenerationRequest, Sampling
from app.inference.sampling import log_probs_of, sample, without_repetition

_AT_ONCE = 2048  # tokens of prompts in a forward pass, padding included, unless one alone has more


class Batch:
    """`ends` are the tokens that end an answer, `reasoning` finds that in them, and `logit_mask` (V,) is added to all
    logits.

    `memory` tells the bytes that keys and values may take just now: seven eighths at most those of answers that are
    being made, and conversations that may go on what these leave. A token takes `bytes_a_token`.
    """

    def __init__(
        self,
        model: Any,
        ends: frozenset[int],
        reasoning: ReasoningTokens,
        logit_mask: Tensor,
        memory: Callable[[], int],
        bytes_a_token: int,
    ) -> None:
        self._ends = ends
        self._reasoning = reasoning
        self._logit_mask = logit_mask
        self._memory = memory
        self._bytes_a_token = bytes_a_token
        self._rows = KeyValueCache(model)
        self._prefix_cache = PrefixCache()
        self._requests: list[GenerationRequest] = []  # by row
        self._lengths: list[int] = []  # of what the rows hold
        self._over: list[GenerationRequest] = []

    def __len__(self) -> int:
        return len(self._requests)

    def join(self, waiting: deque[GenerationRequest], most: int) -> None:
        """Take in from the left what there is room for, up to `most` answers in all, and draw a first token of each."""
        new: list[tuple[GenerationRequest, Tensor | None]] = []
        while (
            waiting
            and len(self._requests) + len(new) < most
            and self._fits([request for request, _ in new], waiting[0])
        ):
            request = waiting.popleft()
            new.append((request, self._prefix_cache.take(request.prompt)))
        if not new:
            return
        # Like lengths together, so that little of what is computed is padding.
        new.sort(key=lambda each: len(each[0].prompt) - _length(each[1]))
        begin = len(self._requests)
        self._requests += [request for request, _ in new]
        self._lengths += [_length(held) for _, held in new]
        rows = self._rows.number = len(self._requests)
        self._make_room(most)
        for row, (_, held) in enumerate(new, begin):
            if held is not None:
                self._rows.put(row, held)
        while begin < rows:
            end = begin + 1
            while end < rows and (end + 1 - begin) * self._left(end) <= _AT_ONCE:
                end += 1
            self._go_on(begin, [self._requests[row].prompt[self._lengths[row] :] for row in range(begin, end)])
            begin = end

    def step(self) -> list[GenerationRequest]:
        """Draw a token of each answer. Returns those that are over, or given up, which leave."""
        self._let_go()
        if self._requests:
            self._go_on(0, [request.sampled[-1:] for request in self._requests])
            self._let_go()
        over, self._over = self._over, []
        return over

    def leave(self) -> list[GenerationRequest]:
        """Forget everything. Returns the answers that were being made."""
        requests = self._requests + self._over
        self._requests, self._lengths, self._over = [], [], []
        self._rows.clear()
        self._prefix_cache.clear()
        return requests

    def shrink(self) -> None:
        """Keep no more than there may be now."""
        if not self._requests:
            self._rows.clear()
        self._prefix_cache.shrink(self._memory() - self._rows.nbytes)

    def _fits(self, others: list[GenerationRequest], request: GenerationRequest) -> bool:
        rows = [*self._requests, *others, request]
        return len(rows) == 1 or self._allowed(len(rows), _longest(rows))

    def _allowed(self, rows: int, columns: int) -> bool:
        return rows * (whole_columns(columns) + 1) * self._bytes_a_token <= self._memory() * 7 // 8

    def _make_room(self, most: int) -> None:
        """Have room for the rows, for some to come too if memory allows it, and for their first token."""
        rows, longest = len(self._requests), _longest(self._requests)
        columns = (
            max(max(len(request.prompt), length) for request, length in zip(self._requests, self._lengths, strict=True))
            + 1
        )
        there, known = self._rows.room
        some = max(there, min(most, 1 << (rows - 1).bit_length()))
        if self._allowed(some, max(longest, known)):
            self._rows.reserve(some, columns)
        else:
            self._rows.resize(rows, columns)
        self._prefix_cache.shrink(self._memory() - self._rows.nbytes)

    def _left(self, row: int) -> int:
        return len(self._requests[row].prompt) - self._lengths[row]

    def _go_on(self, begin: int, pieces: list[list[int]]) -> None:
        """Compute what is new of the rows from `begin` on, and draw a token of each."""
        rows = range(begin, begin + len(pieces))
        raw = self._rows.forward(begin, pieces, [self._lengths[row] for row in rows])
        logits = raw + self._logit_mask
        self._prefix_cache.shrink(self._memory() - self._rows.nbytes)  # columns may have come
        for row, piece in zip(rows, pieces, strict=True):
            self._lengths[row] += len(piece)
        groups: dict[Sampling, list[int]] = {}
        for row in rows:
            groups.setdefault(self._requests[row].sampling, []).append(row)
        tokens = [0] * len(rows)
        for sampling, alike in groups.items():
            found = logits if len(groups) == 1 else logits[torch.tensor(alike, device=logits.device) - begin]
            if sampling.no_repeat_ngram is not None:
                for place, row in enumerate(alike):
                    request = self._requests[row]
                    without_repetition(found, place, request.prompt + request.sampled, sampling.no_repeat_ngram)
            points = [self._requests[row].rng.random() for row in alike]
            for row, token in zip(alike, sample(found, sampling, points).tolist(), strict=True):
                tokens[row - begin] = token
        for row, token, log_prob in zip(rows, tokens, log_probs_of(raw, tokens), strict=True):
            self._requests[row].sampled.append(token)
            self._requests[row].log_probs.append(log_prob)
            self._reasoning.follow(self._requests[row])

    def _let_go(self) -> None:
        """Take out the answers that have ended; what was computed of them is kept, as far as the next prompt has it."""
        for row in reversed(range(len(self._requests))):
            request = self._requests[row]
            if not (request.given_up or len(request.sampled) >= request.limit or request.sampled[-1] in self._ends):
                continue
            computed = [*request.prompt, *request.sampled[:-1]]
            lasting = self._reasoning.lasting(request)
            if lasting:
                held = self._rows.get(row, lasting)
                room = self._memory() - self._rows.nbytes
                self._prefix_cache.keep(computed[:lasting], min(lasting, len(request.prompt)), held, room)
            self._rows.remove(row, self._lengths[-1])
            self._requests[row], self._lengths[row] = self._requests[-1], self._lengths[-1]
            self._requests.pop()
            self._lengths.pop()
            self._over.append(request)


def _longest(requests: list[GenerationRequest]) -> int:
    """The columns that an answer may come to have."""
    return max(len(request.prompt) + request.most for request in requests)


def _length(held: Tensor | None) -> int:
    return 0 if held is None else held.shape[3]
