"""Checks that the web process for bots is available."""

import aiohttp

from app.core.errors import AppError

_SECONDS = aiohttp.ClientTimeout(total=10)


async def check_server(address: str) -> None:
    """Raises AppError, with what to do, if no Parlor web process answers at an address."""
    try:
        async with aiohttp.ClientSession(timeout=_SECONDS) as client, client.get(f"{address}/healthz") as answer:
            if answer.status == 200:
                return
            got = f"status {answer.status}"
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        got = f"none ({type(error).__name__})"
    raise AppError(f"expected an answer of the web process at {address}, got {got}; start it, or set WEB_URL")
