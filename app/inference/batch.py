"""Answers generated together, one token each at a time: they join when there is room, and leave when they end."""

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
    """`ends` are the tokens that end an answer, `reasoning` finds reasoning in answers, and `logit_mask` (V,) is added
    to all logits.

    `memory` gives the bytes that keys and values may currently take: those of running answers may take up to seven
    eighths, and cached conversations what these leave. A token takes `bytes_a_token`.
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
        self._lengths: list[int] = []  # tokens held by each row
        self._over: list[GenerationRequest] = []

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def urgent(self) -> bool:
        """Whether a person waits for one of the answers."""
        return any(request.urgent for request in self._requests)

    def join(self, waiting: deque[GenerationRequest], most: int, most_new: int) -> None:
        """Admit requests from the left while there is room, up to `most` answers in all and `most_new` now, and sample
        the first token of each.

        While a person waits for some requests, which are in front of the others, only these are admitted, as if they
        were alone; if memory does not suffice, the latest of the others are put back.
        """
        only_urgent = self.urgent or any(request.urgent for request in waiting)
        rows = sum(request.urgent >= only_urgent for request in self._requests)
        new, put_back = list[GenerationRequest](), list[GenerationRequest]()
        most_new = min(most_new, most - rows)
        while waiting and waiting[0].urgent >= only_urgent and len(new) < most_new:
            while only_urgent and rows < len(self._requests) and not self._has_room_for(new, waiting[0]):
                put_back.append(self._put_back(len(self._requests) - rows - 1))
            if not self._has_room_for(new, waiting[0]):
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
        """Sample a token for each answer, or only for those that a person waits for, if there are any.

        Returns the finished or abandoned answers, which leave.
        """
        self._let_go(self._first)
        if self._requests:
            first = self._first
            self._go_on(first, [request.sampled[-1:] for request in self._requests[first:]])
            self._let_go(first)
        over, self._over = self._over, []
        return over

    def leave(self) -> list[GenerationRequest]:
        """Clear the batch. Returns the unfinished answers."""
        requests = self._requests + self._over
        self._requests, self._lengths, self._over = [], [], []
        self._rows.clear()
        self._prefix_cache.clear()
        return requests

    def shrink(self) -> None:
        """Shrink to the memory currently allowed."""
        if not self._requests:
            self._rows.clear()
        self._prefix_cache.shrink(self._memory() - self._rows.nbytes)

    @property
    def _first(self) -> int:
        """The first active row: answers that a person waits for joined behind all others."""
        return next((row for row, request in enumerate(self._requests) if request.urgent), 0)

    def _put_back(self, row: int) -> GenerationRequest:
        """Take out a request so that it joins again later and restarts."""
        request = self._requests[row]
        self._remove_row(row)
        request.begin()
        return request

    def _in_order(self, new: list[GenerationRequest]) -> list[list["_Joining"]]:
        """Groups of prompts, computed one after the other: of prompts with a common prefix the first is in an earlier
        group, from which the others copy that prefix.
        """
        left = [_Joining(request, self._prefix_cache.take(request.prompt)) for request in new]
        for each in left:
            each.copy_from(self._requests)
        groups = []
        while left:
            group, later = list[_Joining](), list[_Joining]()
            for each in left:
                (later if each.copy_from([other.request for other in group]) else group).append(each)
            # Group similar lengths, so that little padding is computed.
            groups.append(sorted(group, key=lambda each: each.missing))
            left = later
        return groups

    def _compute_prompts(self, begin: int, rows: int) -> None:
        """Compute the missing tokens of the prompts in rows `begin` up to `rows`, and sample a first token for each."""
        while begin < rows:
            end = begin + 1
            while end < rows and (end + 1 - begin) * self._left(end) <= _AT_ONCE:
                end += 1
            self._go_on(begin, [self._requests[row].prompt[self._lengths[row] :] for row in range(begin, end)])
            begin = end

    def _has_room_for(self, others: list[GenerationRequest], request: GenerationRequest) -> bool:
        rows = [*self._requests, *others, request]
        return len(rows) == 1 or self._allowed(len(rows), _longest(rows))

    def _allowed(self, rows: int, columns: int) -> bool:
        return rows * (whole_columns(columns) + 1) * self._bytes_a_token <= self._memory() * 7 // 8

    def _make_room(self, most: int) -> None:
        """Make room for the rows, for some more if memory allows it, and for their first token."""
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
        """Compute the new tokens of the rows from `begin` on, and sample a token for each."""
        rows = range(begin, begin + len(pieces))
        raw = self._rows.forward(begin, pieces, [self._lengths[row] for row in rows])
        logits = raw + self._logit_mask
        self._prefix_cache.shrink(self._memory() - self._rows.nbytes)  # forward may add columns
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
        """Take out the finished answers from a row on; their keys and values are cached as far as the next prompt
        shares their tokens.
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
            self._remove_row(row)
            self._over.append(request)

    def _remove_row(self, row: int) -> None:
        """Take a row out; the last row moves to its place."""
        self._rows.remove(row, self._lengths[-1])
        self._requests[row], self._lengths[row] = self._requests[-1], self._lengths[-1]
        self._requests.pop()
        self._lengths.pop()


class _Joining:
    """A request that joins, and the source of the first `length` tokens of its prompt: the cache, or the row of another
    request with the same prefix.
    """

    def __init__(self, request: GenerationRequest, held: Sequence[Tensor]) -> None:
        self.request = request
        self.held = held
        self.alike: GenerationRequest | None = None
        self.length: int = sum(piece.shape[3] for piece in held)

    @property
    def missing(self) -> int:
        """The number of prompt tokens still to be computed."""
        return len(self.request.prompt) - self.length

    def copy_from(self, others: list[GenerationRequest]) -> bool:
        """Share the prefix of one of the others, if it is long enough to be worth it."""
        if self.missing <= WORTH_A_COPY or not others:
            return False
        lengths = [common_length(other.prompt, self.request.prompt) for other in others]
        length = min(max(lengths), len(self.request.prompt) - 1)
        if length < self.length + WORTH_A_COPY:
            return False
        self.held, self.alike, self.length = (), others[lengths.index(max(lengths))], length
        return True


def _longest(requests: list[GenerationRequest]) -> int:
    """The maximum number of columns that an answer may need."""
    return max(len(request.prompt) + request.most for request in requests)
