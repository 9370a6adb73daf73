"""Adapters (LoRA) in a running vLLM: loaded under a name before a match is played with them, and unloaded afterwards.

Source: vLLM, docs/features/lora.md, which has `/v1/load_lora_adapter`, `/v1/unload_lora_adapter` and /v1/models.
"""

import asyncio
import re
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from aiohttp import ClientError, ClientTimeout

from app.core.config import load_settings
from app.core.errors import Invalid
from app.core.failures import Outcome
from app.inference.weights import is_unchanged
from app.players.api.addresses import check_host
from app.players.api.answers import mapping
from app.players.api.client import CONNECT_SECONDS, open_sessions, read_bytes
from app.players.api.connection_errors import broken_connection
from app.players.api.options import ApiOptions
from app.players.api.remote_models import ListFailed, json_or_text, list_remote
from app.players.api.sending import one_line
from app.players.api.server_errors import read_error

_SECONDS = 120.0  # seconds in which adapters are read from a disk
_ALREADY = re.compile(r"already been loaded", re.IGNORECASE)
_RANK = re.compile(r"max_lora_rank", re.IGNORECASE)
_ABOUT_ADAPTERS = re.compile(r"lora|adapter", re.IGNORECASE)
_LATER = {408, 429, 502, 503, 504}


class AdaptersFailed(Exception):
    """A server did not load or unload adapters. The message is one line; `outcome` is what this means for a call."""

    def __init__(self, what: str, outcome: Outcome) -> None:
        super().__init__(what)
        self.outcome = outcome


class _Reply(NamedTuple):
    status: int
    body: Any
    message: str


_Loads = dict[tuple[str, str], "asyncio.Task[None]"]

# By address and name. Another process may have unloaded them since, and a server forgets them when it ends.
_loaded: dict[tuple[str, str], float] = {}  # when, by time.monotonic
_under_way: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loads] = WeakKeyDictionary()


async def ensure_loaded(options: ApiOptions, folder: Path, sha256: str) -> None:
    """Have a server load the adapters in a folder under the name used in requests, unless this process knows that they
    are loaded. Concurrent calls wait for the same load.

    Raises AdaptersFailed, also if the folder's content does not have that hash.
    """
    key = options.base_url, options.model
    if key in _loaded:
        return
    loads = _under_way.setdefault(asyncio.get_running_loop(), {})
    if key not in loads:
        loads[key] = asyncio.create_task(_load_adapters(options, folder, sha256))
        loads[key].add_done_callback(lambda _: loads.pop(key, None))
    await asyncio.shield(loads[key])


async def were_forgotten(options: ApiOptions, since: float) -> bool:
    """Whether a server had lost the adapters it was given when it refused a call that began at `since`.

    It no longer lists them, as after a restart, or another call has had them loaded again meanwhile. `since` is by
    time.monotonic().
    """
    key, asked = (options.base_url, options.model), time.monotonic()
    try:
        listed = {each.name for each in await list_remote(options)}
    except ListFailed:
        return False
    if options.model in listed:
        return _loaded.get(key, since) > since
    if _loaded.get(key, asked) <= asked:  # otherwise another call had them loaded while this one asked
        _loaded.pop(key, None)
    return True


async def unload(options: ApiOptions) -> None:
    """Have a server unload the adapters named in requests; it may have done so already.

    Raises AdaptersFailed.
    """
    _loaded.pop((options.base_url, options.model), None)
    reply = await _post(options, "unload_lora_adapter", {"lora_name": options.model})
    if reply.status not in (200, 404):
        raise _failed(options, f"expected it to unload them, got HTTP {reply.status}: {reply.message}", "busy")


async def _load_adapters(options: ApiOptions, folder: Path, sha256: str) -> None:
    if not await asyncio.to_thread(is_unchanged, folder, sha256):
        what = f"expected the adapters with hash {sha256[:12]}… in {folder}, got others or none; put them back"
        raise _failed(options, what, "denied")
    wanted = {"lora_name": options.model, "lora_path": str(folder)}
    reply = await _post(options, "load_lora_adapter", wanted)
    if reply.status != 200 and not (reply.status == 400 and _ALREADY.search(reply.message)):
        raise _failure_to_load(options, folder, reply)
    _loaded[options.base_url, options.model] = time.monotonic()


def _failure_to_load(options: ApiOptions, folder: Path, reply: _Reply) -> AdaptersFailed:
    """Why a server did not load adapters, and what to do about it."""
    got = f"got HTTP {reply.status}: {reply.message}"
    if _RANK.search(reply.message):
        what = f"expected a --max-lora-rank that fits the adapters, {got}; raise --lora-rank of its command"
        return _failed(options, what, "denied")
    if reply.status == 404 and "error" not in mapping(reply.body) and "message" not in mapping(reply.body):
        what = "expected a vLLM that loads adapters as it runs, got one that does not; flask model serve --lora-rank"
        return _failed(options, f"{what} starts one, by VLLM_ALLOW_RUNTIME_LORA_UPDATING and --enable-lora", "denied")
    if reply.status == 404:
        what = f"expected it to see the adapters in {folder}, {got}; it needs the same folder under the same path"
        return _failed(options, what, "denied")
    later = reply.status in _LATER or (reply.status >= 500 and not _ABOUT_ADAPTERS.search(reply.message))
    return _failed(options, f"expected it to load the adapters in {folder}, {got}", "busy" if later else "denied")


async def _post(options: ApiOptions, path: str, body: dict[str, str]) -> _Reply:
    """Call a server. Raises AdaptersFailed where it gives no answer, or is at a forbidden address."""
    timeout = ClientTimeout(_SECONDS, sock_connect=CONNECT_SECONDS)
    try:
        check_host(options.base_url, load_settings().api_hosts)
        async with (
            aclosing(open_sessions(options.base_url)) as sessions,
            (await anext(sessions)).post(
                f"{options.base_url}/{path}", json=body, timeout=timeout, allow_redirects=False
            ) as response,
        ):
            status, raw = response.status, await read_bytes(response)
    except Invalid as refused:
        raise _failed(options, refused.message, "denied") from None
    except TimeoutError:
        raise _failed(options, f"expected an answer within {_SECONDS:g} s, got none", "busy") from None
    except (ClientError, OSError) as error:
        raise _failed(options, broken_connection(error), "busy") from None
    found = None if raw is None else json_or_text(raw)
    return _Reply(status, found, read_error(status, found).message if status != 200 else "")


def _failed(options: ApiOptions, what: str, outcome: Outcome) -> AdaptersFailed:
    return AdaptersFailed(one_line(options, what), outcome)
