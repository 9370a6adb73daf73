"""The process that holds local models for all workers of a machine: `python -m workers.models`.

Workers ask it over a socket in PARLOR_HOME (`app.inference.client`), so each checkpoint is in memory once, whoever
plays with it. It loads torch with the first model.
"""

import asyncio
import os
import signal
import sys

from app.core import logs
from app.core.config import Settings, load_settings
from app.core.errors import AppError
from app.inference import scheduler
from app.inference.server import EngineServer
from workers import heartbeat
from workers.sockets import make_folder_of


async def serve(settings: Settings) -> None:
    """Answer workers until asked to end. Raises Invalid, Conflict and OSError where it cannot listen."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    make_folder_of(settings.models_socket)
    server = EngineServer()
    await server.start(settings.models_socket)
    heartbeat.beat_on(loop)
    await stop.wait()
    settings.models_socket.unlink(missing_ok=True)
    server.close()
    await asyncio.to_thread(scheduler.release_caches)


def main() -> int:
    """Run until told to stop. 2: it cannot, and one line on stderr says why."""
    os.umask(0o077)
    logs.set_up()
    settings = load_settings()
    scheduler.set_cache_limit(settings.INFERENCE_CACHE_MB)
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
