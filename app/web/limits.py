"""Limits on what a guest may start, and how fast anything may go on."""

import contextlib
from typing import Any

from flask import request
from flask_babel import gettext
from limits import RateLimitItemPerMinute
from limits.strategies import MovingWindowRateLimiter
from redis.exceptions import RedisError

from app.core.errors import NotAllowed
from app.core.extensions import reading
from app.games import find_game
from app.matches.lobby import GuestMatchRequest
from app.studies.waves import find_wave
from app.web.addresses import network_of
from app.web.extensions import limiter
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


def _arrival_rate() -> str:
    return f"{settings().ARRIVALS_PER_MINUTE} per minute"


def _takes_any_number() -> bool:
    """Whether as many may come as like: where nothing is limited, and where bots come."""
    if settings().ARRIVALS_PER_MINUTE == 0:
        return True
    study, wave = (str((request.view_args or {})[name]) for name in ("study", "wave"))
    with reading() as session:
        return find_wave(session, f"{study}:{wave}").rehearsal


# People who come into studies. Whoever comes back in a browser that knows them is given the attempt back.
arrival_limit: dict[str, Any] = {
    "limit_value": _arrival_rate,
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
    with contextlib.suppress(RedisError):  # without the broker nothing is counted but in this process's limits
        # In any sixty seconds, not twice as many around the turn of a minute.
        window = MovingWindowRateLimiter(limiter.limiter.storage)
        return window.hit(RateLimitItemPerMinute(most), "consents", network_of(request.remote_addr or ""))
    return True


def give_back_attempt() -> None:
    """What this request was counted for does not count after all."""
    with contextlib.suppress(RedisError):  # without the broker nothing is counted but in this process's limits
        for each in limiter.current_limits:
            limiter.limiter.hit(each.limit, *each.request_args, cost=-1)


def check_guest_config(request: GuestMatchRequest) -> None:
    """Raises NotAllowed where a guest fixes what the match is to draw, and the server does not take that from guests.

    Whoever chooses the word knows it, and whoever chooses the values knows the partner's.
    """
    fixed = [name for name in find_game(request.game).drawn if request.config.get(name) is not None]
    if fixed and not settings().GUEST_CONFIG:
        raise NotAllowed(
            f"config: expected no {' and no '.join(fixed)} from a guest, because each match draws its own, got"
            f" {' and '.join(fixed)}; leave it out, or have the server run with GUEST_CONFIG=true"
        )
