"""The modules shared by workers, upkeep and the database preparation: the supervisor loads them once and forks.

None of them may start a thread, which a fork would not have, or open a file or a connection. So numpy is excluded, with
everything that needs it: its matrix library starts threads. A worker loads whatever else its own queues need.
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
    """Load the modules, and exclude them from garbage collection, which would write to all their pages in every
    fork.
    """
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
