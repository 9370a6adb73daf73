"""The models that a server lists, and when their vendor shuts them down."""

import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from datetime import date
from typing import Any, NamedTuple

from aiohttp import ClientError, ClientTimeout

from app.core.config import load_settings
from app.core.errors import AppError
from app.players.api.addresses import check_host
from app.players.api.answers import mapping
from app.players.api.client import CONNECT_SECONDS, open_sessions, read_bytes
from app.players.api.connection_errors import broken_connection
from app.players.api.end_dates import end_of
from app.players.api.keys import read_key
from app.players.api.options import ApiOptions
from app.players.api.sending import one_line
from app.players.api.server_errors import read_error

_SECONDS = 20.0
_END_FIELDS = ("shutdown_date", "expiration_date")  # OpenAI's, OpenRouter's


class ListFailed(AppError):
    """A server did not send a list of its models; the message is one line without the key."""


class RemoteModel(NamedTuple):
    """A model of a server. `told_by` is the source of its end date: the server, or the file of end dates."""

    name: str
    ends: date | None
    told_by: str | None


async def list_remote(options: ApiOptions) -> list[RemoteModel]:
    """The models that a model's server lists, by name. Raises ListFailed, KeyRefused, and Invalid for a forbidden
    host.
    """
    check_host(options.base_url, load_settings().api_hosts)
    key = read_key(options)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    timeout = ClientTimeout(min(options.timeout, _SECONDS), sock_connect=CONNECT_SECONDS)
    url = f"{options.base_url}/models"
    try:
        async with (
            aclosing(open_sessions(options.base_url)) as sessions,
            (await anext(sessions)).get(url, headers=headers, timeout=timeout, allow_redirects=False) as response,
        ):
            status, raw = response.status, await read_bytes(response)
    except TimeoutError:
        raise _failed(options, f"expected its models within {timeout.total:g} s, got no answer", key) from None
    except (ClientError, OSError) as error:
        raise _failed(options, broken_connection(error), key) from None
    body = None if raw is None else json_or_text(raw)
    if status != 200:
        raise _failed(options, f"expected its models, got HTTP {status}: {read_error(status, body).message}", key)
    listed = body if isinstance(body, list) else mapping(body).get("data")
    if not isinstance(listed, list):
        raise _failed(options, "expected a list of models, got something else", key)
    return read_models(listed, options.base_url)


def read_models(listed: Sequence[Any], base_url: str) -> list[RemoteModel]:
    """The models in a server's list, by name; entries without a name are left out."""
    found = {}
    for each in map(mapping, listed):
        name = each.get("id")
        if isinstance(name, str) and name.isprintable() and name:
            ends = _end_told(each)
            told_by = "the server" if ends else "Parlor's dates"
            known = ends or end_of(name, base_url)
            found[name] = RemoteModel(name, known, told_by if known else None)
    return [found[name] for name in sorted(found)]


def _end_told(model: Mapping[str, Any]) -> date | None:
    for field in _END_FIELDS:
        try:
            return date.fromisoformat(str(model.get(field))[:10])
        except ValueError:
            continue
    return None


def json_or_text(raw: bytes) -> Any:
    """A server's response as JSON, or else the beginning of its text."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw[:200].decode(errors="replace")


def _failed(options: ApiOptions, what: str, key: str) -> ListFailed:
    return ListFailed(one_line(options, what, key))
