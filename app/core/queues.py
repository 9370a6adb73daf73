"""Names of queues and tasks, and the messages that wake up workers.

Work is a row in the database; a message carries only its id. Upkeep resends lost messages. Celery and the Redis client
take as long to load as the rest of a command, so the first message loads them.
"""

import json
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from celery import Celery

TURNS = "turns"
PLAY_TURN = "parlor.turns.play"
BATCH = "batch"
TRAIN = "train"
RUN_JOB = "parlor.jobs.run"
ENGINES = "parlor.engines"  # asks workers about engines over the broker
MAKE_REQUEST = "parlor.models.request"
CHANNEL = "parlor:matches"  # workers tell the web processes here that a match has moved

# An unavailable broker is noticed in seconds, not minutes. A task that waits longer than the visibility timeout, behind
# a long training, is sent again, which changes nothing.
TRANSPORT: dict[str, Any] = {
    "socket_connect_timeout": 2,
    "socket_keepalive": True,
    "visibility_timeout": 3600,
    "unacked_restore_interval": 2,
    "unacked_restore_throttle": 1,
}

# Whether the model that is to move has begun to write; None: not yet, because it is being loaded first.
Typing = bool | None

log = structlog.get_logger()


@lru_cache(maxsize=4)
def producer(broker_url: str) -> "Celery":
    """A Celery app that only sends. It gives up at once if the broker is unavailable, because upkeep tries again."""
    from celery import Celery

    celery = Celery("parlor", broker=broker_url, set_as_current=False)
    celery.conf.update(
        broker_connection_timeout=2,
        broker_transport_options={**TRANSPORT, "max_retries": 0, "socket_timeout": 5},
        task_ignore_result=True,
    )
    return celery


def enqueue_turn(broker_url: str, match_id: str) -> None:
    """Ask a worker to play the model's turn in a match; call it after the commit. Upkeep resends lost messages."""
    _send_task(broker_url, PLAY_TURN, match_id)


def enqueue_request(broker_url: str, number: int) -> None:
    """Ask a worker to make a request to a model; call it after the commit. Upkeep resends lost messages."""
    _send_task(broker_url, MAKE_REQUEST, number)


def enqueue_job(broker_url: str, queue: str, kind: str, number: int, times: int = 1) -> None:
    """Tell `times` workers of a queue about a job; call it after the commit. Upkeep resends lost messages."""
    for _ in range(times):
        _send_task(broker_url, RUN_JOB, kind, number, queue=queue)


def sign_of_worker(queue: str) -> str:
    """The name of the lease by which a worker without a broker shows that it is running."""
    return f"worker {queue}"


def _send_task(broker_url: str, task: str, *args: str | int, queue: str = TURNS) -> None:
    if not broker_url:  # workers poll the database themselves
        return
    from kombu.exceptions import OperationalError
    from redis.exceptions import RedisError

    try:
        producer(broker_url).send_task(task, args=args, queue=queue, retry=False)
    except (OperationalError, RedisError, OSError) as error:  # RedisError: it answers but accepts nothing
        log.warning("the broker is away", task=task, args=args, error=str(error))


def make_publisher(redis_url: str) -> Callable[[str, Typing], None]:
    """The function with which a process tells the web processes, after the commit, that a match has moved: `tell(match,
    typing)`.
    """
    if not redis_url:  # the web processes poll the database themselves
        return lambda _match_id, _typing: None
    from redis import Redis
    from redis.exceptions import RedisError

    channel = Redis.from_url(redis_url, socket_timeout=2, socket_connect_timeout=2)

    def tell(match_id: str, typing: Typing) -> None:
        try:
            channel.publish(CHANNEL, notice(match_id, typing))
        except (RedisError, OSError) as error:
            log.warning("the web was not told, it will ask by itself", match=match_id, error=str(error))

    return tell


def notice(match_id: str, typing: Typing) -> str:
    """A worker's message on the channel: the match has moved, or its model has begun to write or is being loaded."""
    return json.dumps({"match": match_id, "typing": typing})


def read_notice(data: bytes) -> tuple[str, Typing]:
    """The match and whether its model is writing, from a message made by `notice`."""
    raw = json.loads(data)
    return raw["match"], raw["typing"]
