"""Answers that are made together, a token of each at a time: they join when there is room, and leave when they end."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from app.inference.key_value_cache import KeyValueCache, whole_columns
from app.inference.prefix_cache import WORTH_A_COPY, PrefixCache, common_length
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

    @property
    def urgent(self) -> bool:
        """Whether a person waits for one of the answers."""
        return any(request.urgent for request in self._requests)

    def join(self, waiting: deque[GenerationRequest], most: int, most_new: int) -> None:
        """Take in from the left what there is room for, up to `most` answers in all and `most_new` now, and draw a
        first token of each.

        While there are requests for which a person waits, in front of the others, only these are taken in, as if they
        were alone; where memory does not allow that, others that came in last are put back.
        """
        only_urgent = self.urgent or any(request.urgent for request in waiting)
        rows = sum(request.urgent >= only_urgent for request in self._requests)
        new, put_back = list[GenerationRequest](), list[GenerationRequest]()
        most_new = min(most_new, most - rows)
        while waiting and waiting[0].urgent >= only_urgent and len(new) < most_new:
            while only_urgent and rows < len(self._requests) and not self._fits(new, waiting[0]):
                put_back.append(self._put_back(len(self._requests) - rows - 1))
            if not self._fits(new, waiting[0]):
                break
            new.append(waiting.popleft())
        waiting.extend(put_back)
        if not new:
            return
        groups = self._in_order(new)
        begin = len(self._requests)
        self._requests += [each.request for group in groups for each in group]
        self._lengths += [each.length for group in groups for each in group]
        self._rows.number = len(self._requests)
        self._make_room(most)
        for group in groups:
            for row, each in enumerate(group, begin):
                if each.held:
                    self._rows.put(row, each.held)
                elif each.alike is not None:
                    self._rows.copy(self._requests.index(each.alike), row, each.length)
            self._compute_prompts(begin, begin + len(group))
            begin += len(group)

    def step(self) -> list[GenerationRequest]:
        """Draw a token of each answer, of those alone for which a person waits if there are any.

        Returns those that are over, or given up, which leave.
        """
        self._let_go(self._first)
        if self._requests:
            first = self._first
            self._go_on(first, [request.sampled[-1:] for request in self._requests[first:]])
            self._let_go(first)
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

    @property
    def _first(self) -> int:
        """The row from which on answers are made: those for which a person waits came in behind all others."""
        return next((row for row, request in enumerate(self._requests) if request.urgent), 0)

    def _put_back(self, row: int) -> GenerationRequest:
        """Take out a request that will come in again, and begin again."""
        request = self._requests[row]
        self._remove(row)
        request.begin()
        return request

    def _in_order(self, new: list[GenerationRequest]) -> list[list["_Joining"]]:
        """Groups of prompts, one computed after the other: of those that begin alike the first is in an earlier group,
        from which the others copy what they have in common.
        """
        left = [_Joining(request, self._prefix_cache.take(request.prompt)) for request in new]
        for each in left:
            each.copy_from(self._requests)
        groups = []
        while left:
            group, later = list[_Joining](), list[_Joining]()
            for each in left:
                (later if each.copy_from([other.request for other in group]) else group).append(each)
            # Like lengths together, so that little of what is computed is padding.
            groups.append(sorted(group, key=lambda each: each.missing))
            left = later
        return groups

    def _compute_prompts(self, begin: int, rows: int) -> None:
        """Compute what is missing of the prompts in the rows from `begin` up to `rows`, and draw a first token."""
        while begin < rows:
            end = begin + 1
            while end < rows and (end + 1 - begin) * self._left(end) <= _AT_ONCE:
                end += 1
            self._go_on(begin, [self._requests[row].prompt[self._lengths[row] :] for row in range(begin, end)])
            begin = end

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
        some = max(there, rows, min(most, 1 << (rows - 1).bit_length()))
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

    def _let_go(self, first: int) -> None:
        """Take out the answers from a row on that have ended; what was computed of them is kept, as far as the next
        prompt has it.
        """
        for row in reversed(range(first, len(self._requests))):
            request = self._requests[row]
            if not (request.given_up or len(request.sampled) >= request.limit or request.sampled[-1] in self._ends):
                continue
            computed = [*request.prompt, *request.sampled[:-1]]
            lasting = self._reasoning.lasting(request)
            if lasting:
                held = partial(self._rows.get, row, end=lasting)
                room = self._memory() - self._rows.nbytes
                self._prefix_cache.keep(computed[:lasting], min(lasting, len(request.prompt)), held, room)
            self._remove(row)
            self._over.append(request)

    def _remove(self, row: int) -> None:
        """Take a row out; the last one comes into its place."""
        self._rows.remove(row, self._lengths[-1])
        self._requests[row], self._lengths[row] = self._requests[-1], self._lengths[-1]
        self._requests.pop()
        self._lengths.pop()


class _Joining:
    """A request that comes in, and where the first `length` tokens of its prompt are: kept, or in the row of another
    request that begins alike.
    """

    def __init__(self, request: GenerationRequest, held: Sequence[Tensor]) -> None:
        self.request = request
        self.held = held
        self.alike: GenerationRequest | None = None
        self.length: int = sum(piece.shape[3] for piece in held)

    @property
    def missing(self) -> int:
        """How many tokens of the prompt are to be computed."""
        return len(self.request.prompt) - self.length

    def copy_from(self, others: list[GenerationRequest]) -> bool:
        """Begin as one of the others does, if enough is to be had by that."""
        if self.missing <= WORTH_A_COPY or not others:
            return False
        lengths = [common_length(other.prompt, self.request.prompt) for other in others]
        length = min(max(lengths), len(self.request.prompt) - 1)
        if length < self.length + WORTH_A_COPY:
            return False
        self.held, self.alike, self.length = (), others[lengths.index(max(lengths))], length
        return True


def _longest(requests: list[GenerationRequest]) -> int:
    """The columns that an answer may come to have."""
    return max(len(request.prompt) + request.most for request in requests)
