"""What the turns of a worker process share: the database, the event loop on which models are called, the channel."""

import asyncio
import threading
import uuid
from dataclasses import dataclass, replace
from typing import Any

import redis
import structlog
from redis.exceptions import RedisError
from sqlalchemy import create_engine

from app.config import Settings
from app.games import warm_up
from app.matches.turns import Desk
from app.queues import CHANNEL, notice

log = structlog.get_logger()


@dataclass(slots=True)
class _Process:
    desk: Desk | None = None


_process = _Process()


def open_desk(settings: Settings) -> None:
    """Set the process up. Called once, when the worker starts."""
    threading.Thread(target=warm_up, name="games", daemon=True).start()
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="models", daemon=True).start()
    channel = redis.Redis.from_url(settings.redis_url, socket_timeout=2, socket_connect_timeout=2)

    def notify(match_id: str, typing: bool) -> None:
        try:
            channel.publish(CHANNEL, notice(match_id, typing))
        except (RedisError, OSError) as error:
            log.warning("the web was not told, it will ask by itself", match=match_id, error=str(error))

    arguments: dict[str, Any] = {}
    if not settings.database_url.startswith("sqlite"):
        arguments = {"pool_size": 10, "max_overflow": settings.TURN_THREADS, "pool_pre_ping": True}
    database = create_engine(settings.database_url, **arguments)
    _process.desk = Desk(database, settings, loop, notify, owner="")


def desk_for_a_turn() -> Desk:
    """The process's desk, under a name that no other turn has."""
    if _process.desk is None:
        raise RuntimeError("expected open_desk at the start of the worker, got a task before it")
    return replace(_process.desk, owner=uuid.uuid4().hex)
