"""How many people per minute may enter studies, and agree to take part, from one address."""

import contextlib
from typing import Any

from flask import request
from flask_babel import gettext
from limits import RateLimitItemPerMinute
from limits.strategies import MovingWindowRateLimiter
from redis.exceptions import RedisError

from app.web.addresses import network_of
from app.web.extensions import limiter
from app.web.seats import settings
from app.web.study.recruitment_link import requested_wave


def _takes_any_number() -> bool:
    """Whether the number of arrivals is unlimited: without a limit, and for bots."""
    return settings().ARRIVALS_PER_MINUTE == 0 or requested_wave(**request.view_args or {}).of_bots


# Arrivals of people at studies. A person who returns in a browser that knows them gets the attempt back.
arrival_limit: dict[str, Any] = {
    "limit_value": lambda: f"{settings().ARRIVALS_PER_MINUTE} per minute",
    "key_func": lambda: network_of(request.remote_addr or ""),
    "scope": "arrivals at studies",
    "exempt_when": _takes_any_number,
    "error_message": lambda: gettext(
        "Many people have come from your network within a minute. Nothing has been recorded. Please wait a minute, and"
        " press the button once more."
    ),
}


def may_agree() -> bool:
    """Whether one more may agree to take part in a study, and so take a place; they are counted by address."""
    most = settings().CONSENTS_PER_MINUTE
    if most == 0:
        return True
    with contextlib.suppress(RedisError):  # without the broker, only this process's limits count
        # In any sixty seconds, not up to twice as many around the turn of a minute.
        window = MovingWindowRateLimiter(limiter.limiter.storage)
        return window.hit(RateLimitItemPerMinute(most), "consents", network_of(request.remote_addr or ""))
    return True
