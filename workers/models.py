"""The process that holds local models for all workers of a machine: `python -m workers.models`.

Workers ask it over a socket in PARLOR_HOME (`app.inference.client`), so each checkpoint is in memory once, whoever
plays with it. It loads torch with the first model that is requested or offered to people.
"""

import asyncio
import os
import signal
import sys
from typing import cast

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from app.core import logs
from app.core.config import Settings, load_settings
from app.core.errors import AppError
from app.core.extensions import open_engine, reading
from app.core.failures import UNSUITED
from app.inference import scheduler
from app.inference.server import EngineServer
from app.players import make_player
from app.players.base import ChatPlayer, ChatSampling, PlayerFailed, PlayerSpec
from app.players.local.player import LocalPlayer
from app.registry import partners, player_spec
from workers import heartbeat
from workers.sockets import make_folder_of

LOOK_EVERY = 5.0  # seconds between checks of the models offered to people; the first one waits as long

log = structlog.get_logger()


async def serve(settings: Settings) -> None:
    """Answer workers, and load the models offered to people, until asked to end.

    Raises Invalid, Conflict and OSError where it cannot listen.
    """
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    make_folder_of(settings.models_socket)
    server = EngineServer()
    await server.start(settings.models_socket)
    heartbeat.beat_on(loop)
    database = open_engine(settings.database_url, pool_pre_ping=True)
    loading, ended = asyncio.create_task(_load_offered(database, settings)), asyncio.create_task(stop.wait())
    await asyncio.wait({loading, ended}, return_when=asyncio.FIRST_COMPLETED)
    settings.models_socket.unlink(missing_ok=True)
    server.close()
    if not loading.cancel():
        await loading  # raises whatever ended it
    await asyncio.to_thread(scheduler.release_caches)


async def _load_offered(database: Engine, settings: Settings) -> None:
    """Load each local model once it is offered to people, one at a time, as long as there is room: its first player
    then does not have to wait.
    """
    tried: set[str] = set()
    while True:
        await asyncio.sleep(LOOK_EVERY)
        try:
            offered = await asyncio.to_thread(_offered_local_models, database)
        except SQLAlchemyError:  # the database is away, or has no tables yet
            continue
        tried &= offered.keys()
        for name, spec in offered.items():
            if name not in tried and _has_room(spec, settings):
                tried.add(name)
                await _load_model(spec, settings)


def _offered_local_models(database: Engine) -> dict[str, PlayerSpec]:
    """The local models that are offered to people and not computed by a server, by name."""
    with reading(database) as session:
        specs = [player_spec(row) for row in partners(session)]
    return {spec.name: spec for spec in specs if spec.kind == "local" and spec.served is None}


def _has_room(spec: PlayerSpec, settings: Settings) -> bool:
    try:
        player = cast(LocalPlayer, make_player(spec, settings.home))
    except AppError:  # loading reports why
        return True
    return scheduler.has_room(player.checkpoint)


async def _load_model(spec: PlayerSpec, settings: Settings) -> None:
    """Load the model by asking it for one token."""
    try:
        player = cast(ChatPlayer, make_player(spec, settings.home))
        await player.complete([{"role": "user", "content": "Hello"}], ChatSampling(max_tokens=1))
    except Exception as error:
        # One token is too few for a reasoning model, which is loaded all the same.
        if not (isinstance(error, PlayerFailed) and error.kind == UNSUITED):
            log.warning("a model that people are offered cannot be loaded", model=spec.name, error=str(error))


def main() -> int:
    """Run until told to stop. 2: it cannot, and one line on stderr says why."""
    os.umask(0o077)
    logs.set_up()
    settings = load_settings()
    scheduler.set_cache_limit(settings.INFERENCE_CACHE_MB)
    scheduler.set_model_memory(settings.MODEL_MEMORY_MB)
    scheduler.use_gpu(settings.WORKER_GPU)
    try:
        asyncio.run(serve(settings))
    except AppError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 2
    except OSError as error:  # as on a full disk; the supervisor tries again
        print(f"error: {settings.models_socket}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
