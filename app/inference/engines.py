"""Access to local models: by the engines of this process, or of the one that holds them for all workers.

Players and job runners call this module; a process chooses between the two once, when it starts.
"""

import asyncio
from pathlib import Path

from app.inference import scheduler
from app.inference.client import EngineProcess
from app.inference.requests import Checkpoint, Completion, GenerationFailure, GenerationRequest

_processes: list[EngineProcess] = []  # the process asked, if any


def ask_process(socket: Path | None) -> None:
    """From now on use the process that listens on this socket; None: the engines of this process."""
    _processes[:] = [] if socket is None else [EngineProcess(socket)]


async def complete(checkpoint: Checkpoint, request: GenerationRequest, most: int) -> Completion | GenerationFailure:
    """The answer of the checkpoint's model, generated together with up to `most` in all. Raises what broke the
    engine.
    """
    asked = _processes[0] if _processes else scheduler
    return await asked.complete(checkpoint, request, most)


async def is_loaded(checkpoint: Checkpoint) -> bool:
    """Whether the model is in memory, so that its answer does not wait for loading."""
    return await _processes[0].is_loaded(checkpoint) if _processes else scheduler.is_loaded(checkpoint)


async def release_caches() -> None:
    """Release this process's cached conversations that will not continue soon."""
    if _processes:
        await _processes[0].release_caches()
    else:
        await asyncio.to_thread(scheduler.release_caches)
