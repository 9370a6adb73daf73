"""A local checkpoint as a player: any causal language model in a folder, whether trained by us or not.

`inference` runs the model, and is called here as a server would be. It is sent what a trainer makes of the same chat
(`training.rendering`), so the model plays as it was trained.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.core.failures import CONSEQUENCES
from app.games import find_game
from app.games.base import JSON, View
from app.inference import engines
from app.inference.requests import LENGTH, Checkpoint, Completion, GenerationFailure, GenerationRequest
from app.players import prompts
from app.players.base import MOST_TOKENS, URGENT, ChatSampling, Generation, PlayerFailed, PlayerSpec, Refused
from app.players.local.options import TEMPLATE_ROOM, LocalOptions, read_options
from training.marks import RENDERER, broken_chat


@dataclass(frozen=True, slots=True)
class LocalPlayer:
    """A checkpoint with its sampling. Players of one checkpoint share the model, and are batched together."""

    name: str
    options: LocalOptions

    @property
    def at_once(self) -> int:
        """How many replies may be under way; they are made together."""
        return self.options.in_flight

    @property
    def checkpoint(self) -> Checkpoint:
        """The weights that answer, with their device and dtype."""
        return Checkpoint(Path(self.options.path), self.options.sha256, self.options.device, self.options.dtype)

    async def is_loaded(self) -> bool:
        """Whether its checkpoint is in memory, so that a reply does not wait for that."""
        return await engines.is_loaded(self.checkpoint)

    @property
    def _reasoning_room(self) -> int:
        """Tokens for reasoning in addition to those of a move, if there is room for any."""
        room = self.options.reasoning_room
        return TEMPLATE_ROOM if room is None else room

    async def reply(
        self, view: View, prompt: JSON, refused: Sequence[Refused] = (), seed: str | None = None
    ) -> Generation:
        """Ask for a move."""
        sampling = ChatSampling(max_tokens=self.options.max_tokens or find_game(view.game).most_tokens)
        return await self._generate_answer(
            prompts.messages(view, prompt, refused), sampling, seed, prompts.renderer_of(prompt)
        )

    async def complete(
        self,
        messages: list[dict[str, str]],
        sampling: ChatSampling = ChatSampling(),  # noqa: B008 - it cannot change
        seed: str | None = None,
    ) -> Generation:
        """Ask for the next message of a chat, with the marks of prompts in it broken.

        The same seed samples the same from the same model, up to rounding, whatever else is in the batch. `sampling` of
        the generation says how and where it was sampled, why it ended, which tokenizer its `token_ids` are from, and,
        by their hash, which tokens came before them. Raises PlayerFailed.
        """
        return await self._generate_answer(broken_chat(messages), sampling, seed, RENDERER)

    async def _generate_answer(
        self, messages: list[dict[str, str]], sampling: ChatSampling, seed: str | None, renderer: int
    ) -> Generation:
        options = self.options
        most = sampling.max_tokens or options.max_tokens or MOST_TOKENS
        used = options.sampling(sampling)
        loop = asyncio.get_running_loop()
        request = GenerationRequest(
            messages, used, most, seed, loop, loop.create_future(), renderer, options.template_arguments,
            room=self._reasoning_room, room_if_needed=options.reasoning_room is None, urgent=URGENT.get(),
            stop=list(options.stop),
        )  # fmt: skip
        completion = await engines.complete(self.checkpoint, request, options.in_flight)
        recorded: JSON = {name: value for name, value in used._asdict().items() if value is not None}
        if options.stop:
            recorded["stop"] = list(options.stop)
        if options.template_arguments:
            recorded["template_arguments"] = options.template_arguments
        if isinstance(completion, GenerationFailure):
            what = f"{self.name}: {completion.what}"
            recorded["max_new_tokens"] = most
            asked = Generation(messages, None, self.name, recorded, None, None, 0, 0, what)
            raise PlayerFailed(what, asked, completion.kind)
        has_move = bool(completion.text) or not (completion.reasoning or _is_cut_in_reasoning(completion))
        generation = Generation(
            prompt=messages,
            text=completion.text if has_move else None,
            model=f"{self.name}@{options.sha256[:12]}",
            sampling=recorded
            | {
                "max_new_tokens": completion.most,
                "finish_reason": completion.finish,
                "device": completion.device,
                "dtype": completion.dtype,
                "tokenizer": completion.tokenizer,
                "prompt_sha256": completion.prompt_sha256,
            },
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=len(completion.ids),
            latency=completion.seconds,
            retries=0,
            token_ids=completion.ids,
            log_probs=completion.log_probs,
            reasoning=completion.reasoning or None,
            reasoning_tokens=completion.reasoning_tokens or None,
            outcome="move" if has_move else "no_room",
        )
        if not has_move:
            what = f"{self.name}: the model wrote no move after its reasoning; {self._advice(completion)}"
            consequence = CONSEQUENCES["no_room"]
            raise PlayerFailed(what, replace(generation, error=what), consequence.kind, consequence.fault)
        return generation

    def _advice(self, completion: Completion) -> str:
        """What to do about reasoning that left no room for a move."""
        room = completion.most - completion.most_of_move
        if 0 < room < self._reasoning_room and completion.finish == LENGTH:
            return (
                f"its length leaves {completion.most:,} tokens beside a prompt of {completion.prompt_tokens:,}: prompt"
                " it in fewer words, or set the model's option reasoning to off"
            )
        return (
            f"raise the limit by the model's option reasoning_room ({room:,} now): this model reasons for"
            f" {completion.reasoning_tokens:,} tokens a move or more"
        )


def _is_cut_in_reasoning(completion: Completion) -> bool:
    return completion.reasoning is not None and completion.finish == LENGTH


def make(spec: PlayerSpec) -> LocalPlayer:
    """The player of a registry row. Raises Invalid for an option that is unknown or out of range."""
    return LocalPlayer(spec.name, read_options(spec.options))
