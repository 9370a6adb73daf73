"""The context in which a job is run: by a worker, by a command in a terminal, or in a test."""

import threading
from dataclasses import dataclass, field

from sqlalchemy import Engine

from app.core.config import Settings


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a job runs with; `owner` is a name unique among all that run jobs.

    `stopping` is set when the runner of the job is asked to end. A worker's context has more (`matches/turns.py`): only
    turns in live matches and model calls need an event loop in another thread and notification of web processes.
    """

    database: Engine
    settings: Settings
    owner: str
    stopping: threading.Event = field(default_factory=threading.Event)
