"""Limits on what a guest may start."""

from typing import Any

from flask_babel import gettext

from app.web.seats import settings


def _guest_rate() -> str:
    return f"{settings().GUEST_MATCHES_PER_MINUTE} per minute"


# One budget for the page and the API.
guest_limit: dict[str, Any] = {
    "limit_value": _guest_rate,
    "scope": "guest matches",
    # A start that was refused for another reason costs nothing.
    "deduct_when": lambda response: response.status_code not in (403, 409, 503),
    "exempt_when": lambda: settings().GUEST_MATCHES_PER_MINUTE == 0,
    "error_message": lambda: gettext("That was a lot of games in a short time. Please wait a minute and try again."),
}


class Bucket:
    """A token bucket: `rate` a second in the long run, and twice as many at once after a rest. 0: no limit."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._most = max(2 * rate, 1)
        self._tokens = self._most
        self._at = now

    def take(self, now: float) -> bool:
        """Whether one more is allowed at `now` (seconds of a monotonic clock)."""
        if self._rate == 0:
            return True
        self._tokens = min(self._most, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
