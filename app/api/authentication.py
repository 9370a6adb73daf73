"""Authentication for the API: the token of each request, its rate limit, and its last use."""

import contextlib
import math
import time
from datetime import UTC, datetime
from functools import partial

from flask import Response, current_app, g, request
from flask_limiter.util import get_remote_address
from limits import RateLimitItem, RateLimitItemPerMinute
from redis.exceptions import RedisError
from werkzeug.exceptions import MethodNotAllowed, NotFound

from app.accounts import tokens
from app.api.operations import OPERATIONS, blueprint, methods_at, secret
from app.core.errors import AppError, Invalid, Unavailable, Verbatim
from app.core.extensions import reading
from app.web.addresses import network_of
from app.web.errors import is_for_api
from app.web.extensions import limiter
from app.web.form_writes import write
from app.web.seats import settings

_WRONG_A_MINUTE = RateLimitItemPerMinute(60)  # invalid tokens from one address
_USES, _WRONG = "uses of the API", "wrong tokens of the API"


class TooFast(AppError):
    """Too many requests in a minute."""

    code = "too_fast"
    status = 429

    def __init__(self, limit: RateLimitItem) -> None:
        super().__init__(f"expected at most {limit.amount} requests a minute, got more; wait a minute and try again")


@blueprint.before_request
def authenticate() -> None:
    """Identify the token of a request. Raises BadToken, Invalid beside a cookie, and TooFast."""
    if _is_open():
        return
    if request.cookies.get(current_app.config["SESSION_COOKIE_NAME"]):
        remedy = "leave the cookie out: programs use a token, and browsers the pages"
        raise Invalid("Cookie", expected="no session beside a token", got=Verbatim("one"), remedy=remedy)
    address, now = network_of(get_remote_address()), datetime.now(UTC)
    _refuse_too_fast(_WRONG_A_MINUTE, _WRONG, address, cost=0)
    try:
        with reading() as session:
            found = tokens.holder_of(session, secret(), now)
    except tokens.BadToken:
        _refuse_too_fast(_WRONG_A_MINUTE, _WRONG, address)
        raise
    g.token_holder = found
    if most := settings().API_REQUESTS_PER_MINUTE:
        _refuse_too_fast(RateLimitItemPerMinute(most), _USES, str(found.token_id))
    if tokens.should_record_use(found, now):
        with contextlib.suppress(Unavailable):  # a busy database is no reason to refuse a read
            write(partial(tokens.note_use, token_id=found.token_id, now=now))


@blueprint.after_request
def add_authentication_headers(response: Response) -> Response:
    """Tell programs that a token is needed, and keep answers out of caches."""
    if response.status_code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if "retry_after" in g:
        response.headers["Retry-After"] = str(g.retry_after)
    response.headers.setdefault("Cache-Control", "no-store")
    return response


@blueprint.before_app_request
def refuse_unknown_address() -> None:
    """Raises NotFound for an API address that takes no method at all, as the router checks methods first."""
    if is_for_api() and isinstance(request.routing_exception, MethodNotAllowed) and not methods_at(request.path):
        raise NotFound


@blueprint.after_app_request
def add_allow_header(response: Response) -> Response:
    """Tell programs the methods of an address that does not take theirs, or on request."""
    if is_for_api() and (response.status_code == 405 or request.method == "OPTIONS"):
        response.headers["Allow"] = ", ".join(methods_at(request.path))
    return response


def is_experimenter() -> bool:
    """Whether a request has a valid token, for the limits of bodies, which are checked first."""
    try:
        with reading() as session:
            tokens.holder_of(session, secret(), datetime.now(UTC))
    except tokens.BadToken:
        return False
    return True


def _is_open() -> bool:
    name = (request.endpoint or "").rpartition(".")[2]
    return request.method == "OPTIONS" or any(each.name == name and each.scope is None for each in OPERATIONS)


def _refuse_too_fast(limit: RateLimitItem, *who: str, cost: int = 1) -> None:
    """Count a request. Raises TooFast; without the broker, only this process's limits count."""
    with contextlib.suppress(RedisError):
        allowed = limiter.limiter.hit(limit, *who, cost=cost) if cost else limiter.limiter.test(limit, *who)
        if not allowed:
            reset = limiter.limiter.get_window_stats(limit, *who).reset_time
            g.retry_after = max(1, math.ceil(reset - time.time()))
            raise TooFast(limit)
