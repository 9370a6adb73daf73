"""How many answers are made at once where memory did not allow as many as were wanted. Pure."""

_FIRST_WAIT, _LONGEST_WAIT = 32, 2048  # answers


class BatchLimit:
    """Halves when memory runs out, and grows again by half when answers were made without that.

    Each time memory runs out twice as many answers have to be made before it grows, because those that were under way
    begin again; what was short for a moment, beside another program, is soon forgotten all the same.
    """

    def __init__(self) -> None:
        self.at_once: int | None = None  # answers that memory was found to allow; None: as many as are wanted
        self._wait = _FIRST_WAIT // 2
        self._made = 0  # answers since the limit last changed

    def of(self, wanted: int) -> int:
        """How many answers of so many that are wanted may be made at once."""
        return wanted if self.at_once is None else min(wanted, self.at_once)

    def shrink(self, tried: int) -> None:
        """Memory ran out with so many at once."""
        self.at_once = max(1, tried // 2)
        self._wait = min(2 * self._wait, _LONGEST_WAIT)
        self._made = 0

    def grow(self, made: int, wanted: int) -> None:
        """So many answers were made, of up to `wanted` at once if memory allowed."""
        if self.at_once is None:
            return
        self._made += made
        if self._made >= self._wait:
            self._made = 0
            grown = self.at_once + max(1, self.at_once // 2)
            self.at_once = None if grown >= wanted else grown
