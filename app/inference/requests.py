"""Requests to an engine and their results. Imports no torch."""

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from app.core.failures import BUSY, DENIED, FailureKind
from training.marks import RENDERER

# Why an answer ended: the model ended it, it reached its limit, or a stop string came next.
STOP, LENGTH, STOP_STRING = "stop", "length", "stop_string"


class Checkpoint(NamedTuple):
    """Which weights, on which device and in which number type; `device` and `dtype` may be "auto"."""

    folder: Path
    sha256: str
    device: str
    dtype: str


class Sampling(NamedTuple):
    """How a token is sampled. Temperature 0 takes the most likely; None is no limit."""

    temperature: float
    top_k: int | None
    top_p: float | None
    no_repeat_ngram: int | None = None  # no run of this many tokens occurs twice in prompt and answer


class GenerationFailure(NamedTuple):
    """Why there is no answer, in one line, and its kind of failure."""

    what: str
    kind: FailureKind


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer: its text, the sampled tokens (the last one ended it), and how it was generated.

    `reasoning` is what the model thought before the text, None without marks of reasoning; `reasoning_tokens` counts
    the sampled tokens of reasoning and marks. `most` tokens were allowed for both, `most_of_move` for the text alone.
    `log_probs` are natural logarithms of the sampled tokens' probabilities over the whole vocabulary, before masks,
    temperature and limits. `prompt_sha256` is `training.rendering.ids_hash` of the tokens before the answer.
    """

    text: str
    ids: list[int]
    log_probs: list[float]
    prompt_tokens: int
    prompt_sha256: str
    finish: str  # STOP | LENGTH | STOP_STRING
    most: int  # tokens allowed
    device: str
    dtype: str
    tokenizer: str | None  # its hash
    seconds: float  # since its batch took it in
    reasoning: str | None = None
    reasoning_tokens: int = 0
    most_of_move: int = 0


@dataclass(slots=True, eq=False)
class GenerationRequest:
    """A chat to be continued, with its state meanwhile. `seed` determines the sampling; None: nothing does.

    `room` is the number of tokens that reasoning may take beside the `most_of_move`; with `room_if_needed`, only if the
    chat template has the model reason. `limit` is the answer's maximum length given what was sampled so far.

    The arguments of `__init__` are the request; it travels between processes as JSON, except `loop` and `future`.
    """

    messages: list[dict[str, str]]
    sampling: Sampling
    most_of_move: int  # tokens
    seed: str | None
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Completion | GenerationFailure]"
    renderer: int = RENDERER  # the version with which it is rendered, unless the checkpoint has an older one
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    room: int = 0
    room_if_needed: bool = False
    urgent: bool = False  # a person waits for the answer; others are made afterwards
    stop: list[str] = field(default_factory=list)  # texts before which the answer ends
    result: Completion | GenerationFailure | Exception | None = field(default=None, init=False)

    prompt: list[int] = field(default_factory=list, init=False)
    lasting: int = field(default=0, init=False)  # tokens of the prompt that the chat's next prompt also begins with
    opening: str = field(default="", init=False)  # the reasoning mark at the prompt's end
    most: int = field(default=0, init=False)  # tokens of the answer, reasoning included
    limit: int = field(default=0, init=False)
    has_closed: bool = field(default=False, init=False)  # its reasoning
    has_stopped: bool = field(default=False, init=False)  # by one of `stop`
    sampled: list[int] = field(default_factory=list, init=False)
    log_probs: list[float] = field(default_factory=list, init=False)  # of what was sampled
    rng: random.Random = field(default_factory=random.Random, init=False)
    began: float = field(default=0.0, init=False)

    @property
    def given_up(self) -> bool:
        """Whether the answer was given up by its caller."""
        return self.future.cancelled()

    def begin(self) -> None:
        """Discard what was sampled and restart; the same tokens will be sampled again."""
        self.sampled, self.log_probs = [], []
        self.limit = self.most if self.opening or not self.room_if_needed else self.most_of_move
        self.has_closed = self.has_stopped = False
        self.rng = random.Random(self.seed)
        self.began = time.perf_counter()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means out of memory; on the CPU torch has no type for it, and this module does not import
    torch.
    """
    text = f"{type(error).__name__} {error}".lower()
    return isinstance(error, MemoryError) or any(
        words in text for words in ("outofmemory", "out of memory", "not enough memory", "can't allocate memory")
    )


class UnusableCheckpoint(Exception):
    """The checkpoint cannot be played with, or not at the moment. The message is one line."""

    def __init__(self, what: str, kind: FailureKind = DENIED) -> None:
        super().__init__(what)
        self.failure = GenerationFailure(what, kind)


class OutOfMemory(Exception):
    """Memory does not suffice for so many answers at once. `requests` are those that were being generated."""

    def __init__(self, what: str, requests: list[GenerationRequest]) -> None:
        super().__init__(what)
        self.requests = requests

    @property
    def failure(self) -> GenerationFailure:
        return GenerationFailure(str(self), BUSY)
