"""Self-play rounds, played by workers."""

import asyncio
import threading
import uuid

from celery import shared_task
from celery.signals import worker_shutting_down

from app.queues import PLAY_ROUND
from app.rounds.runner import RoundContext, play_round
from workers.context import context_for_turn

_here: dict[int, asyncio.Event] = {}  # the rounds that this process plays, and how to stop
_lock = threading.Lock()


@shared_task(name=PLAY_ROUND, ignore_result=True)  # type: ignore[untyped-decorator]
def play(round_id: int) -> None:
    """Join in at a round, if this process has not yet, and stay until it is over."""
    desk = context_for_turn()
    stop = asyncio.Event()
    with _lock:
        if round_id in _here:
            return
        _here[round_id] = stop
    place = RoundContext(desk.database, desk.settings, uuid.uuid4().hex, stop)
    try:
        asyncio.run_coroutine_threadsafe(play_round(place, round_id), desk.loop).result()
    finally:
        with _lock:
            _here.pop(round_id, None)


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _go_home(**_: object) -> None:
    """A worker that is asked to stop gives its parts of rounds back at once; upkeep calls others to them."""
    with _lock:
        for stop in _here.values():
            context_for_turn().loop.call_soon_threadsafe(stop.set)
