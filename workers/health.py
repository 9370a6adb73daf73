"""Health check of a docker-compose.yml process: `python -m workers.health web|turns|batch|train|models|upkeep`.

Exit code 0 if healthy, else 1 and a line. A worker is pinged through the broker, which detects a worker that is stopped
or cut off from the broker; upkeep holds a lease in the database; a web process and that of local models answer.
"""

import asyncio
import socket
import sys
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime

from celery import Celery

from app.core.config import Settings, load_settings
from app.core.errors import AppError
from app.core.extensions import open_engine, reading
from app.core.queues import BATCH, TRAIN, TURNS, sign_of_worker
from app.inference.client import EngineProcess
from app.matches.sweep import UPKEEP, held_until

SECONDS = 5.0


def web(settings: Settings) -> bool:
    """Whether this machine's web process answers."""
    address = f"http://127.0.0.1:{settings.PORT}/healthz"
    with urllib.request.urlopen(address, timeout=SECONDS) as response:
        return bool(response.status == 200)


def models(settings: Settings) -> bool:
    """Whether the process of local models answers, which may take a while when it is loading torch."""
    asyncio.run(asyncio.wait_for(EngineProcess(settings.models_socket).figures(), 4 * SECONDS))
    return True


def upkeep(settings: Settings) -> bool:
    """Whether an upkeep process, on any machine, currently holds its lease."""
    return _is_lease_held(settings, UPKEEP)


def _is_lease_held(settings: Settings, lease: str) -> bool:
    """Whether a lease of that name is currently held."""
    engine = open_engine(settings.database_url)
    try:
        with reading(engine) as session:
            until = held_until(session, lease)
    finally:
        engine.dispose()
    return until is not None and until > datetime.now(UTC)


def worker(queue: str) -> Callable[[Settings], bool]:
    """A check of whether this machine's worker of a queue is alive."""

    def answers(settings: Settings) -> bool:
        if not settings.has_broker:
            return _is_lease_held(settings, sign_of_worker(queue))
        with Celery("health", broker=settings.broker_url) as celery:
            return bool(celery.control.ping(destination=[f"{queue}@{socket.gethostname()}"], timeout=SECONDS, limit=1))

    return answers


CHECKS: dict[str, Callable[[Settings], bool]] = {
    "web": web,
    "models": models,
    "upkeep": upkeep,
    **{queue: worker(queue) for queue in (TURNS, BATCH, TRAIN)},
}


def main() -> int:
    """Run a check and print what is wrong."""
    if len(sys.argv) != 2 or sys.argv[1] not in CHECKS:
        print(f"error: expected one of {', '.join(CHECKS)}, got {' '.join(sys.argv[1:])!r}", file=sys.stderr)
        return 2
    try:
        well = CHECKS[sys.argv[1]](load_settings())
        why = "no heartbeat"
    except AppError as error:
        well, why = False, error.message
    except Exception as error:  # from the database, the broker or the network: any error means unhealthy
        well, why = False, f"{type(error).__name__}: {error}"
    if not well:
        print(f"{sys.argv[1]}: {' '.join(why.split())}", file=sys.stderr)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
