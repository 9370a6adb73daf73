"""A cache of keys and values for conversations that may continue: a seat's next prompt begins with its last one.

A conversation is looked up by its tokens alone. It is kept as far as it was computed, and matches up to there or up to
the end of its prompt, in case the answer was refused. Another conversation with the same beginning, such as the rules
in matches of one game, copies the common prefix; among cached conversations it is stored once. The oldest entry is
dropped first.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from app.inference.blocks import zeros

WORTH_A_COPY = 32  # least number of shared tokens, or additional ones, worth a copy


@dataclass(slots=True, eq=False)
class _SharedBeginning:
    """The common prefix of several conversations: (layers, 2, heads, length, width), and how many of them use it."""

    held: Tensor
    users: int = 0


@dataclass(slots=True, eq=False)
class _CachedPrefix:
    """A conversation: its first `shared` tokens are those of the beginning, and `own` holds what follows them."""

    ids: list[int]
    prompt: int  # how many of them the conversation's next prompt certainly has
    own: Tensor
    beginning: _SharedBeginning | None = None
    shared: int = 0

    def pieces(self, length: int) -> list[Tensor]:
        """The keys and values of its first tokens, one piece after the other."""
        parts = [] if self.beginning is None else [self.beginning.held[:, :, :, : min(self.shared, length)]]
        return [*parts, self.own[:, :, :, : length - self.shared]] if length > self.shared else parts


class PrefixCache:
    """Cached conversations and their size in bytes; the caller sets the limit."""

    def __init__(self) -> None:
        self._bytes = 0
        self._entries: dict[_CachedPrefix, None] = {}  # the oldest first
        self._sorted: list[_CachedPrefix] = []  # by tokens, so that common prefixes are adjacent

    def keep(self, ids: list[int], prompt: int, computed: Callable[[int], Tensor], most: int) -> None:
        """Cache a conversation whose first `prompt` tokens were a prompt, within `most` bytes in all.

        `computed` gives its keys and values from a token on: what another entry already holds is not copied.
        """
        at = bisect_left(self._sorted, ids, key=_prefix_ids)
        if self._sorted[at : at + 1] and self._sorted[at].ids == ids:
            self._drop(self._sorted[at])
        beginning, shared = self._beginning_for(ids)
        entry = _CachedPrefix(ids, prompt, computed(shared), beginning, shared)
        if beginning is not None:
            beginning.users += 1
        self._bytes += entry.own.nbytes
        self._entries[entry] = None
        insort(self._sorted, entry, key=_prefix_ids)
        self.shrink(most)

    def shrink(self, most: int) -> None:
        """Drop the oldest entries until at most `most` bytes are used."""
        while self._entries and self._bytes > most:
            self._drop(next(iter(self._entries)))

    def take(self, ids: list[int]) -> Sequence[Tensor]:
        """The keys and values of the longest cached prefix of `ids`, never all of it: pieces of it, each (layers, 2,
        heads, length, width).

        A conversation that continues leaves the cache; one that only shares a prefix stays.
        """
        best = self._most_alike(ids)
        if best is None:
            return ()
        length = min(common_length(best.ids, ids), len(ids) - 1)
        if length >= best.prompt:
            self._drop(best)
        elif length < WORTH_A_COPY:
            return ()
        return best.pieces(length)

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()
        self._sorted.clear()
        self._bytes = 0

    def _most_alike(self, ids: list[int]) -> _CachedPrefix | None:
        at = bisect_left(self._sorted, ids, key=_prefix_ids)
        return max(self._sorted[max(0, at - 1) : at + 1], key=lambda each: common_length(each.ids, ids), default=None)

    def _beginning_for(self, ids: list[int]) -> tuple[_SharedBeginning | None, int]:
        """The beginning that a conversation can share with the most similar one, and how many of its tokens."""
        other = self._most_alike(ids)
        length = 0 if other is None else common_length(other.ids, ids)
        if other is None or length < WORTH_A_COPY:
            return None, 0
        if length > 2 * other.shared:  # for less, a longer shared beginning costs more than it saves
            self._divide(other, length)
        return other.beginning, min(length, other.shared)

    def _divide(self, entry: _CachedPrefix, length: int) -> None:
        """Give a conversation a sharable beginning of `length` tokens, longer than its current one."""
        beginning = _SharedBeginning(_joined_copy(entry.pieces(length)), 1)
        own = _joined_copy([entry.own[:, :, :, length - entry.shared :]])
        self._bytes += beginning.held.nbytes + own.nbytes - entry.own.nbytes
        self._forget_beginning(entry)
        entry.beginning, entry.shared, entry.own = beginning, length, own

    def _forget_beginning(self, entry: _CachedPrefix) -> None:
        """Detach a conversation from its shared beginning, which is dropped if no other one uses it."""
        if entry.beginning is not None:
            entry.beginning.users -= 1
            if not entry.beginning.users:
                self._bytes -= entry.beginning.held.nbytes

    def _drop(self, entry: _CachedPrefix) -> None:
        del self._entries[entry]
        del self._sorted[bisect_left(self._sorted, entry.ids, key=_prefix_ids)]
        self._bytes -= entry.own.nbytes
        self._forget_beginning(entry)


def _joined_copy(pieces: Sequence[Tensor]) -> Tensor:
    """A copy of the pieces, joined."""
    shape = list(pieces[0].shape)
    shape[3] = sum(piece.shape[3] for piece in pieces)
    return torch.cat([*pieces], dim=3, out=zeros(tuple(shape), pieces[0]))


def common_length(one: list[int], other: list[int]) -> int:
    """The length of the common prefix, in tokens."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # slices are compared far faster than tokens in a loop
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _prefix_ids(entry: _CachedPrefix) -> list[int]:
    return entry.ids
