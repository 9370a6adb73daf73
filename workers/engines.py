"""What a worker reports of its local models when `flask doctor` asks all workers over the broker."""

from typing import Any

from celery.worker.control import inspect_command

from app.core.queues import ENGINES
from app.inference import scheduler


@inspect_command(name=ENGINES)  # type: ignore[untyped-decorator]
def engines(_state: object) -> list[dict[str, Any]]:
    """The figures of each checkpoint that this process has answered with."""
    return [figures.to_json() for figures in scheduler.engine_figures()]
