"""A cache of what was computed for conversations that may go on: the next prompt of a seat begins with its last one.

A conversation is found by its tokens alone. It is kept as far as it was computed, and found again there or where its
prompt ended, should the answer have been refused. The one that was used least recently goes first.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torch import Tensor


class _CachedPrefix(NamedTuple):
    ids: Sequence[int]
    held: Tensor  # (layers, 2, heads, length, width)
    marks: tuple[int, int]  # at the end of the prompt, and of all


class PrefixCache:
    """What is kept, and by how many bytes; whoever keeps says how many there may be."""

    def __init__(self) -> None:
        self._bytes = 0
        self._entries: dict[int, _CachedPrefix] = {}  # by the mark of all, the oldest first
        self._found: dict[int, tuple[int, int]] = {}  # mark → how far, and the mark of all

    def keep(self, ids: Sequence[int], prompt: int, held: Tensor, most: int) -> None:
        """Keep what was computed of a conversation whose first `prompt` tokens were a prompt, `most` bytes in all."""
        marks = list(_marks(ids))
        whole = marks[-1]
        self._drop(whole)
        self._entries[whole] = _CachedPrefix(ids, held, (marks[prompt - 1], whole))
        self._found[marks[prompt - 1]] = prompt, whole
        self._found[whole] = len(ids), whole
        self._bytes += held.nbytes
        self.shrink(most)

    def shrink(self, most: int) -> None:
        """Keep no more than `most` bytes."""
        while self._entries and self._bytes > most:
            self._drop(next(iter(self._entries)))

    def take(self, ids: Sequence[int]) -> Tensor | None:
        """What was computed of the longest beginning of `ids` that is known, all of it never; it is kept no more."""
        best: tuple[int, int] | None = None
        for place, mark in enumerate(_marks(ids[:-1]), 1):
            found = self._found.get(mark)
            if found is not None and found[0] == place:
                best = found
        if best is None:
            return None
        length, whole = best
        entry = self._entries[whole]
        if list(entry.ids[:length]) != list(ids[:length]):
            return None
        self._drop(whole)
        return entry.held[:, :, :, :length]

    def clear(self) -> None:
        """Keep nothing."""
        self._entries.clear()
        self._found.clear()
        self._bytes = 0

    def _drop(self, whole: int) -> None:
        entry = self._entries.pop(whole, None)
        if entry is None:
            return
        self._bytes -= entry.held.nbytes
        for mark in entry.marks:
            if self._found.get(mark, (0, None))[1] == whole:
                del self._found[mark]


def _marks(ids: Sequence[int]) -> Iterator[int]:
    """A number for each beginning of a sequence, the same wherever it is the same."""
    mark = 0
    for token in ids:
        mark = hash((mark, token))
        yield mark
