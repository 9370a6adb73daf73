"""A local checkpoint as a player: any causal language model in a folder, of our training or not.

The model itself is the business of `inference`, which is asked here as a server would be. What it is sent is what a
trainer makes of the same chat (`training.rendering`), so it plays as it was trained.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.games.base import JSON, View
from app.inference import scheduler
from app.inference.requests import Checkpoint, GenerationFailure, GenerationRequest, Sampling
from app.players import prompts
from app.players.base import Generation, PlayerFailed, PlayerSpec, Refused, most_tokens
from app.players.local.options import LocalOptions, read_options


@dataclass(frozen=True, slots=True)
class LocalPlayer:
    """A checkpoint with its sampling. Players of one checkpoint share the model, and are batched together."""

    name: str
    options: LocalOptions

    @property
    def at_once(self) -> int:
        """How many replies may be under way; they are made together."""
        return self.options.in_flight

    async def reply(
        self, view: View, prompt: JSON, refused: Sequence[Refused] = (), seed: str | None = None
    ) -> Generation:
        """Ask for a move. The same seed draws the same from the same model, up to rounding, beside whatever else.

        `sampling` of the generation says how and where it was drawn, why it ended, and of which tokenizer its
        `token_ids` are. Raises PlayerFailed.
        """
        options = self.options
        messages = prompts.messages(view, prompt, refused)
        most = options.max_tokens or most_tokens(view.game)
        sampling = Sampling(options.temperature, options.top_k, options.top_p)
        loop = asyncio.get_running_loop()
        ask = GenerationRequest(messages, sampling, most, seed, loop, loop.create_future())
        checkpoint = Checkpoint(Path(options.path), options.sha256, options.device, options.dtype)
        said = await scheduler.complete(checkpoint, ask, options.in_flight)
        settings: JSON = {name: value for name, value in sampling._asdict().items() if value is not None}
        if isinstance(said, GenerationFailure):
            what = f"{self.name}: {said.what}"
            settings["max_new_tokens"] = most
            asked = Generation(messages, None, self.name, settings, None, None, 0, 0, what)
            raise PlayerFailed(what, asked, said.kind)
        return Generation(
            prompt=messages,
            text=said.text,
            model=f"{self.name}@{options.sha256[:12]}",
            sampling=settings
            | {
                "max_new_tokens": said.most,
                "finish_reason": said.finish,
                "device": said.device,
                "dtype": said.dtype,
                "tokenizer": said.tokenizer,
            },
            prompt_tokens=said.prompt_tokens,
            completion_tokens=len(said.ids),
            latency=said.seconds,
            retries=0,
            token_ids=said.ids,
        )


def make(spec: PlayerSpec) -> LocalPlayer:
    """The player of a registry row. Raises Invalid for an option that is unknown or out of range."""
    return LocalPlayer(spec.name, read_options(spec.options))
