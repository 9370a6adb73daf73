"""Limits on what a guest may start."""

from typing import Any

from app.web.seats import settings


def _guest_rate() -> str:
    return f"{settings().GUEST_MATCHES_PER_MINUTE} per minute"


# One budget for the page and the API.
guest_limit: dict[str, Any] = {
    "limit_value": _guest_rate,
    "scope": "guest matches",
    "exempt_when": lambda: settings().GUEST_MATCHES_PER_MINUTE == 0,
    "error_message": "That was a lot of games in a short time. Please wait a minute and try again.",
}
