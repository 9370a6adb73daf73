"""Answers that are made together, a token of each at a time: they join when there is room, and leave when they end."""

from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from app.inference.key_value_cache import KeyValueCache, whole_columns
from app.inference.prefix_cache import PrefixCache
from app.inference.requests import GenerationRequest, Sampling
from app.inference.sampling import sample

_AT_ONCE = 2048  # tokens of prompts in a forward pass, padding included, unless one alone has more


class Batch:
    """`ends` are the tokens that end an answer, and `silent` (V,) is added to all logits.

    `memory` tells the bytes that keys and values may take just now: seven eighths at most those of answers that are
    being made, and conversations that may go on what these leave. A token takes `bytes_a_token`.
    """

    def __init__(
        self, model: Any, ends: frozenset[int], silent: Tensor, memory: Callable[[], int], bytes_a_token: int
    ) -> None:
        self._ends = ends
        self._silent = silent
        self._memory = memory
        self._bytes_a_token = bytes_a_token
        self._rows = KeyValueCache(model)
        self._kept = PrefixCache()
        self._asks: list[GenerationRequest] = []  # by row
        self._lengths: list[int] = []  # of what the rows hold
        self._over: list[GenerationRequest] = []

    def __len__(self) -> int:
        return len(self._asks)

    def join(self, waiting: deque[GenerationRequest], most: int) -> None:
        """Take in from the left what there is room for, up to `most` answers in all, and draw a first token of each."""
        new: list[tuple[GenerationRequest, Tensor | None]] = []
        while waiting and len(self._asks) + len(new) < most and self._fits([ask for ask, _ in new], waiting[0]):
            ask = waiting.popleft()
            new.append((ask, self._kept.take(ask.prompt)))
        if not new:
            return
        # Like lengths together, so that little of what is computed is padding.
        new.sort(key=lambda each: len(each[0].prompt) - _length(each[1]))
        begin = len(self._asks)
        self._asks += [ask for ask, _ in new]
        self._lengths += [_length(held) for _, held in new]
        rows = self._rows.number = len(self._asks)
        self._make_room(most)
        for row, (_, held) in enumerate(new, begin):
            if held is not None:
                self._rows.put(row, held)
        while begin < rows:
            end = begin + 1
            while end < rows and (end + 1 - begin) * self._left(end) <= _AT_ONCE:
                end += 1
            self._go_on(begin, [self._asks[row].prompt[self._lengths[row] :] for row in range(begin, end)])
            begin = end

    def step(self) -> list[GenerationRequest]:
        """Draw a token of each answer. Returns those that are over, or given up, which leave."""
        self._let_go()
        if self._asks:
            self._go_on(0, [ask.drawn[-1:] for ask in self._asks])
            self._let_go()
        over, self._over = self._over, []
        return over

    def leave(self) -> list[GenerationRequest]:
        """Forget everything. Returns the answers that were being made."""
        asks = self._asks + self._over
        self._asks, self._lengths, self._over = [], [], []
        self._rows.clear()
        self._kept.clear()
        return asks

    def shrink(self) -> None:
        """Keep no more than there may be now."""
        if not self._asks:
            self._rows.clear()
        self._kept.shrink(self._memory() - self._rows.nbytes)

    def _fits(self, others: list[GenerationRequest], ask: GenerationRequest) -> bool:
        rows = [*self._asks, *others, ask]
        return len(rows) == 1 or self._allowed(len(rows), _longest(rows))

    def _allowed(self, rows: int, columns: int) -> bool:
        return rows * (whole_columns(columns) + 1) * self._bytes_a_token <= self._memory() * 7 // 8

    def _make_room(self, most: int) -> None:
        """Have room for the rows, for some to come too if memory allows it, and for their first token."""
        rows, longest = len(self._asks), _longest(self._asks)
        columns = max(max(len(ask.prompt), length) for ask, length in zip(self._asks, self._lengths, strict=True)) + 1
        there, known = self._rows.room
        some = max(there, min(most, 1 << (rows - 1).bit_length()))
        if self._allowed(some, max(longest, known)):
            self._rows.reserve(some, columns)
        else:
            self._rows.resize(rows, columns)
        self._kept.shrink(self._memory() - self._rows.nbytes)

    def _left(self, row: int) -> int:
        return len(self._asks[row].prompt) - self._lengths[row]

    def _go_on(self, begin: int, pieces: list[list[int]]) -> None:
        """Compute what is new of the rows from `begin` on, and draw a token of each."""
        rows = range(begin, begin + len(pieces))
        logits = self._rows.forward(begin, pieces, [self._lengths[row] for row in rows]) + self._silent
        self._kept.shrink(self._memory() - self._rows.nbytes)  # columns may have come
        for row, piece in zip(rows, pieces, strict=True):
            self._lengths[row] += len(piece)
        groups: dict[Sampling, list[int]] = {}
        for row in rows:
            groups.setdefault(self._asks[row].sampling, []).append(row)
        for sampling, alike in groups.items():
            found = logits if len(groups) == 1 else logits[torch.tensor(alike, device=logits.device) - begin]
            points = [self._asks[row].rng.random() for row in alike]
            for row, token in zip(alike, sample(found, sampling, points).tolist(), strict=True):
                self._asks[row].drawn.append(token)

    def _let_go(self) -> None:
        """Take out the answers that have ended; what was computed of them is kept."""
        for row in reversed(range(len(self._asks))):
            ask = self._asks[row]
            if not (ask.given_up or len(ask.drawn) >= ask.most or ask.drawn[-1] in self._ends):
                continue
            held = self._rows.get(row, self._lengths[row])  # all but the last token that was drawn
            room = self._memory() - self._rows.nbytes
            self._kept.keep([*ask.prompt, *ask.drawn[:-1]], len(ask.prompt), held, room)
            self._rows.remove(row, self._lengths[-1])
            self._asks[row], self._lengths[row] = self._asks[-1], self._lengths[-1]
            self._asks.pop()
            self._lengths.pop()
            self._over.append(ask)


def _longest(asks: list[GenerationRequest]) -> int:
    """The columns that an answer may come to have."""
    return max(len(ask.prompt) + ask.most for ask in asks)


def _length(held: Tensor | None) -> int:
    return 0 if held is None else held.shape[3]
