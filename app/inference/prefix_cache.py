"""A cache of what was computed for conversations that may go on: the next prompt of a seat begins with its last one.

A conversation is found by its tokens alone. It is kept as far as it was computed, and found again there or where its
prompt ended, should the answer have been refused. Another conversation that begins alike, as matches of one game do
with the rules, copies the beginning that both have. The one that was kept first goes first.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass

from torch import Tensor

WORTH_A_COPY = 32  # tokens that two prompts have to begin with alike, or another one more


@dataclass(frozen=True, slots=True, eq=False)
class _CachedPrefix:
    ids: list[int]
    prompt: int  # how many of them the conversation's next prompt has for sure
    held: Tensor  # (layers, 2, heads, length, width)


class PrefixCache:
    """What is kept, and by how many bytes; whoever keeps says how many there may be."""

    def __init__(self) -> None:
        self._bytes = 0
        self._entries: dict[_CachedPrefix, None] = {}  # the oldest first
        self._sorted: list[_CachedPrefix] = []  # by tokens, so what begins alike stands together

    def keep(self, ids: list[int], prompt: int, held: Tensor, most: int) -> None:
        """Keep what was computed of a conversation whose first `prompt` tokens were a prompt, `most` bytes in all."""
        at = bisect_left(self._sorted, ids, key=_ids)
        if self._sorted[at : at + 1] and self._sorted[at].ids == ids:
            self._drop(self._sorted[at])
        entry = _CachedPrefix(ids, prompt, held)
        self._entries[entry] = None
        insort(self._sorted, entry, key=_ids)
        self._bytes += held.nbytes
        self.shrink(most)

    def shrink(self, most: int) -> None:
        """Keep no more than `most` bytes."""
        while self._entries and self._bytes > most:
            self._drop(next(iter(self._entries)))

    def take(self, ids: list[int]) -> Tensor | None:
        """What was computed of the longest beginning of `ids` that is known, all of it never.

        A conversation that goes on is kept no more; one that only begins alike stays.
        """
        at = bisect_left(self._sorted, ids, key=_ids)
        best = max(self._sorted[max(0, at - 1) : at + 1], key=lambda each: common_length(each.ids, ids), default=None)
        if best is None:
            return None
        length = min(common_length(best.ids, ids), len(ids) - 1)
        if length >= best.prompt:
            self._drop(best)
        elif length < WORTH_A_COPY:
            return None
        return best.held[:, :, :, :length]

    def clear(self) -> None:
        """Keep nothing."""
        self._entries.clear()
        self._sorted.clear()
        self._bytes = 0

    def _drop(self, entry: _CachedPrefix) -> None:
        del self._entries[entry]
        del self._sorted[bisect_left(self._sorted, entry.ids, key=_ids)]
        self._bytes -= entry.held.nbytes


def common_length(one: list[int], other: list[int]) -> int:
    """How many tokens both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # slices are compared far faster than tokens in a loop
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _ids(entry: _CachedPrefix) -> list[int]:
    return entry.ids
