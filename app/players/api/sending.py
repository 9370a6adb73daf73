"""Send a request to the server of an API model, with the model's key and within its limits.

The key is looked up in the environment for each call and kept no longer than the call.
"""

import os

from aiohttp import ClientTimeout

from app.players.api.client import (
    CHAT,
    CONNECT_SECONDS,
    ChatFailure,
    ChatRequest,
    ChatResponse,
    Endpoint,
    client,
)
from app.players.api.keys import KeyRefused, read_key
from app.players.api.options import ApiOptions
from app.players.api.redaction import without_key

LONGEST_ERROR = 300  # characters
_BYTES_A_TOKEN = 4  # in a request, roughly; the server's answer has the exact count


async def send(
    options: ApiOptions, body: bytes, most_tokens: int, endpoint: Endpoint = CHAT
) -> ChatResponse | ChatFailure:
    """Send a request until it is answered, refused, or out of retries; its answer has at most `most_tokens`.

    A failure is one line that can be shown.
    """
    try:
        key = read_key(options)
    except KeyRefused as refused:
        return _clean_failure(options, ChatFailure(refused.message, "denied"))
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if organisation := options.organisation or os.environ.get("OPENAI_ORG_ID"):
        headers["OpenAI-Organization"] = organisation
    if project := os.environ.get("OPENAI_PROJECT_ID"):
        headers["OpenAI-Project"] = project
    timeout = ClientTimeout(options.timeout, sock_connect=min(options.timeout, CONNECT_SECONDS))
    call = ChatRequest(body, headers, len(body) // _BYTES_A_TOKEN + most_tokens, timeout, options.retries)
    server = client(options.base_url, endpoint)
    # Another key or organisation is another account, with its own limits.
    whose = (options.model, options.key_env, options.organisation)
    found = await server.complete(call, server.limits(whose, options.in_flight, options.tokens_per_minute))
    if isinstance(found, ChatFailure):
        return _clean_failure(options, found._replace(what=f"{found.what} (retries: {found.retries})"), key)
    return found


def _clean_failure(options: ApiOptions, failure: ChatFailure, key: str = "") -> ChatFailure:
    return failure._replace(what=one_line(options, failure.what, key))


def one_line(options: ApiOptions, said: str, key: str = "") -> str:
    """A message of a model's server as one short line of printable characters, without the key."""
    line = f"{options.model} at {options.base_url}: {said}"
    line = "".join(character if character.isprintable() else " " for character in line)
    line = without_key(" ".join(line.split()), key)
    return line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 1] + "…"
