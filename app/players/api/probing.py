"""Find out how to call a model at an address, with a handful of short calls: which fields the server accepts, and what
its answers contain.

This relies on answers and refusals, never on a model's name. The first call asks for a move as a match does, again with
more room if reasoning left none; the others ask for a sum. What a later call does not reveal is left open.
"""

import asyncio
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

from app.games.base import JSON
from app.players.api.answers import Answer, mapping
from app.players.api.options import ApiOptions
from app.players.api.player import MOST_CHARACTERS, ApiPlayer, Exchange
from app.players.api.reasoning import EFFORT, OFF, REASONING, SERVER, SWITCH, TEMPLATE, THINKING, reasoning_fields
from app.players.api.server_errors import SAMPLING_FIELDS
from app.players.api.server_findings import (
    PROBE_SECONDS,
    REFUSED,
    UNVERIFIED,
    Extent,
    Reasoning,
    SamplingState,
    ServerFindings,
    Switch,
)
from app.players.base import ChatSampling, Generation
from training.marks import broken_chat

_CALL_SECONDS = 20.0  # for each call after the first
_ROOMS = (2_000, 8_000)  # tokens for reasoning, tried in turn where it left no room for a move
_SHORT = 64  # tokens for the answer to a sum
_MOST_ROOM = 4_000  # tokens for reasoning before the answer to a sum
_MOST_FORMS = 3  # of switching reasoning off
_STEP = 1_000  # tokens; rooms are multiples of it
_CHARACTERS_A_TOKEN = 4  # in reasoning whose tokens nobody counts
_HIDDEN = 64  # an answer with so many more tokens than characters must have had reasoning
_ALWAYS = re.compile(
    r"mandatory|cannot be (?:disabled|turned off|switched off)|does not support ['\"`]?(?:none|disabled|false)",
    re.IGNORECASE,
)
_CHAT = [{"role": "user", "content": "What is 17 times 24, less 13 times 31? Answer with the number alone."}]
_SCHEMA: JSON = {
    "type": "json_schema",
    "json_schema": {
        "name": "sum",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"result": {"type": "integer"}},
            "required": ["result"],
            "additionalProperties": False,
        },
    },
}


@dataclass(slots=True)
class ServerTest:
    """The calls of a test of one model, and their findings. `calls` are in the order in which they were made."""

    player: ApiPlayer
    calls: list[Generation] = field(default_factory=list)
    found: ServerFindings | None = None
    _unanswered: list[str] = field(default_factory=list)

    async def run(self, messages: list[dict[str, str]], sampling: ChatSampling, seconds: float) -> Generation:
        """Ask for a move within `seconds`, then find out the rest in PROBE_SECONDS.

        Returns the move's call. Raises PlayerFailed as a move does, and TimeoutError.
        """
        before = self.player.options.reasoning_room
        async with asyncio.timeout(seconds):
            first = await self._ask_for_move(broken_chat(messages), sampling)
        move = first.move()
        raised = self.player.options.reasoning_room > before
        rest = _Rest("hidden" if raised and _reasons(first) == "no" else _reasons(first))
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self._find_rest(rest, first.generation.prompt)
        except TimeoutError:
            self._unanswered.append(f"expected all answers of the test within {PROBE_SECONDS:g} s, got some of them")
        self.found = self._server_findings(first, rest, sampling, self.player.options.reasoning_room if raised else 0)
        return move

    async def _ask_for_move(self, messages: list[dict[str, str]], sampling: ChatSampling) -> Exchange:
        """Ask for a move, again with more room if reasoning left none for it."""
        rooms = iter([room for room in _ROOMS if room > self.player.options.reasoning_room])
        while True:
            found = self._record_call(await self.player.exchange(messages, sampling))
            room = next(rooms, None) if found.outcome == "no_room" else None
            if room is None:
                return found
            self._change_options(reasoning_room=room)

    def _change_options(self, **options: Any) -> None:
        self.player = ApiPlayer(self.player.name, replace(self.player.options, **options))

    def _record_call(self, found: Exchange) -> Exchange:
        self.calls.append(found.generation)
        return found

    async def _find_rest(self, rest: "_Rest", opening: list[dict[str, str]]) -> None:
        sum_reasons = await self._find_fields(rest)
        await self._find_structured_output(rest)
        if rest.reasons == "no":
            await self._find_way_to_reason(rest)
        else:
            await self._find_way_not_to_reason(rest, _CHAT if sum_reasons else opening)

    async def _probe(self, options: ApiOptions, what: str, chat: list[dict[str, str]] = _CHAT) -> Exchange:
        """Ask for a sum or another short answer, once, with these options."""
        short = replace(
            options,
            retries=0,
            timeout=min(options.timeout, _CALL_SECONDS),
            reasoning_room=min(options.reasoning_room, _MOST_ROOM),
        )
        player = ApiPlayer(self.player.name, short)
        found = self._record_call(await player.exchange(chat, ChatSampling(max_tokens=_SHORT)))
        # A field that this call was refused is refused in all calls.
        refused = dict.fromkeys((*self.player.options.refused_fields, *player.options.refused_fields))
        self._change_options(token_field=player.options.token_field, refused_fields=tuple(refused))
        if found.outcome not in ("move", "no_room") and not _is_refusal(found):
            self._unanswered.append(f"{what}: {found.generation.error}")
        return found

    async def _find_fields(self, rest: "_Rest") -> bool:
        """Try log-probabilities, top-p and a seed, without a temperature, which some servers do not accept beside
        top-p.

        Returns whether the model reasoned before the sum.
        """
        options = self.player.options
        sampled: dict[str, Any] = {
            "temperature": None,
            "top_p": options.top_p or 0.9,
            "seed": 7 if options.seed is None else options.seed,
        }
        extra = {**options.extra, "logprobs": True}
        found = await self._probe(replace(options, **sampled, extra=extra), "log-probabilities")
        if _is_refusal(found):
            rest.log_probs = "refused"
            found = await self._probe(replace(options, **sampled), "top-p and a seed")
        elif found.outcome == "move":
            choice = mapping((found.body.get("choices") or [None])[0])
            rest.log_probs = "yes" if mapping(choice.get("logprobs")).get("content") else "ignored"
        if found.outcome == "move":
            rest.sampled = ("top_p", "seed")
        return _reasons(found) != "no"

    async def _find_structured_output(self, rest: "_Rest") -> None:
        options = self.player.options
        if "response_format" in options.extra:
            return
        extra = {**options.extra, "response_format": _SCHEMA}
        found = await self._probe(replace(options, extra=extra), "structured output")
        if _is_refusal(found):
            rest.structured_output = "refused"
        elif found.outcome == "move":
            rest.structured_output = "yes" if _fits_schema(found.generation.text or "") else "ignored"

    async def _find_way_not_to_reason(self, rest: "_Rest", chat: list[dict[str, str]]) -> None:
        """Find a way to switch reasoning off, with a chat that the model reasons about; the row's form is tried
        first.
        """
        options = self.player.options
        rest.switch = "not found"
        for form in _forms(options):
            if not _can_be_sent(options, OFF, form):
                continue
            off = replace(options, reasoning=OFF, reasoning_form=form)
            found = await self._probe(off, "reasoning off", chat)
            if _is_refusal(found) and _ALWAYS.search(str(found.generation.error)):
                rest.switch, rest.form = "always", form
                return
            if found.outcome == "move" and _reasons(found) == "no":
                rest.switch, rest.form = "off", form
                return

    async def _find_way_to_reason(self, rest: "_Rest") -> None:
        """Try to make a model reason that does not by default."""
        options = self.player.options
        if options.reasoning not in (SERVER, OFF) or not _can_be_sent(options, "low", options.reasoning_form):
            return
        on = replace(options, reasoning="low", reasoning_room=max(options.reasoning_room, _ROOMS[0]))
        found = await self._probe(on, "reasoning on")
        rest.switch = "not found"
        if found.outcome in ("move", "no_room") and _reasons(found) != "no":
            rest.switch, rest.form = "on", options.reasoning_form

    def _server_findings(self, first: Exchange, rest: "_Rest", sampling: ChatSampling, raised: int) -> ServerFindings:
        answer, options = cast(Answer, first.answer), self.player.options  # the first answer is a move
        prompt = sum(each.prompt_tokens or 0 for each in self.calls)
        completion = sum(each.completion_tokens or 0 for each in self.calls)
        reasons = rest.reasons
        most = max(map(_reasoning_tokens, self.calls))
        return ServerFindings(
            at=datetime.now(UTC),
            token_field=options.token_field,
            keeps_limit=_keeps_limit(first, sampling, options),
            sampling=_sampling(options, rest),
            reasoning=reasons,
            reasoning_tokens=most if reasons != "no" else None,
            reasoning_switch=rest.switch,
            reasoning_form=rest.form,
            reasoning_room=None if reasons == "no" else max(raised, _enough(_reasoning_tokens(first.generation))),
            usage=answer.usage.completion_tokens is not None,
            cached_tokens=answer.usage.cached_tokens is not None,
            cost=answer.usage.cost is not None,
            log_probs=rest.log_probs,
            structured_output=rest.structured_output,
            streams=answer.streamed,
            model=answer.model,
            fingerprint=answer.fingerprint,
            provider=answer.provider,
            calls=len(self.calls),
            prompt_tokens=prompt,
            completion_tokens=completion,
            usd=_cost_of_calls(self.calls),
            unanswered=tuple(self._unanswered),
        )


@dataclass(slots=True)
class _Rest:
    """The findings of the calls after the first so far; `reasons` is the finding of the first."""

    reasons: Reasoning
    log_probs: Extent = "not tried"
    structured_output: Extent = "not tried"
    sampled: tuple[str, ...] = ()  # fields of calls that were answered, and refused fields that were left out
    switch: Switch = "not tried"
    form: str | None = None


def _is_refusal(found: Exchange) -> bool:
    """Whether the server refuses a field that this call has and earlier ones did not."""
    return found.outcome in ("misconfigured", "ask_again_differently")


def _reasons(found: Exchange) -> Reasoning:
    """Whether a model reasoned before its answer. If there are more tokens than characters, some were not shown."""
    answer, generation = found.answer, found.generation
    if answer is None:
        return "no"
    if answer.reasoning:
        return "yes"
    written = len(answer.text)
    hidden = generation.completion_tokens is not None and generation.completion_tokens > written + _HIDDEN
    return "hidden" if answer.usage.reasoning_tokens or hidden else "no"


def _reasoning_tokens(call: Generation) -> int:
    """The number of reasoning tokens, estimated if they are not counted."""
    if call.reasoning_tokens is not None:
        return call.reasoning_tokens
    if call.reasoning:
        return math.ceil(len(call.reasoning) / _CHARACTERS_A_TOKEN)
    hidden = (call.completion_tokens or 0) - len(call.text or "")
    return max(0, hidden) if hidden > _HIDDEN else 0


def _cost_of_calls(calls: Sequence[Generation]) -> float | None:
    """The cost of calls in USD; None if the cost of a call with an answer is unknown."""
    costs = [call.cost for call in calls if call.cost is not None or call.completion_tokens is not None]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) and known else None


def _enough(tokens: int) -> int:
    """Room for twice the observed reasoning, as moves differ."""
    return max(_ROOMS[0], math.ceil(2 * tokens / _STEP) * _STEP)


def _keeps_limit(first: Exchange, sampling: ChatSampling, options: ApiOptions) -> bool | None:
    """Whether an answer keeps to its limit; None if it was far from it."""
    limit = (sampling.max_tokens or 0) + options.reasoning_room
    tokens = first.generation.completion_tokens
    if len(first.answer.text if first.answer else "") > limit * MOST_CHARACTERS or (tokens or 0) > limit:
        return False
    return True if first.generation.sampling.get("finish_reason") == "length" else None


def _sampling(options: ApiOptions, rest: _Rest) -> dict[str, SamplingState]:
    sent = [*(["temperature"] if options.temperature is not None else []), *rest.sampled]
    found: dict[str, SamplingState] = dict.fromkeys(sent, UNVERIFIED)
    return {**found, **{name: REFUSED for name in options.refused_fields if name in SAMPLING_FIELDS}}


def _fits_schema(text: str) -> bool:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and set(found) == {"result"} and isinstance(found["result"], int)


def _can_be_sent(options: ApiOptions, reasoning: str, form: str) -> bool:
    """Whether no field of `extra` would be sent twice."""
    return not set(reasoning_fields(reasoning, form)) & set(options.extra)


def _forms(options: ApiOptions) -> Sequence[str]:
    """Forms in which reasoning may be switched off: that of the row first."""
    return list(dict.fromkeys((options.reasoning_form, EFFORT, TEMPLATE, THINKING, REASONING, SWITCH)))[:_MOST_FORMS]
