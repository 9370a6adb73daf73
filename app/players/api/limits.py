"""Rate limits of one model: requests in flight, tokens per minute, and the pauses that its server orders.

The limits belong to the model and not to a player, so that all matches of a process share them. Waiting requests are
admitted in order of arrival; a wait can be cancelled. Everything happens on one event loop, without locks.
"""

import asyncio
from collections import deque
from typing import NamedTuple

_BURST = 0.05  # the share of a minute's tokens that may be spent at once
_CRUMB = 1e-6  # tokens; not waited for, as rounding leaves less


class _Waiter(NamedTuple):
    turn: "asyncio.Future[None]"
    tokens: int


class RateLimits:
    """The limits of one model. `tokens_per_minute` None: any number."""

    def __init__(self, in_flight: int, tokens_per_minute: int | None = None) -> None:
        self.in_flight = in_flight
        self.tokens_per_minute = tokens_per_minute
        self._loop = asyncio.get_running_loop()
        self._under_way = 0
        self._waiters: deque[_Waiter] = deque()
        self._held_until = 0.0  # on the loop's clock
        self._level = self._capacity
        self._filled_at = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def narrow(self, in_flight: int, tokens_per_minute: int | None) -> None:
        """Apply the lower limits if two rows of the registry differ for the same model."""
        self.in_flight = min(self.in_flight, in_flight)
        if tokens_per_minute is None:
            return
        if self.tokens_per_minute is None:
            self.tokens_per_minute = tokens_per_minute
            self._level = self._capacity
        elif tokens_per_minute < self.tokens_per_minute:
            self.tokens_per_minute = tokens_per_minute
            self._level = min(self._level, self._capacity)

    async def enter(self, tokens: int) -> None:
        """Wait until a request that may cost `tokens` can be sent. Exactly one `leave` has to follow."""
        if not self._waiters and self._delay(tokens) == 0:
            self._admit(tokens)
            return
        waiter = _Waiter(self._loop.create_future(), tokens)
        self._waiters.append(waiter)
        self._let_in()
        try:
            await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.cancelled():
                self._let_in()  # it may have been the first in the queue, and the next one may need less
            else:
                self.leave(tokens, 0)
            raise

    def leave(self, tokens: int, used: int | None) -> None:
        """End a request: `used` is the server's count of tokens, None if it may have counted any number."""
        self._under_way -= 1
        if used is not None and self.tokens_per_minute is not None:
            self._level = min(self._capacity, self._level + tokens - used)
        if self._waiters:
            self._let_in()

    def hold(self, seconds: float) -> None:
        """Send no further requests for `seconds`, whoever makes them."""
        self._held_until = max(self._held_until, self._loop.time() + seconds)

    @property
    def _capacity(self) -> float:
        return (self.tokens_per_minute or 0) * _BURST

    def _delay(self, tokens: int) -> float | None:
        """Seconds until such a request may be sent; None: not before another one is over."""
        if self._under_way >= self.in_flight:
            return None
        if self._held_until == 0 and self.tokens_per_minute is None:
            return 0
        now = self._loop.time()
        held = max(0.0, self._held_until - now)
        if self.tokens_per_minute is None:
            return held
        # A minute's refill and the burst together are a minute's tokens.
        rate = self.tokens_per_minute * (1 - _BURST) / 60
        self._level = min(self._capacity, self._level + (now - self._filled_at) * rate)
        self._filled_at = now
        # A request larger than the burst starts once the whole burst is available, and its rest is paid off afterwards.
        missing = min(tokens, self._capacity) - self._level
        return max(held, missing / rate) if missing > _CRUMB else held

    def _admit(self, tokens: int) -> None:
        self._under_way += 1
        if self.tokens_per_minute is not None:
            self._level -= tokens

    def _let_in(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiters:
            turn, tokens = self._waiters[0]
            if not turn.done():
                delay = self._delay(tokens)
                if delay is None:
                    return
                if delay > 0:
                    self._timer = self._loop.call_later(delay, self._let_in)
                    return
                self._admit(tokens)
                turn.set_result(None)
            self._waiters.popleft()
