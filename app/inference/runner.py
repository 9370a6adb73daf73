"""A checkpoint in memory, and the generation of its answers to chats."""

import ctypes
import json
import os
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, GenerationConfig
from transformers.cache_utils import DynamicLayer
from transformers.utils.logging import disable_progress_bar

from app.core.failures import REFUSED
from app.inference.batch import Batch
from app.inference.generate_batch import GenerateBatch
from app.inference.key_value_cache import KeyValueCache
from app.inference.loading import load
from app.inference.reasoning import HALF_CHARACTER, ReasoningTokens, before_stop
from app.inference.requests import (
    LENGTH,
    STOP,
    STOP_STRING,
    Checkpoint,
    Completion,
    GenerationFailure,
    GenerationRequest,
    OutOfMemory,
    UnusableCheckpoint,
    is_out_of_memory,
)
from app.inference.weights import WeightsPart, machine_memory, parts_of
from training import checkpoints
from training.errors import TrainingRefused, one_line
from training.rendering import Renderer, control_tokens, ids_hash

_SMALL = 20_000_000  # weights, up to which more than a few threads only wait for each other
_FEW_THREADS = 4
_SHARE = 0.8  # of a GPU's free memory for keys and values
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # what glibc's malloc.h calls M_TRIM_THRESHOLD and M_MMAP_THRESHOLD
_SHORT_LIVED = 32 << 20  # bytes that a value of a forward pass may take; glibc allows no more
_ALIKE = {torch.float32: 1e-3, torch.bfloat16: 5e-2}  # how far the same logits, computed in two ways, may differ


class ModelRunner:
    """A model with everything it needs to answer. Belongs to one thread."""

    def __init__(self, checkpoint: Checkpoint, cache_limit: Callable[[], int]) -> None:
        """Load it; `cache_limit` gives the bytes that keys and values may currently take on the CPU.

        Raises Unusable for a checkpoint or a device that cannot be used.
        """
        disable_progress_bar()
        _reuse_short_lived_memory()
        self.device, dtype = _device_and_dtype(checkpoint)
        try:
            model, self._tokenizer, self._weights = load(checkpoint, self.device, dtype)
            newest = checkpoints.renderer_of(checkpoints.read_provenance(checkpoint.folder))
            self._renderer = Renderer(self._tokenizer, checkpoints.length_of(model), newest)
        except TrainingRefused as error:
            raise UnusableCheckpoint(str(error)) from None
        # For matches from before a newer version, and for other template arguments.
        self._other_renderers: dict[tuple[int, str], Renderer] = {}
        self._reasoning = ReasoningTokens(self._tokenizer)
        self.dtype = str(dtype).removeprefix("torch.")
        if self.device == "cpu" and model.num_parameters() <= _SMALL and "OMP_NUM_THREADS" not in os.environ:
            torch.set_num_threads(min(_FEW_THREADS, torch.get_num_threads()))
        self._model = model
        self._ends = self._renderer.end_tokens(model.generation_config.eos_token_id) - self._reasoning.message_ends
        logit_mask = self._logit_mask()
        self._model.generation_config = GenerationConfig()  # the registry alone decides on sampling
        found = _bytes_in_rows(self._model)
        self.slow = found if isinstance(found, str) else None  # why answers are made by the library's own loop
        if isinstance(found, int):
            memory = cache_limit if self.device == "cpu" else partial(int, torch.cuda.mem_get_info()[0] * _SHARE)
            self.batch: Batch | GenerateBatch = Batch(
                self._model, self._ends, self._reasoning, logit_mask, memory, found
            )
        else:
            padding = next((token for token in (self._tokenizer.pad_token_id, *self._ends) if token is not None), 0)
            self.batch = GenerateBatch(self._model, self._ends, self._reasoning, logit_mask, padding)

    def prepare(self, request: GenerationRequest) -> bool:
        """Tokenize a chat. False, with a result set, if that is impossible."""
        try:
            renderer = self._renderer_for(request)
            most = request.most_of_move
            if not request.room_if_needed or renderer.lets_reason:
                most += request.room
            request.prompt = renderer.prompt(request.messages, most)
        except TrainingRefused as error:
            request.result = GenerationFailure(str(error), REFUSED)
            return False
        request.most = min(most, self._renderer.longest - len(request.prompt))
        request.most_of_move = min(request.most_of_move, request.most)
        self._reasoning.prepare(request)
        request.begin()
        return True

    def _renderer_for(self, request: GenerationRequest) -> Renderer:
        """A checkpoint is prompted as it was trained, and a match continues as it began: the older version of both."""
        version = min(request.renderer, self._renderer.version)
        if version == self._renderer.version and not request.template_arguments:
            return self._renderer
        key = version, json.dumps(request.template_arguments, sort_keys=True)
        if key not in self._other_renderers:
            self._other_renderers[key] = Renderer(
                self._tokenizer, self._renderer.longest, version, template_arguments=request.template_arguments
            )
        return self._other_renderers[key]

    def go_on(self, waiting: deque[GenerationRequest], most: int, new: int) -> list[GenerationRequest]:
        """Admit waiting requests while there is room, up to `new` of them, and make a step. Returns the requests that
        now have a result.

        Raises OutOfMemory, after which no answer is in progress.
        """
        try:
            with torch.inference_mode():
                self.batch.join(waiting, most, new)
                over = self.batch.step()
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            requests = self.batch.leave()
            if self.device == "cuda":
                torch.cuda.empty_cache()
            raise OutOfMemory(f"out of memory ({one_line(error)})", requests) from None
        for request in over:
            request.result = self._completion(request)
        return over

    def shrink(self) -> None:
        """Shrink the cache of earlier conversations to the memory currently allowed."""
        self.batch.shrink()
        _give_memory_back()

    def release(self) -> None:
        """Release all cached conversations: none will continue soon. Only while no answer is being generated."""
        self.batch.leave()
        _give_memory_back()

    def _completion(self, request: GenerationRequest) -> Completion:
        ended = bool(request.sampled) and request.sampled[-1] in self._ends | self._reasoning.message_ends
        words = request.sampled[:-1] if ended else request.sampled
        answer = self._reasoning.part(request, words)
        if answer.reasoning is None and len(words) > request.most_of_move:  # room for reasoning was not used
            ended = request.has_stopped = False
            words = request.sampled = request.sampled[: request.most_of_move]
            request.log_probs = request.log_probs[: request.most_of_move]
            answer = self._reasoning.part(request, words)
        text = before_stop(answer.text, request.stop).rstrip() if request.has_stopped else answer.text
        return Completion(
            text=text if ended else text.rstrip(HALF_CHARACTER),
            ids=request.sampled,
            log_probs=request.log_probs,
            prompt_tokens=len(request.prompt),
            prompt_sha256=ids_hash(request.prompt),
            finish=STOP if ended else STOP_STRING if request.has_stopped else LENGTH,
            most=request.most,
            device=self.device,
            dtype=self.dtype,
            tokenizer=self._renderer.tokenizer_hash,
            seconds=time.perf_counter() - request.began,
            reasoning=answer.reasoning,
            reasoning_tokens=answer.reasoning_tokens,
            most_of_move=request.most_of_move,
        )

    def _logit_mask(self) -> Tensor:
        """A mask added to logits (V,) that keeps non-text out of answers: control tokens except those that mark
        reasoning, and unused ids.
        """
        never = set(self._tokenizer.convert_tokens_to_ids(list(control_tokens(self._tokenizer))))
        never |= set(self._model.generation_config.suppress_tokens or ())
        logit_mask = torch.zeros(
            self._model.config.get_text_config().vocab_size, dtype=torch.float32, device=self.device
        )
        logit_mask[sorted(never - self._ends - self._reasoning.special)] = -torch.inf
        logit_mask[len(self._tokenizer) :] = -torch.inf
        return logit_mask


def weights_of(checkpoint: Checkpoint) -> tuple[str, dict[WeightsPart, int], int]:
    """A checkpoint's device, the bytes of its weights there, by part that may be shared with others, and the device's
    total memory.

    Raises Unusable for a GPU that is not there.
    """
    device, dtype = _device_and_dtype(checkpoint)
    memory = torch.cuda.mem_get_info()[1] if device == "cuda" else machine_memory()
    return device, parts_of(checkpoint.folder, checkpoint.sha256, dtype.itemsize), memory


def _device_and_dtype(checkpoint: Checkpoint) -> tuple[str, torch.dtype]:
    """A checkpoint's device and number type. Raises Unusable for a GPU that is not there."""
    there = torch.cuda.is_available()
    if checkpoint.device == "cuda" and not there:
        raise UnusableCheckpoint(
            "device: expected a GPU, got none that torch can use; set the model's device to auto or cpu"
        )
    device = "cuda" if there and checkpoint.device != "cpu" else "cpu"
    if checkpoint.dtype == "auto":
        return device, torch.bfloat16 if device == "cuda" else torch.float32
    return device, {"float32": torch.float32, "bfloat16": torch.bfloat16}[checkpoint.dtype]


def _bytes_in_rows(model: Any) -> int | str:
    """The bytes of a token in rows; or the reason why a model cannot run in rows, or gives other results there.

    All tokens at once are compared with two parts beside another sequence. Raises errors of running out of memory.
    """
    others = {type(layer).__name__ for layer in DynamicCache(config=model.config).layers} - {DynamicLayer.__name__}
    if others:
        return f"its keys and values are kept in {', '.join(sorted(others))}"
    ids = [(7919 * at + 13) % min(1000, model.get_input_embeddings().num_embeddings) for at in range(12)]
    parts = [torch.tensor([part], device=model.device) for part in (ids, ids[:7])]
    rows = KeyValueCache(model)
    try:
        with torch.inference_mode():
            alone = torch.cat([model(input_ids=part).logits[:, -1] for part in parts]).float()
            rows.forward(0, [ids[:9], ids[:3]], [0, 0])
            together = rows.forward(0, [ids[9:], ids[3:7]], [9, 3]).float()
    except Exception as error:  # however a model fails on unexpected input, the library's loop plays it
        if is_out_of_memory(error):
            raise
        return f"it could not be computed beside another sequence ({type(error).__name__}: {one_line(error)})"
    apart = float((alone - together).abs().max() / alone.abs().max())
    if not apart <= _ALIKE[model.dtype]:
        return f"beside another sequence its logits are {apart:.2g} of the largest apart from those alone"
    return rows.bytes_a_token


def _reuse_short_lived_memory() -> None:
    """Have the C library keep what one forward pass freed for the next one.

    glibc does so on its own after a large block is freed to it, but blocks of keys and values never are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _SHORT_LIVED)
        mallopt(_TRIM_THRESHOLD, 2 * _SHORT_LIVED)


def _give_memory_back() -> None:
    """Have the C library return freed memory to the system; glibc would otherwise keep it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
