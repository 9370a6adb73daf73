"""Engines: each holds one checkpoint, in its own thread, and generates all answers requested from it together.

Callers wait on their own event loops. The thread admits waiting requests before each token, so matches need not be in
step with each other. A model that fails to load is forgotten at once, so that it can be repaired.
"""

import asyncio
import atexit
import os
import queue
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Collection, Container, Iterable, Mapping
from enum import Enum, auto
from importlib import import_module
from types import MappingProxyType
from typing import Any

import structlog

from app import training_part
from app.core.failures import BUSY, DENIED
from app.inference.figures import EngineFigures
from app.inference.limit import BatchLimit
from app.inference.requests import (
    Checkpoint,
    Completion,
    GenerationFailure,
    GenerationRequest,
    OutOfMemory,
    UnusableCheckpoint,
    is_out_of_memory,
)
from app.inference.weights import WeightsPart, parts_of

_MODEL_SHARE = 0.5  # of a device's memory for weights, unless set
# Read when torch is loaded. Threads that spin while waiting would block others from the core: beside another busy
# process a step took ten times as long.
_ENVIRONMENT = {
    "OMP_WAIT_POLICY": "PASSIVE",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
}

_PERSON_SECONDS = 60.0  # after a person's turn, during which the next one is expected
_STEP_SECONDS = 10.0  # for an engine to finish a step, or loading a model, when its process ends
_FEW = 4  # answers started at once meanwhile, so that the turn waits only for these

_loading = threading.Lock()  # transformers cannot load two models at once, and from then on not even one

log = structlog.get_logger()


class _Signal(Enum):
    """Signals to an engine between requests."""

    CLOSE = auto()
    SHRINK = auto()


class Engine:
    """One checkpoint and its thread, which starts with the first request by loading the checkpoint."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._figures = _figures.setdefault(checkpoint, EngineFigures(str(checkpoint.folder)))
        self._limit = BatchLimit()
        self._inbox: queue.SimpleQueue[GenerationRequest | _Signal | threading.Event] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._under_way: set[GenerationRequest] = set()
        self._closed = False
        self.has_cache = False  # whether keys and values of this model take memory
        self.is_loaded = False
        self._most = 1  # answers at once
        self.device = ""  # once it is being loaded
        self.parts: Mapping[WeightsPart, int] = {}  # the bytes of its weights, likewise
        self._thread = threading.Thread(target=self._run_loop, name=f"engine of {checkpoint.folder.name}", daemon=True)

    def put(self, request: GenerationRequest, most: int) -> bool:
        """Request an answer, generated together with up to `most` in all. False if the engine has ended."""
        with self._lock:
            if self._closed:
                return False
            self._under_way.add(request)
            self.has_cache = True
            self._most = max(self._most, most)
            self._inbox.put(request)  # before anybody can find out that there will be no answer
            if self._thread.ident is None:
                self._thread.start()
        return True

    def close_if_idle(self) -> bool:
        """Close the engine and free its memory, unless an answer is being generated."""
        with self._lock:
            if self._under_way:
                return False
            self._closed = True
            self.has_cache = False
        self._inbox.put(_Signal.CLOSE)
        return True

    def stop(self) -> None:
        """End after the current step, even with answers in progress. Only when no caller waits for them any more."""
        with self._lock:
            self._closed = True
        self._inbox.put(_Signal.CLOSE)

    def join(self, seconds: float | None = None) -> None:
        """Wait until a closed engine has freed its memory, or for `seconds`."""
        if self._thread.is_alive():
            self._thread.join(seconds)

    @property
    def figures(self) -> EngineFigures:
        """The engine's figures, and the memory of its weights."""
        return self._figures

    def release_if_idle(self) -> threading.Event | None:
        """Release all cached conversations. The event is set when that is done; None: an answer is being generated."""
        with self._lock:
            if self._closed or self._under_way or not self.has_cache:
                return None
            self.has_cache = False
            released = threading.Event()
            self._inbox.put(released)
        return released

    def shrink(self) -> None:
        """Shrink the cached conversations to the memory currently allowed."""
        if self.has_cache:
            self._inbox.put(_Signal.SHRINK)

    # ---- The thread ------------------------------------------------------------

    def _run_loop(self) -> None:
        try:
            runner = self._load_model_runner()
            self._note_slow(runner.slow)
            self.is_loaded = True
            self._generate_until_closed(runner)
        except UnusableCheckpoint as error:
            self._fail_all_requests(error.failure)
        except Exception as error:
            if not self._closed:  # a process that is ending can load nothing, which is no fault of the model
                log.exception("a local model broke", folder=str(self._checkpoint.folder))
            self._fail_all_requests(error)
        finally:
            self.is_loaded = False
            self._figures.at_once = None
            self._figures.weights = 0
            self.parts = {}

    def _load_model_runner(self) -> Any:
        """The checkpoint's runner, loaded with torch after idle models have made room. Raises Unusable."""
        if (found := training_part.lacking()) is not None:
            raise UnusableCheckpoint(str(found.reason()), DENIED if found.is_off else BUSY)
        set_library_environment()
        try:
            with _loading:
                module = import_module("app.inference.runner")
                self.device, self.parts, memory = module.weights_of(self._checkpoint)
                self._figures.weights = sum(self.parts.values())
                self._figures.most_weights = _model_bytes or int(memory * _MODEL_SHARE)
                with _lock:
                    closed = _close_idle(self)
                for other in closed:
                    other.join()
                return module.ModelRunner(self._checkpoint, cache_limit)
        except ImportError as error:
            raise UnusableCheckpoint(
                f"expected torch and transformers where the workers run, got none ({error});"
                f" install them with {training_part.BY_HAND}"
            ) from None
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise UnusableCheckpoint(f"{self._checkpoint.folder}: out of memory while it was loaded", BUSY) from None

    def _generate_until_closed(self, runner: Any) -> None:
        """Generate answers until the engine is closed."""
        waiting: deque[GenerationRequest] = deque()
        person_until = 0.0
        while self._accept(runner, waiting, block=not (waiting or len(runner.batch))):
            only_urgent = runner.batch.urgent or any(request.urgent for request in waiting)
            if only_urgent:
                person_until = time.monotonic() + _PERSON_SECONDS
            new = _FEW if time.monotonic() < person_until else self._most
            self._tokenize_waiting_chats(runner, waiting, new, only_urgent)
            try:
                over = runner.go_on(waiting, self._limit.of(self._most), new)
            except OutOfMemory as error:
                self._halve(error, waiting)
            else:
                self._figures.answers += len(over)
                self._limit.grow(len(over), self._most)
                self._deliver(over)
            self._figures.at_once = self._limit.at_once

    def _tokenize_waiting_chats(
        self, runner: Any, waiting: deque[GenerationRequest], new: int, only_urgent: bool
    ) -> None:
        """Tokenize up to `new` waiting chats, those that a person waits for first, or only those; chats that cannot be
        tokenized fail at once. The others keep waiting, because tokenizing many chats takes as long as an answer.
        """
        in_order = sorted(waiting, key=lambda request: not request.urgent)
        waiting.clear()
        ready = 0
        for request in in_order:
            due = ready < new and request.urgent >= only_urgent and not request.prompt
            if due and not runner.prepare(request):
                self._deliver([request])
                continue
            ready += 1
            waiting.append(request)

    def _accept(self, runner: Any, waiting: deque[GenerationRequest], block: bool) -> bool:
        """Take in new requests, blocking if there is nothing else to do. False when the engine is closed."""
        try:
            while True:
                request = self._inbox.get(block)
                if request is _Signal.CLOSE:
                    return False
                if request is _Signal.SHRINK:
                    runner.shrink()
                    continue
                if isinstance(request, threading.Event):
                    try:
                        if not (waiting or len(runner.batch)):
                            runner.release()
                    finally:
                        request.set()
                    continue
                block = False
                if request.given_up:
                    self._deliver([request])
                else:
                    waiting.append(request)
        except queue.Empty:
            return True

    def _note_slow(self, why: str | None) -> None:
        """Log once per process that a checkpoint's answers are made by the library's own loop."""
        if why is not None and self._figures.slow is None:
            log.warning("a local model answers slowly", folder=str(self._checkpoint.folder), reason=why)
        self._figures.slow = why

    def _halve(self, error: OutOfMemory, waiting: deque[GenerationRequest]) -> None:
        """Restart with half as many at once; a single request that does not fit fails."""
        log.warning("a local model is out of memory", folder=str(self._checkpoint.folder), at_once=len(error.requests))
        self._figures.out_of_memory += 1
        self._limit.shrink(len(error.requests))
        if len(error.requests) == 1:
            error.requests[0].result = error.failure
            self._deliver(error.requests)
            return
        for request in reversed(error.requests):
            request.begin()
            waiting.appendleft(request)

    def _deliver(self, requests: Collection[GenerationRequest]) -> None:
        loops: dict[asyncio.AbstractEventLoop, list[GenerationRequest]] = {}
        for request in requests:
            loops.setdefault(request.loop, []).append(request)
        with self._lock:
            self._under_way.difference_update(requests)
        for loop, theirs in loops.items():
            try:
                loop.call_soon_threadsafe(_resolve_futures, theirs)
            except RuntimeError:  # its process, or its test, has ended
                continue

    def _fail_all_requests(self, result: GenerationFailure | Exception) -> None:
        """Fail all requests with this result, wherever they are, and accept no more."""
        with self._lock:
            self._closed = True
            self.has_cache = False
            requests = list(self._under_way)
        while not self._inbox.empty():
            request = self._inbox.get()
            if isinstance(request, threading.Event):
                request.set()
        for request in requests:
            request.result = result
        self._deliver(requests)


def set_library_environment() -> None:
    """Set the environment variables that torch and transformers read on import, unless already set."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def _resolve_futures(requests: Iterable[GenerationRequest]) -> None:
    """Deliver results, on the event loop of the callers."""
    for request in requests:
        if request.future.done():
            continue
        if isinstance(request.result, Exception):
            request.future.set_exception(request.result)
        elif request.result is not None:
            request.future.set_result(request.result)


# ---- All of a process ----------------------------------------------------------

_engines: OrderedDict[Checkpoint, Engine] = OrderedDict()  # least recently used first
_figures: dict[Checkpoint, EngineFigures] = {}  # of these engines, and of broken ones before them
_lock = threading.Lock()
_cache_bytes = 512 << 20
_model_bytes = 0


def set_cache_limit(megabytes: int) -> None:
    """Set the memory that keys and values of all models of this process may take on the CPU."""
    global _cache_bytes
    _cache_bytes = megabytes << 20


def set_model_memory(megabytes: int) -> None:
    """Set the memory that the weights of all models of this process may take on a device; 0: half of the device's.

    Beyond it, idle models are closed. A model that does not fit beside those in use, or not at all, is still loaded.
    """
    global _model_bytes
    _model_bytes = megabytes << 20


def use_gpu(number: str) -> None:
    """Restrict this process to the GPU of that number, if one is given. Call before torch is loaded."""
    if number:
        os.environ["CUDA_VISIBLE_DEVICES"] = number


def cache_limit() -> int:
    """The bytes that keys and values of one model may currently take: models with conversations share equally."""
    with _lock:
        return _cache_bytes // max(1, sum(engine.has_cache for engine in _engines.values()))


def engine_figures() -> list[EngineFigures]:
    """The figures of this process's engines, by checkpoint, without those closed to make room for others."""
    return list(_figures.values())


def is_loaded(checkpoint: Checkpoint) -> bool:
    """Whether the checkpoint is in memory, so that an answer does not wait for loading."""
    with _lock:
        engine = _engines.get(checkpoint)
        return engine is not None and engine.is_loaded


def has_room(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint's weights fit beside the loaded ones, so that no idle model has to be closed."""
    parts = parts_of(checkpoint.folder, checkpoint.sha256, 2 if checkpoint.dtype == "bfloat16" else 4)
    with _lock:
        loaded = [engine for engine in _engines.values() if engine.parts]
        size = _weights_of(loaded, parts)
    return size <= min((each.figures.most_weights for each in loaded), default=size)


def _weights_of(engines: Iterable[Engine], parts: Mapping[WeightsPart, int] = MappingProxyType({})) -> int:
    """The bytes of the weights of engines and of further parts: shared parts count once."""
    found = dict(parts)
    for engine in engines:
        found.update(engine.parts)
    return sum(found.values())


def release_caches(checkpoints: Container[Checkpoint] | None = None) -> None:
    """Release cached conversations that will not continue soon: those with these models (None: with all), except where
    an answer is being generated.

    Returns when it is done: a process that ends while torch is working is aborted.
    """
    with _lock:
        released = [
            engine.release_if_idle()
            for checkpoint, engine in _engines.items()
            if checkpoints is None or checkpoint in checkpoints
        ]
    for each in released:
        if each is not None:
            each.wait()


@atexit.register
def _stop_all() -> None:
    """Stop all engines when the process ends: if torch is still at work in one of them, the process is aborted."""
    running = list(_engines.values())  # without the lock, which an already stopped thread may hold
    for engine in running:
        engine.stop()
    until = time.monotonic() + _STEP_SECONDS
    for engine in running:
        engine.join(max(0.0, until - time.monotonic()))


def _close_idle(asked: Engine) -> list[Engine]:
    """Close idle engines, the least recently used first, until the weights on the device of the requested engine are
    within its limit. Call with the lock held.
    """
    closed = []
    for checkpoint, other in list(_engines.items()):
        there = [each for each in _engines.values() if each.device == asked.device]
        if _weights_of(there) <= asked.figures.most_weights:
            break
        if other is not asked and other in there and other.close_if_idle():
            del _engines[checkpoint]
            _figures.pop(checkpoint, None)
            closed.append(other)
    return closed


async def complete(checkpoint: Checkpoint, request: GenerationRequest, most: int) -> Completion | GenerationFailure:
    """The answer of the checkpoint's model, generated together with up to `most` in all.

    Raises whatever broke the engine, which restarts at the next request.
    """
    with _lock:
        engine = _engines.get(checkpoint)
        if engine is None or not engine.has_cache:
            for each in _engines.values():
                each.shrink()
        if engine is None or not engine.put(request, most):
            engine = _engines[checkpoint] = Engine(checkpoint)
            engine.put(request, most)
        _engines.move_to_end(checkpoint)
        _close_idle(engine)
    return await request.future
