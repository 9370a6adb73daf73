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
    broker_channel_error_retry=True,  # wait for a Redis that refuses writes, for want of disk or memory
    broker_transport_options=TRANSPORT,
    task_default_queue=TURNS,
    task_ignore_result=True,
    worker_cancel_long_running_tasks_on_connection_loss=False,  # turns survive brief broker outages
    worker_hijack_root_logger=False,
    worker_prefetch_multiplier=1,
)


@setup_logging.connect  # type: ignore[untyped-decorator]
def _logging(**_: Any) -> None:
    logs.set_up()
    # At every lost connection, Celery announces a later version's default, which is set here.
    warnings.simplefilter("ignore", CPendingDeprecationWarning)


@worker_init.connect  # type: ignore[untyped-decorator]
def _open_context(**_: Any) -> None:
    os.umask(0o077)  # files are private to their owner
    import_module("workers.engines")
    queues = set(celery.amqp.queues.consume_from)
    if TURNS not in queues:
        write_priority.give_way()
    for name in queues & TASKS.keys():  # a worker loads only what its own queues need, to be ready sooner
        for module in TASKS[name]:
            import_module(module)
    for kind in JOB_KINDS:
        if kind.queue in queues:
            kind.load_runner()
    context.open_context(settings)
