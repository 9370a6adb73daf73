"""A language model behind an OpenAI-compatible HTTP API: the vendor's own, vLLM, `transformers serve` and the like.

How a request gets there and what its failures mean is the business of `sending` and `client`; what is read from an
answer is read here, from the documented form of a chat completion, because servers differ in what they leave out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.games import find_game
from app.games.base import JSON, View
from app.players import prompts
from app.players.api.client import ChatFailure, ChatResponse, count
from app.players.api.options import ApiOptions, read_options
from app.players.api.sending import send
from app.players.base import MOST_TOKENS, ChatSampling, Generation, PlayerFailed, PlayerSpec, Refused
from training.marks import broken_chat

MOST_CHARACTERS = 8  # of a token on average: no vocabulary has longer ones in what people write


@dataclass(frozen=True, slots=True)
class _RequestTemplate:
    """What all requests with the same sampling share: it as it is recorded, and the body but for the chat."""

    sampling: JSON
    begin: str
    most_tokens: int


@dataclass(frozen=True, slots=True)
class ApiPlayer:
    """A model at one address, with its sampling. Any number of replies may be under way on the event loop.

    Players of one model share its connections and its limits.
    """

    name: str
    options: ApiOptions
    _templates: dict[ChatSampling, _RequestTemplate] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def at_once(self) -> int:
        """How many replies may be under way; more would only wait for each other."""
        return self.options.in_flight

    async def reply(
        self,
        view: View,
        prompt: JSON,
        refused: Sequence[Refused] = (),
        seed: str | None = None,  # noqa: ARG002 - the server draws
    ) -> Generation:
        """Ask for a move. No content is the text "", which a game's parser refuses like any bad move."""
        sampling = ChatSampling(max_tokens=self.options.max_tokens or find_game(view.game).most_tokens)
        return await self._ask(prompts.messages(view, prompt, refused), sampling)

    async def complete(
        self,
        messages: list[dict[str, str]],
        sampling: ChatSampling = ChatSampling(),  # noqa: B008 - it cannot change
        seed: str | None = None,  # noqa: ARG002 - the server draws
    ) -> Generation:
        """Ask for the next message of a chat, in which marks of prompts are broken.

        `sampling` of the generation is what was sent, the server's `finish_reason`, and of an answer that was cut, as
        it was longer than its limit of tokens allows, `characters_before_cut`; `model` is the name that the server
        gives itself. Raises PlayerFailed.
        """
        return await self._ask(broken_chat(messages), sampling)

    async def _ask(self, messages: list[dict[str, str]], sampling: ChatSampling) -> Generation:
        template = self._templates.get(sampling)
        if template is None:
            template = self._templates[sampling] = _template(self.options, sampling)
        body = f"{template.begin}{json.dumps(messages)}}}".encode()
        found = await send(self.options, body, template.most_tokens)
        sent = dict(template.sampling)
        if isinstance(found, ChatFailure):
            asked = Generation(
                messages, None, self.options.model, sent, None, None, found.latency, found.retries, found.what
            )
            raise PlayerFailed(found.what, asked, found.kind)
        return self._read_completion(found, messages, sent, template.most_tokens * MOST_CHARACTERS)

    def _read_completion(
        self, answer: ChatResponse, messages: list[dict[str, str]], sampling: JSON, most: int
    ) -> Generation:
        """The answer, cut after `most` characters, because answers enter prompts and servers may ignore the limit."""
        choices = answer.body["choices"]
        choice = _mapping(choices[0]) if choices else {}
        content = _mapping(choice.get("message")).get("content")
        text = content if isinstance(content, str) else ""
        usage = _mapping(answer.body.get("usage"))
        sampling["finish_reason"] = _text_or_none(choice.get("finish_reason"))
        if len(text) > most:
            sampling["characters_before_cut"] = len(text)
        return Generation(
            prompt=messages,
            text=text[:most],
            model=_text_or_none(answer.body.get("model")) or self.options.model,
            sampling=sampling,
            prompt_tokens=count(usage.get("prompt_tokens")),
            completion_tokens=count(usage.get("completion_tokens")),
            latency=answer.latency,
            retries=answer.retries,
        )


def make(spec: PlayerSpec) -> ApiPlayer:
    """The player of a registry row. Raises Invalid for an option that is unknown or out of range."""
    return ApiPlayer(spec.name, read_options(spec.options))


def _template(options: ApiOptions, sampling: ChatSampling) -> _RequestTemplate:
    most = sampling.max_tokens or options.max_tokens or MOST_TOKENS
    sent: JSON = {
        "temperature": options.temperature if sampling.temperature is None else sampling.temperature,
        "top_p": options.top_p if sampling.top_p is None else sampling.top_p,
        "seed": options.seed,
    }
    sent = {name: value for name, value in sent.items() if value is not None} | {options.token_field: most}
    body = json.dumps({"model": options.model, **sent, **options.extra})
    recorded = {**sent, **({"extra": options.extra} if options.extra else {})}
    return _RequestTemplate(recorded, f'{body[:-1]}, "messages": ', most)


# ---- Reading ------------------------------------------------------------------


def _mapping(raw: object) -> Mapping[str, Any]:
    return raw if isinstance(raw, dict) else {}


def _text_or_none(raw: object) -> str | None:
    return raw if isinstance(raw, str) and raw else None
