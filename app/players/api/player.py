"""A language model behind an OpenAI-compatible HTTP API: the vendor's own, vLLM, `transformers serve` and the like.

`sending` and `client` send requests, `answers` reads the answers, and `server_errors` interprets errors. This module
turns a game or a chat into a request, and an answer into a generation or a failure.
"""

import json
import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from app.core.failures import CONSEQUENCES, Outcome
from app.games import find_game
from app.games.answers import answer_schema
from app.games.base import JSON, View
from app.players import prompts
from app.players.api.answers import Answer, read_answer
from app.players.api.client import ChatFailure, ChatResponse
from app.players.api.learning import asked_differently, option_to_change, remember
from app.players.api.options import ApiOptions, read_options
from app.players.api.reasoning import reasoning_fields
from app.players.api.sending import one_line, send
from app.players.api.server_errors import FORMAT_FIELD
from app.players.api.server_findings import sampling_state
from app.players.api.structured import response_format
from app.players.base import MOST_TOKENS, ChatSampling, Generation, PlayerFailed, PlayerSpec, Refused, priced
from training.marks import broken_chat

MOST_CHARACTERS = 8  # per token on average: no vocabulary has longer tokens in what people write
_LONGEST_NAME = 200  # characters of a server's name for a model


@dataclass(frozen=True, slots=True)
class _RequestTemplate:
    """What all requests with the same sampling share: the sampling as it is recorded, and the body except for the
    chat.
    """

    sampling: JSON
    begin: str
    most_tokens: int  # for the move and the reasoning before it
    move_tokens: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """A chat that was sent, and its outcome: the call as it is stored, and the answer, if any."""

    generation: Generation
    outcome: Outcome
    answer: Answer | None = None
    body: JSON = field(default_factory=dict)  # as sent by the server

    def move(self) -> Generation:
        """The call, if its answer is a move. Raises PlayerFailed."""
        if self.outcome == "move":
            return self.generation
        consequence = CONSEQUENCES[self.outcome]
        raise PlayerFailed(str(self.generation.error), self.generation, consequence.kind, consequence.fault)


@dataclass(slots=True)
class ApiPlayer:
    """A model at one address, with its sampling. Any number of replies may be under way on the event loop.

    Players of one model share its connections and its limits. `options` change where the server refuses a field.
    """

    name: str
    options: ApiOptions
    _templates: dict[tuple[object, ...], _RequestTemplate] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _reasoned: deque[int] = field(  # reasoning tokens of the latest moves
        default_factory=lambda: deque(maxlen=100), init=False, repr=False, compare=False
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
        """Ask for a move. A model that had room and wrote nothing made the move "", which a game's parser refuses."""
        game = find_game(view.game)
        schema = answer_schema(game, view) if prompts.asks_for_json(prompt) else None
        sampling = ChatSampling(max_tokens=self.options.max_tokens or game.most_tokens, answer_schema=schema)
        return await self._ask_for_generation(prompts.messages(view, prompt, refused), sampling)

    async def complete(
        self,
        messages: list[dict[str, str]],
        sampling: ChatSampling = ChatSampling(),  # noqa: B008 - it cannot change
        seed: str | None = None,  # noqa: ARG002 - the server draws
    ) -> Generation:
        """Ask for the next message of a chat, with the marks of prompts in it broken.

        `sampling` of the generation is what was sent, the fields that the server `refused`, the `sampling_state` of the
        temperature, the server's `finish_reason`, and, for an answer that was cut because it was longer than its token
        limit allows, `characters_before_cut`; `model` is the server's own name for it. Raises PlayerFailed.
        """
        return await self._ask_for_generation(broken_chat(messages), sampling)

    async def exchange(self, messages: list[dict[str, str]], sampling: ChatSampling) -> "Exchange":
        """Send a chat unchanged, without the fields that the server refuses, and read the response. Raises nothing."""
        before = options = self.options
        while True:
            template = self._template(options, sampling)
            found = await send(options, f"{template.begin}{json.dumps(messages)}}}".encode(), template.most_tokens)
            different = asked_differently(options, before, found) if isinstance(found, ChatFailure) else None
            if different is None:
                break
            options = different
        if isinstance(found, ChatFailure):
            asked = _generation(self.options, template, messages, found, None, found.outcome)
            what = f"{found.what}{option_to_change(options, found)}"
            return Exchange(replace(asked, error=what), found.outcome)
        if options != before:
            self.options = options
            remember(options)
        answer = read_answer(found.body)
        generation = _generation(self.options, template, messages, found, answer, answer.outcome)
        if answer.outcome != "move":
            what = one_line(self.options, f"{answer.why}{self._advice(generation)}")
            return Exchange(replace(generation, error=what), answer.outcome, answer, found.body)
        if generation.reasoning_tokens:
            self._reasoned.append(generation.reasoning_tokens)
        return Exchange(generation, "move", answer, found.body)

    async def _ask_for_generation(self, messages: list[dict[str, str]], sampling: ChatSampling) -> Generation:
        return (await self.exchange(messages, sampling)).move()

    def _template(self, options: ApiOptions, sampling: ChatSampling) -> _RequestTemplate:
        key = (options.token_field, options.refused_fields, sampling)
        if (found := self._templates.get(key)) is None:
            found = self._templates[key] = _template(options, sampling)
        return found

    def _advice(self, generation: Generation) -> str:
        """What to do about a limit that left no room for a move; nothing for other outcomes."""
        if generation.outcome != "no_room":
            return ""
        known = statistics.mean(self._reasoned) if self._reasoned else 0
        tokens = round(max(known, generation.reasoning_tokens or generation.completion_tokens or 0))
        reasons = f": this model reasons for {tokens:,} tokens a move or more" if tokens else ""
        return f"; raise the limit by the model's option reasoning_room ({self.options.reasoning_room:,} now){reasons}"


def make(spec: PlayerSpec) -> ApiPlayer:
    """The player of a registry row. Raises Invalid for an option that is unknown or out of range."""
    return ApiPlayer(spec.name, read_options(spec.options))


def _template(options: ApiOptions, sampling: ChatSampling) -> _RequestTemplate:
    move = sampling.max_tokens or options.max_tokens or MOST_TOKENS
    most = move + options.reasoning_room
    wanted: JSON = {
        "temperature": options.temperature if sampling.temperature is None else sampling.temperature,
        "top_p": options.top_p if sampling.top_p is None else sampling.top_p,
        "seed": options.seed,
    }
    if sampling.answer_schema is not None:
        wanted[FORMAT_FIELD] = response_format(sampling.answer_schema, options.structured_form)
    wanted = {name: value for name, value in wanted.items() if value is not None}
    refused = [name for name in wanted if name in options.refused_fields]
    sent = {name: value for name, value in wanted.items() if name not in refused}
    sent |= {options.token_field: most, **reasoning_fields(options.reasoning, options.reasoning_form)}
    if options.stop:
        sent["stop"] = list(options.stop)
    body = json.dumps({"model": options.model, **sent, **options.extra})
    state = sampling_state(wanted, refused, options.sampling_state)
    recorded = {
        **sent,
        **({"sampling_state": state} if state else {}),
        **({"refused": refused} if refused else {}),
        **({"extra": options.extra} if options.extra else {}),
    }
    return _RequestTemplate(recorded, f'{body[:-1]}, "messages": ', most, move)


# ---- What came of a request ---------------------------------------------------------


def _generation(
    options: ApiOptions,
    template: _RequestTemplate,
    messages: list[dict[str, str]],
    found: ChatResponse | ChatFailure,
    answer: Answer | None,
    outcome: Outcome,
) -> Generation:
    """The call as it is stored; `answer` is None for one that failed.

    A text is cut at the most characters that its tokens can have, because answers enter prompts and servers may ignore
    the limit.
    """
    generation = Generation(
        messages, None, options.model, dict(template.sampling), None, None, found.latency, found.retries,
        outcome=outcome,
    )  # fmt: skip
    if answer is None:
        return generation
    most = template.move_tokens * MOST_CHARACTERS
    told = {
        "characters_before_cut": len(answer.text) if len(answer.text) > most else None,
        "fingerprint": answer.fingerprint,
        "provider": answer.provider,
        "left_out": list(answer.left_out) or None,
    }
    generation.sampling["finish_reason"] = answer.finish_reason
    generation.sampling.update({name: value for name, value in told.items() if value is not None})
    counted = replace(
        generation,
        text=answer.text[:most] if outcome == "move" else None,
        model=(answer.model or options.model)[:_LONGEST_NAME],
        prompt_tokens=answer.usage.prompt_tokens,
        completion_tokens=answer.usage.completion_tokens,
        cached_tokens=answer.usage.cached_tokens,
        cache_write_tokens=answer.usage.cache_write_tokens,
        reasoning=answer.reasoning,
        reasoning_tokens=answer.usage.reasoning_tokens,
    )
    return priced(counted, options.prices, answer.usage.cost)
