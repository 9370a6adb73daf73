"""What a worker process's tasks share: the database, the event loop for model calls, the channel."""

import asyncio
import threading
import uuid
from dataclasses import dataclass, replace

from celery.signals import worker_shutting_down

from app.core.config import Settings
from app.core.extensions import open_engine
from app.core.queues import make_publisher
from app.inference import engines, scheduler
from app.matches.turns import WorkerContext
from app.rounds.runner import freeze_garbage_collector
from workers import heartbeat


@dataclass(slots=True)
class _WorkerState:
    context: WorkerContext | None = None


_state = _WorkerState()


def open_context(settings: Settings) -> WorkerContext:
    """Set the process up. Called once, when the worker starts; returns what its tasks share."""
    scheduler.set_cache_limit(settings.INFERENCE_CACHE_MB)
    scheduler.set_model_memory(settings.MODEL_MEMORY_MB)
    scheduler.use_gpu(settings.WORKER_GPU)
    engines.ask_process(settings.models_socket if settings.MODELS_PROCESS else None)
    loop = asyncio.new_event_loop()
    loop.call_soon(heartbeat.beat_on, loop)
    threading.Thread(target=loop.run_forever, name="models", daemon=True).start()
    # A connection per thread: while the database is locked, each thread waits with one.
    size, alive = settings.TURN_THREADS, not settings.database_url.startswith("sqlite")
    database = open_engine(settings.database_url, pool_size=10, max_overflow=size, pool_pre_ping=alive)
    freeze_garbage_collector()
    notify = make_publisher(settings.redis_url)
    _state.context = WorkerContext(database, settings, owner="", loop=loop, notify=notify)
    return _state.context


def context_for_task() -> WorkerContext:
    """The process's context, with an owner name unique to this task."""
    if _state.context is None:
        raise RuntimeError("expected open_context at the start of the worker, got a task before it")
    return replace(_state.context, owner=uuid.uuid4().hex)


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def stop_jobs(**_: object) -> None:
    """Make a worker that was asked to end release its jobs at once, a training with a checkpoint.

    Upkeep then calls other workers.
    """
    if _state.context is not None:
        _state.context.stopping.set()
