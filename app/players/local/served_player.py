"""A local model served by an engine beside the workers: called over HTTP, sampled as its row says.

`players.api` builds requests and reads answers, as with any other server. Text on its way to the engine is treated as
by the worker's own engine: the marks of this model's tokenizer are broken in it.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from app.core.errors import Invalid, Phrase
from app.games import find_game
from app.games.base import JSON, View
from app.inference.reasoning import before_stop
from app.inference.requests import STOP, STOP_STRING, Sampling
from app.inference.server_tokens import REQUEST_FIELDS, read_tokens
from app.players import prompts
from app.players.api.options import ApiOptions
from app.players.api.options import read_options as read_api_options
from app.players.api.player import ApiPlayer, Exchange
from app.players.base import MOST_TOKENS, ChatSampling, Generation, PlayerSpec, Refused
from app.players.local import vllm_adapters
from app.players.local.options import TEMPLATE_ROOM, LocalOptions, read_options
from app.players.local.serving import LLAMA_CPP, TRANSFORMERS, ServedModel, marks_of, read_served
from training.marks import broken_chat

_TIMEOUT = 600  # seconds per attempt; the command that watches an engine ends one that hangs long before
_LEAST_SHARE = 1e-6
_KEPT = ("finish_reason", "characters_before_cut", "left_out", "refused")  # from the record of the API player


@dataclass(frozen=True, slots=True)
class ServedPlayer:
    """A checkpoint with its sampling, at an engine's address."""

    name: str
    options: LocalOptions
    served: ServedModel
    _asked: dict[tuple[Sampling, int], ApiOptions] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def at_once(self) -> int:
        """How many replies may be under way."""
        return self.served.at_once(self.options.in_flight)

    async def reply(
        self, view: View, prompt: JSON, refused: Sequence[Refused] = (), seed: str | None = None
    ) -> Generation:
        """Ask for a move."""
        sampling = ChatSampling(max_tokens=self.options.max_tokens or find_game(view.game).most_tokens)
        return await self.complete(prompts.messages(view, prompt, refused), sampling, seed)

    async def complete(
        self,
        messages: list[dict[str, str]],
        sampling: ChatSampling = ChatSampling(),  # noqa: B008 - it cannot change
        seed: str | None = None,
    ) -> Generation:
        """Ask for the next message of a chat, with the marks of prompts in it broken.

        `sampling` of the generation says how and by which engine it was sampled, and why it ended; if the engine
        returns the tokens of an answer, they are stored as those of the worker's own engine are. Raises PlayerFailed.
        """
        used, most = self.options.sampling(sampling), sampling.max_tokens or self.options.max_tokens or MOST_TOKENS
        key = used, most
        if (options := self._asked.get(key)) is None:
            options = self._asked[key] = request_options(self.options, self.served, used, most)
        if seed is not None and self.served.engine != TRANSFORMERS:  # there it would seed all answers under way
            options = replace(options, seed=int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "little") >> 1)
        broken = broken_chat(messages, marks_of(self.served.tokenizer.marks))
        asked = ChatSampling(max_tokens=most)
        if self.served.is_adapter:
            exchange = await self._exchange_with_adapters(options, broken, asked)
        else:
            exchange = await ApiPlayer(self.name, options).exchange(broken, asked)
        return replace(exchange, generation=self._generation(exchange, used, most + options.reasoning_room)).move()

    async def _exchange_with_adapters(
        self, options: ApiOptions, messages: list[dict[str, str]], sampling: ChatSampling
    ) -> Exchange:
        """Have the engine load the adapters before the call, and once more if it has lost them since."""
        player = ApiPlayer(self.name, options)
        try:
            await vllm_adapters.ensure_loaded(options, Path(self.options.path), self.options.sha256)
            began = time.monotonic()
            exchange = await player.exchange(messages, sampling)
            if exchange.outcome == "denied" and await vllm_adapters.were_forgotten(options, began):
                await vllm_adapters.ensure_loaded(options, Path(self.options.path), self.options.sha256)
                exchange = await player.exchange(messages, sampling)
        except vllm_adapters.AdaptersFailed as failed:
            what = str(failed)
            call = Generation(messages, None, self.name, {}, None, None, 0, 0, what, outcome=failed.outcome)
            return Exchange(call, failed.outcome)
        return exchange

    def _generation(self, exchange: Exchange, used: Sampling, most: int) -> Generation:
        """The call in the form in which calls of the worker's own engine are stored, with the engine that made it."""
        recorded: JSON = {name: value for name, value in used._asdict().items() if value is not None}
        if self.options.template_arguments:
            recorded["template_arguments"] = self.options.template_arguments
        if self.options.stop:
            recorded["stop"] = [*self.options.stop]
        recorded |= {"max_new_tokens": most, "engine": self.served.engine, "server": self.served.base_url}
        if self.served.dtype is not None:
            recorded["dtype"] = self.served.dtype
        found = exchange.generation
        recorded |= {name: found.sampling[name] for name in _KEPT if name in found.sampling}
        if used.no_repeat_ngram is not None and self.served.engine != TRANSFORMERS:
            recorded["refused"] = [*recorded.get("refused", ()), "no_repeat_ngram"]
        if exchange.answer is None:
            return replace(found, model=self.name, sampling=recorded)
        found = replace(found, model=f"{self.name}@{self.options.sha256[:12]}", sampling=recorded)
        if self.served.engine == TRANSFORMERS and found.text is not None:
            text = before_stop(found.text, self.options.stop)
            if text != found.text:
                recorded["finish_reason"] = STOP_STRING
                return replace(found, text=text)
        tokens = read_tokens(exchange.body)
        # With reasoning, it is unknown which tokens are the move's.
        if tokens is None or found.reasoning is not None or recorded.get("finish_reason") != STOP:
            return found
        recorded |= {"tokenizer": self.served.tokenizer.sha256, "prompt_sha256": tokens.prompt_sha256}
        return replace(found, token_ids=tokens.ids, log_probs=tokens.log_probs)


def request_options(options: LocalOptions, served: ServedModel, used: Sampling, most: int) -> ApiOptions:
    """The options for requesting an answer of `most` tokens from an engine, besides its reasoning. Raises Invalid."""
    room = options.reasoning_room
    if room is None:
        room = TEMPLATE_ROOM if served.tokenizer.lets_reason else 0
    extra = _engine_fields(served, used, most + room)
    if options.template_arguments:
        extra["chat_template_kwargs"] = options.template_arguments
    raw = {
        "model": served.model, "base_url": served.base_url, "key_env": "", "timeout": _TIMEOUT, "extra": extra,
        "temperature": used.temperature, "top_p": _top_p(used), "max_tokens": most, "reasoning_room": room,
        "in_flight": served.at_once(options.in_flight),
        # transformers serve fails on a stop string: it does not pass its tokenizer to the code that looks for it.
        "stop": () if served.engine == TRANSFORMERS else options.stop,
    }  # fmt: skip
    return read_api_options(raw)


def _engine_fields(served: ServedModel, used: Sampling, most: int) -> dict[str, Any]:
    """The fields of a request besides OpenAI's. All are sent, because engines have defaults of their own, and take
    others from the checkpoint's generation_config.json.
    """
    ends = [*served.tokenizer.ends]
    if served.engine == TRANSFORMERS:  # it refuses other fields; the rest of its config would be the checkpoint's
        config = {
            "do_sample": used.temperature > 0, "top_k": used.top_k or 0, "top_p": _top_p(used),
            "temperature": used.temperature or 1.0, "max_new_tokens": most, "eos_token_id": ends,
            "pad_token_id": ends[0] if ends else None,
        }  # fmt: skip
        if used.no_repeat_ngram is not None:
            config["no_repeat_ngram_size"] = used.no_repeat_ngram
        return {"generation_config": json.dumps(config)}
    if served.engine == LLAMA_CPP:
        return {"top_k": used.top_k or 0, "min_p": 0.0, "typical_p": 1.0, "repeat_penalty": 1.0}
    neutral = {"top_k": used.top_k or -1, "min_p": 0.0, "repetition_penalty": 1.0}
    return {**neutral, "stop_token_ids": ends, **REQUEST_FIELDS}


def _top_p(used: Sampling) -> float:
    """Top-p as engines accept it: above zero."""
    return 1.0 if used.top_p is None else max(used.top_p, _LEAST_SHARE)


def make(spec: PlayerSpec) -> ServedPlayer:
    """The player of a registry row whose model plays through its engine. Raises Invalid."""
    served = read_served(spec.served)
    if spec.served == {}:
        raise Invalid(
            "play_with",
            expected=Phrase("a server of its own, or a vLLM that serves its base and takes adapters"),
            got=Phrase("neither"),
            remedy=Phrase(
                "`flask model serve %(name)s` serves it; `flask model edit %(name)s --play-with worker` does without",
                name=spec.name,
            ),
        )
    if served is None:
        raise Invalid(
            "served",
            expected=Phrase("an engine that this version of Parlor knows"),
            got=Phrase("another one"),
            remedy=Phrase("`flask model serve %(name)s` serves it again", name=spec.name),
        )
    return ServedPlayer(spec.name, read_options(spec.options), served)
