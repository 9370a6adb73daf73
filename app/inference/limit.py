"""The limit on simultaneous answers after memory ran out. Pure."""

_FIRST_WAIT, _LONGEST_WAIT = 32, 2048  # answers


class BatchLimit:
    """Halves when memory runs out, and grows by half after enough answers without that.

    Each time memory runs out, the number of answers required before it grows doubles, because unfinished answers
    restart; a brief shortage caused by another program is still soon forgotten.
    """

    def __init__(self) -> None:
        self.at_once: int | None = None  # answers that fit in memory, as found; None: as many as wanted
        self._wait = _FIRST_WAIT // 2
        self._made = 0  # answers since the limit last changed

    def of(self, wanted: int) -> int:
        """How many of the wanted answers may be made at once."""
        return wanted if self.at_once is None else min(wanted, self.at_once)

    def shrink(self, tried: int) -> None:
        """Halve the limit: memory ran out with `tried` answers at once."""
        self.at_once = max(1, tried // 2)
        self._wait = min(2 * self._wait, _LONGEST_WAIT)
        self._made = 0

    def grow(self, made: int, wanted: int) -> None:
        """Count `made` answers, of up to `wanted` at once, and raise the limit when due."""
        if self.at_once is None:
            return
        self._made += made
        if self._made >= self._wait:
            self._made = 0
            grown = self.at_once + max(1, self.at_once // 2)
            self.at_once = None if grown >= wanted else grown
