"""The Celery app of the workers.

Start it with `celery -A workers.celery_app worker -Q turns -P threads`, the same with `-Q batch` for rounds, and with
`-Q train -c 1` for training jobs.
"""

import os
import warnings
from importlib import import_module
from typing import Any

from celery import Celery
from celery.exceptions import CPendingDeprecationWarning
from celery.signals import setup_logging, worker_init

from app.core import logs, write_priority
from app.core.config import load_settings
from app.core.queues import BATCH, TRAIN, TRANSPORT, TURNS
from app.job_kinds import JOB_KINDS
from workers import context

settings = load_settings()

TASKS = {
    TURNS: ("workers.turns", "workers.model_requests"),
    BATCH: ("workers.jobs",),
    TRAIN: ("workers.jobs",),
}

celery = Celery("parlor", broker=settings.broker_url)
celery.conf.update(
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_channel_error_retry=True,  # a Redis that refuses to write, for want of disk or memory, is waited for
    broker_transport_options=TRANSPORT,
    task_default_queue=TURNS,
    task_ignore_result=True,
    worker_cancel_long_running_tasks_on_connection_loss=False,  # a turn outlives a broker that blinks
    worker_hijack_root_logger=False,
    worker_prefetch_multiplier=1,
)


@setup_logging.connect  # type: ignore[untyped-decorator]
def _logging(**_: Any) -> None:
    logs.set_up()
    # Celery says at every lost connection what it will do by default in a later version; it is set here.
    warnings.simplefilter("ignore", CPendingDeprecationWarning)


@worker_init.connect  # type: ignore[untyped-decorator]
def _open_context(**_: Any) -> None:
    os.umask(0o077)  # what is written is its owner's alone
    import_module("workers.engines")
    queues = set(celery.amqp.queues.consume_from)
    if TURNS not in queues:
        write_priority.give_way()
    for name in queues & TASKS.keys():  # a worker loads what its own queues need, and no more: it is there sooner
        for module in TASKS[name]:
            import_module(module)
    for kind in JOB_KINDS:
        if kind.queue in queues:
            kind.load_runner()
    context.open_context(settings)
