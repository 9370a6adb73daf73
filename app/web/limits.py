"""Limits on what a guest may start, and on how fast anything may happen."""

import contextlib
from typing import Any

from flask_babel import gettext
from redis.exceptions import RedisError

from app.core.errors import NotAllowed
from app.games import find_game
from app.matches.lobby import GuestMatchRequest
from app.web.extensions import limiter
from app.web.seats import settings

# The page and the API share one budget.
guest_limit: dict[str, Any] = {
    "limit_value": lambda: f"{settings().GUEST_MATCHES_PER_MINUTE} per minute",
    "scope": "guest matches",
    # A start refused for another reason is not counted.
    "deduct_when": lambda response: response.status_code not in (403, 409, 503),
    "exempt_when": lambda: settings().GUEST_MATCHES_PER_MINUTE == 0,
    "error_message": lambda: gettext("That was a lot of games in a short time. Please wait a minute and try again."),
}


def give_back_attempt() -> None:
    """Undo the counting of this request."""
    with contextlib.suppress(RedisError):  # without the broker, only this process's limits count
        for each in limiter.current_limits:
            limiter.limiter.hit(each.limit, *each.request_args, cost=-1)


def check_guest_config(request: GuestMatchRequest) -> None:
    """Raises NotAllowed if a guest sets what the match should draw, and the server does not allow that.

    Whoever chooses the word knows it, and whoever chooses the values knows the partner's.
    """
    fixed = [name for name in find_game(request.game).drawn if request.config.get(name) is not None]
    if fixed and not settings().GUEST_CONFIG:
        raise NotAllowed(
            f"config: expected no {' and no '.join(fixed)} from a guest, because each match draws its own, got"
            f" {' and '.join(fixed)}; leave it out, or have the server run with GUEST_CONFIG=true"
        )
