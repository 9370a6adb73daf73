"""A language model behind an OpenAI-compatible HTTP API: the vendor's own, vLLM, `transformers serve` and the like.

Retries, their back-off and `Retry-After` are the SDK's work; what is read from an answer is read here, from the
documented form of a chat completion, because servers differ in what they leave out. The key is looked up in the
environment for each call and lives no longer than the call.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI, Timeout, omit

from app.games.base import JSON, View
from app.players import prompts
from app.players.api_options import Options, read_options
from app.players.base import Generation, PlayerFailed, PlayerSpec, Refused

LONGEST_ERROR = 300  # characters
_MOST_TOKENS = {"negotiation": 200, "taboo": 256}  # the papers' limits of one move; Source: docs/papers.md
_MOST_TOKENS_ELSEWHERE = 256
_CONNECT_SECONDS = 10.0  # a server that is there accepts sooner, whatever the answer takes
_KEY = re.compile(r"[\x21-\x7e]+")
_LIKE_A_KEY = re.compile(
    r"[Bb]earer\s+\S+|(?<![A-Za-z0-9])(?:(?:[spr]k-|gsk_|hf_|xai-|nvapi-)[\w*.-]{8,}|AIza[\w*-]{8,})"
)
_WORD = re.compile(r"[^\s\"'`,;:()<>\[\]{}]+")
_PIECE = 8  # this many characters of the key in a row are taken for the key


@dataclass(frozen=True, slots=True)
class _Answer:
    text: str
    model: str
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    retries: int


@dataclass(frozen=True, slots=True)
class _NoAnswer:
    """Returned instead of raised, so that no traceback reaches from PlayerFailed to the request and its key."""

    reason: str
    retries: int = 0


@dataclass(frozen=True, slots=True)
class ApiPlayer:
    """A model at one address, with its sampling. Any number of replies may be under way on the event loop."""

    name: str
    options: Options

    async def reply(self, view: View, prompt: JSON, refused: Sequence[Refused] = ()) -> Generation:
        """Ask for a move. No content is the text "", which a game's parser refuses like any bad move.

        `sampling` of the generation is what was sent, and the server's `finish_reason`; `model` is the name that
        the server gives itself. Raises PlayerFailed.
        """
        messages = prompts.messages(view, prompt, refused)
        sampling = self._sampling(view.game)
        started = time.perf_counter()
        answer = await self._ask(messages, sampling)
        latency = time.perf_counter() - started
        asked = Generation(messages, None, self.options.model, sampling, None, None, latency, answer.retries)
        if isinstance(answer, _NoAnswer):
            raise PlayerFailed(answer.reason, replace(asked, error=answer.reason))
        return replace(
            asked,
            text=answer.text,
            model=answer.model,
            sampling={**sampling, "finish_reason": answer.finish_reason},
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
        )

    async def _ask(self, messages: list[dict[str, str]], sampling: JSON) -> _Answer | _NoAnswer:
        key = os.environ.get(self.options.key_env, "").strip() if self.options.key_env else ""
        if self.options.key_env and not _KEY.fullmatch(key):
            return self._failed(
                f"expected a key in the environment variable {self.options.key_env},"
                f" got {'characters that no key has' if key else 'none'}; set it where the workers run, or the option"
                ' key_env to "" for a server without keys'
            )
        try:
            raw = await self._completions(key).create(
                model=self.options.model,
                messages=messages,
                **{name: value for name, value in sampling.items() if name != "extra"},
                extra_body=self.options.extra or None,
                extra_headers=None if key else {"Authorization": omit},
            )
        except APIError as error:
            retries = int(error.request.headers.get("x-stainless-retry-count", 0))
            return self._failed(f"{_what_happened(error, self.options.timeout)} (retries: {retries})", key, retries)
        return self._read(raw.http_response, raw.retries_taken, key)

    def _completions(self, key: str) -> Any:
        client = _client(self.options.base_url).with_options(
            api_key=key or None,
            organization=self.options.organisation,
            max_retries=self.options.retries,
            timeout=Timeout(self.options.timeout, connect=min(self.options.timeout, _CONNECT_SECONDS)),
        )
        return client.chat.completions.with_raw_response

    def _sampling(self, game: str) -> JSON:
        options = self.options
        most = options.max_tokens or _MOST_TOKENS.get(game, _MOST_TOKENS_ELSEWHERE)
        sent: JSON = {"temperature": options.temperature, "top_p": options.top_p, "seed": options.seed}
        sent = {name: value for name, value in sent.items() if value is not None}
        return {**sent, options.token_field: most, **({"extra": options.extra} if options.extra else {})}

    def _read(self, response: Any, retries: int, key: str) -> _Answer | _NoAnswer:
        try:
            body = json.loads(response.content)
        except (ValueError, RecursionError):
            return self._failed(f"expected a chat completion, got {response.text[:120]!r}", key, retries)
        choices = body.get("choices") if isinstance(body, dict) else None
        if not isinstance(choices, list):
            return self._failed(f"expected a chat completion with choices, got {_words(body)}", key, retries)
        choice = _mapping(choices[0]) if choices else {}
        content = _mapping(choice.get("message")).get("content")
        usage = _mapping(body.get("usage"))
        return _Answer(
            text=content if isinstance(content, str) else "",
            model=_text(body.get("model")) or self.options.model,
            finish_reason=_text(choice.get("finish_reason")),
            prompt_tokens=_count(usage.get("prompt_tokens")),
            completion_tokens=_count(usage.get("completion_tokens")),
            retries=retries,
        )

    def _failed(self, what: str, key: str = "", retries: int = 0) -> _NoAnswer:
        line = f"{self.options.model} at {self.options.base_url}: {what}"
        line = "".join(character if character.isprintable() else " " for character in line)
        line = _without_key(" ".join(line.split()), key)
        return _NoAnswer(line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 1] + "…", retries)


def make(spec: PlayerSpec) -> ApiPlayer:
    """The player of a registry row. Raises Invalid for an option that is unknown or out of range."""
    return ApiPlayer(spec.name, read_options(spec.options))


# One client an event loop and address: making one costs 20 ms, and its open connections belong to the loop.
_clients: dict[tuple[asyncio.AbstractEventLoop, str], AsyncOpenAI] = {}


def _client(base_url: str) -> AsyncOpenAI:
    loop = asyncio.get_running_loop()
    client = _clients.get((loop, base_url))
    if client is None:
        for known in list(_clients):
            if known[0].is_closed():
                _clients.pop(known, None)
        # The key comes with each call; the SDK wants some key here.
        client = _clients[loop, base_url] = AsyncOpenAI(api_key="comes-with-the-call", base_url=base_url)
    return client


# ---- What went wrong ----------------------------------------------------------


def _what_happened(error: APIError, timeout: float) -> str:
    match error:
        case APITimeoutError():
            return f"expected an answer within {timeout:g} s, got none"
        case APIConnectionError():
            cause = error.__cause__
            return f"expected a connection, got {type(cause).__name__}: {cause}"
        case APIStatusError():
            return f"expected an answer, got HTTP {error.status_code}: {_words(error.body)}"
        case _:
            return f"expected an answer, got {type(error).__name__}: {error.message}"


def _words(body: object) -> str:
    """What a vendor says went wrong: its message where there is one, else all of its answer."""
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    message = inner.get("message") if isinstance(inner, Mapping) else inner
    return message if isinstance(message, str) else json.dumps(body, default=str)


def _without_key(text: str, key: str) -> str:
    """The text with whatever is, or looks like, the key or a part of it blacked out."""
    pieces = {key[at : at + _PIECE] for at in range(len(key) - _PIECE + 1)} or {key}

    def blacken(word: re.Match[str]) -> str:
        found = word[0] == key or (len(word[0]) >= _PIECE and any(piece and piece in word[0] for piece in pieces))
        return "[key]" if found else word[0]

    return _WORD.sub(blacken, _LIKE_A_KEY.sub("[key]", text))


# ---- Reading ------------------------------------------------------------------


def _mapping(raw: object) -> Mapping[str, Any]:
    return raw if isinstance(raw, dict) else {}


def _text(raw: object) -> str | None:
    return raw if isinstance(raw, str) and raw else None


def _count(raw: object) -> int | None:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0 else None
