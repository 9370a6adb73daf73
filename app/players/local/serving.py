"""The engine that serves a local model beside the workers, as validated from the model's row. Loads no torch."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from app.core.errors import Phrase
from training.marks import Marks, OwnMarks

Engine = Literal["transformers", "vllm", "llama.cpp"]
TRANSFORMERS: Engine = "transformers"
VLLM: Engine = "vllm"
LLAMA_CPP: Engine = "llama.cpp"
ENGINES: tuple[Engine, ...] = get_args(Engine)
NAMES: Mapping[Engine, str] = {TRANSFORMERS: "transformers serve", VLLM: "vLLM", LLAMA_CPP: "llama.cpp"}
State = Literal["starting", "ready", "away", "stopped"]
STARTING: State = "starting"
READY: State = "ready"
AWAY: State = "away"  # gives no answer; one that was started here is restarted
STOPPED: State = "stopped"
PLAY_WITH = (WORKER, SERVER) = ("worker", "server")  # who computes a local model's answers
WATCHED_FOR = timedelta(seconds=60)  # without a renewal, after which the command counts as ended
# Simultaneous requests to an engine that answers one after the other: more would only wait, and count as late.
_AT_ONCE: Mapping[Engine, int] = {TRANSFORMERS: 8}

_STATES: Mapping[State, Phrase] = {
    STARTING: Phrase("is starting"),
    READY: Phrase("answers"),
    AWAY: Phrase("gives no answer"),
    STOPPED: Phrase("is stopped"),
}


class TokenizerFacts(BaseModel):
    """What requests to an engine need of the checkpoint's tokenizer, as `python -m training check` reports it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str | None  # as given by training.rendering.tokenizer_hash
    ends: tuple[int, ...]  # the tokens that end an answer
    lets_reason: bool  # whether the chat template makes or lets the model reason
    marks: OwnMarks  # without those that are broken for all models


class ServedModel(BaseModel):
    """A local model's engine: its address, its name for the model, its state, and the command that watches it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    engine: Engine
    base_url: str
    model: str  # the engine's name for it
    dtype: str | None  # the number format that it computes in; None if unknown here
    tokenizer: TokenizerFacts
    state: State
    since: datetime  # when the state began
    watcher: str  # the unique name of the command that watches it
    watched_until: datetime
    restarts: int = 0
    error: str | None = None  # why it last gave no answer
    seen_at: datetime | None = None  # when it last answered
    lora_rank: int | None = None  # the highest rank of adapters that it can load while running; None: it loads none
    is_adapter: bool = False  # whether `model` are adapters that it has to load first; never so in a row

    def is_watched(self, now: datetime) -> bool:
        """Whether a command watches it and has not been killed since."""
        return self.state != STOPPED and now < self.watched_until

    def takes(self, rank: int) -> bool:
        """Whether it can load adapters of a rank, in addition to the checkpoint that it serves."""
        return self.lora_rank is not None and rank <= self.lora_rank

    def at_once(self, most: int) -> int:
        """How many requests the engine may have at the same time, at most `most`."""
        return min(most, _AT_ONCE.get(self.engine, most))


def read_served(raw: Mapping[str, Any] | None) -> ServedModel | None:
    """The engine of a row; None if it has none, or if another version wrote it."""
    if raw is None:
        return None
    try:
        return ServedModel.model_validate(raw)
    except ValidationError:
        return None


def in_words(served: ServedModel, now: datetime) -> Phrase:
    """An engine's state: for example that it answers, or since when it has not been seen."""
    if served.state == STOPPED or served.is_watched(now):
        return _STATES[served.state]
    if served.seen_at is None:
        return Phrase("has never answered")
    return Phrase("has not been seen since %(when)s UTC", when=served.seen_at.strftime("%Y-%m-%d %H:%M:%S"))


@lru_cache(maxsize=64)
def marks_of(own: OwnMarks) -> Marks:
    """The object that breaks the marks of a checkpoint's tokenizer, and those of the common families."""
    return Marks(*own)
