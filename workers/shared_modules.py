"""What the workers, upkeep and the preparation of the database share: the supervisor loads it once, and forks them.

Nothing of it may start a thread, which a fork would not have, or open a file or a connection. So numpy stays out, with
what needs it: its library for matrices starts threads. A worker loads by itself what its own queues need beyond this.
"""

import gc
import os
import warnings
from importlib import import_module

from sqlalchemy import make_url

from app.core.config import Settings

MODULES = (
    "celery.__main__",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.thread",
    "celery.worker.autoscale",
    "celery.worker.consumer",
    "kombu.transport.redis",
    "workers.celery_app",
    "workers.engines",
    "workers.jobs",
    "workers.model_requests",
    "workers.models",
    "workers.polling",
    "workers.prepare",
    "workers.training_part",
    "workers.turns",
    "workers.upkeep",
)


def load(settings: Settings) -> None:
    """Load it, and keep it from the garbage collector, which would write into every page of it in every fork."""
    os.environ["NOSETPS"] = "1"  # else Celery renames its processes, and `ps` shows no commands
    # Celery warns root because of pickled messages; Parlor's are JSON, read from a private socket.
    warnings.filterwarnings("ignore", "You're running the worker with superuser privileges")
    gc.disable()
    for module in MODULES:
        import_module(module)
    make_url(settings.database_url).get_dialect().import_dbapi()
    gc.enable()
    gc.collect()
    gc.freeze()
