"""Answers that are made together, a token of each at a time: they join when there is room, and leave when they end."""

from collections import deque
from typing import Any

import torch
from torch import Tensor

from app.players.inference.asks import Ask, Sampling
from app.players.inference.drawing import draw
from app.players.inference.kept import Kept
from app.players.inference.rows import Rows

_AT_ONCE = 2048  # tokens of prompts in a forward pass, padding included, unless one alone has more


class Batch:
    """`ends` are the tokens that end an answer, and `silent` (V,) is added to all logits.

    `memory` are the bytes that keys and values may take, an eighth of them for conversations that may go on.
    """

    def __init__(self, model: Any, ends: frozenset[int], silent: Tensor, memory: int) -> None:
        self._ends = ends
        self._silent = silent
        self._memory = memory
        self._rows = Rows(model)
        self._kept = Kept(memory // 8)
        self._asks: list[Ask] = []  # by row
        self._lengths: list[int] = []  # of what the rows hold
        self._over: list[Ask] = []

    def __len__(self) -> int:
        return len(self._asks)

    def join(self, waiting: deque[Ask], most: int) -> None:
        """Take in from the left what there is room for, up to `most` answers in all, and draw a first token of each."""
        new: list[tuple[Ask, Tensor | None]] = []
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
        self._rows.reserve(min(most, 1 << (rows - 1).bit_length()), max(len(ask.prompt) for ask, _ in new) + 1)
        for row, (_, held) in enumerate(new, begin):
            if held is not None:
                self._rows.put(row, held)
        while begin < rows:
            end = begin + 1
            while end < rows and (end + 1 - begin) * self._left(end) <= _AT_ONCE:
                end += 1
            self._go_on(begin, [self._asks[row].prompt[self._lengths[row] :] for row in range(begin, end)])
            begin = end

    def step(self) -> list[Ask]:
        """Draw a token of each answer. Returns those that are over, or given up, which leave."""
        self._let_go()
        if self._asks:
            self._go_on(0, [ask.drawn[-1:] for ask in self._asks])
            self._let_go()
        over, self._over = self._over, []
        return over

    def leave(self) -> list[Ask]:
        """Forget everything. Returns the answers that were being made."""
        asks = self._asks + self._over
        self._asks, self._lengths, self._over = [], [], []
        self._rows.clear()
        self._kept.clear()
        return asks

    def _fits(self, others: list[Ask], ask: Ask) -> bool:
        rows = [*self._asks, *others, ask]
        columns = max(len(each.prompt) + each.most for each in rows)
        return len(rows) == 1 or len(rows) * columns * self._rows.bytes_a_token <= self._memory * 7 // 8

    def _left(self, row: int) -> int:
        return len(self._asks[row].prompt) - self._lengths[row]

    def _go_on(self, begin: int, pieces: list[list[int]]) -> None:
        """Compute what is new of the rows from `begin` on, and draw a token of each."""
        rows = range(begin, begin + len(pieces))
        logits = self._rows.forward(begin, pieces, [self._lengths[row] for row in rows]) + self._silent
        for row, piece in zip(rows, pieces, strict=True):
            self._lengths[row] += len(piece)
        groups: dict[Sampling, list[int]] = {}
        for row in rows:
            groups.setdefault(self._asks[row].sampling, []).append(row)
        for sampling, alike in groups.items():
            found = logits if len(groups) == 1 else logits[torch.tensor(alike, device=logits.device) - begin]
            points = [self._asks[row].rng.random() for row in alike]
            for row, token in zip(alike, draw(found, sampling, points).tolist(), strict=True):
                self._asks[row].drawn.append(token)

    def _let_go(self) -> None:
        """Take out the answers that have ended; what was computed of them is kept."""
        for row in reversed(range(len(self._asks))):
            ask = self._asks[row]
            if not (ask.given_up or len(ask.drawn) >= ask.most or ask.drawn[-1] in self._ends):
                continue
            held = self._rows.get(row, self._lengths[row])  # all but the last token that was drawn
            self._kept.keep([*ask.prompt, *ask.drawn[:-1]], len(ask.prompt), held)
            self._rows.remove(row, self._lengths[-1])
            self._asks[row], self._lengths[row] = self._asks[-1], self._lengths[-1]
            self._asks.pop()
            self._lengths.pop()
            self._over.append(ask)


def _length(held: Tensor | None) -> int:
    return 0 if held is None else held.shape[3]
