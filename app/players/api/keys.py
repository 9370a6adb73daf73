"""The key of a model behind an API, looked up in the environment for each use and bound to its host."""

import os
import re

from app.core.errors import AppError
from app.players.api.addresses import host_of
from app.players.api.options import ApiOptions

_KEY = re.compile(r"[\x21-\x7e]+")


class KeyRefused(AppError):
    """No key may be sent; the message never shows one."""


def read_key(options: ApiOptions) -> str:
    """The key that a model is called with; "" for a server without keys. Raises KeyRefused."""
    key = os.environ.get(options.key_env, "").strip() if options.key_env else ""
    if options.key_env and not _KEY.fullmatch(key):
        raise KeyRefused(
            f"expected a key in the environment variable {options.key_env},"
            f" got {'characters that no key has' if key else 'none'}; set it where the workers run, or the"
            ' option key_env to "" for a server without keys'
        )
    if key and options.key_host not in (None, host := host_of(options.base_url)):
        raise KeyRefused(
            f"expected {options.key_host}, the host that the key in {options.key_env} was bound to when the"
            f" model was added, got {host}; add a model of its own for that host"
        )
    return key
