"""Rate limiting: pure, and loaded before gevent has patched."""


class Bucket:
    """A token bucket: `rate` per second in the long run, and twice that at once after a rest. 0: no limit."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._most = max(2 * rate, 1)
        self._tokens = self._most
        self._at = now

    def take(self, now: float) -> bool:
        """Whether one more is allowed at `now` (seconds of a monotonic clock)."""
        if self._rate == 0:
            return True
        self._fill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def spend(self, count: int, now: float) -> float:
        """Take `count` at once, on credit if necessary; returns the seconds until the credit is paid back."""
        if self._rate == 0:
            return 0.0
        self._fill(now)
        self._tokens -= count
        return max(0.0, -self._tokens / self._rate)

    def _fill(self, now: float) -> None:
        self._tokens = min(self._most, self._tokens + (now - self._at) * self._rate)
        self._at = now
