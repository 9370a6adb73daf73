"""A worker's report on its local models, for `flask doctor`, which asks all workers over the broker."""

from typing import Any

from celery.worker.control import inspect_command

from app.core.queues import ENGINES
from app.inference import scheduler


@inspect_command(name=ENGINES)  # type: ignore[untyped-decorator]
def engines(_state: object) -> list[dict[str, Any]]:
    """The figures of each checkpoint that this process has used."""
    return [figures.to_json() for figures in scheduler.engine_figures()]
