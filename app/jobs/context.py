"""The context in which a job is run: by a worker, by a command in a terminal, or in a test."""

import threading
from dataclasses import dataclass, field

from sqlalchemy import Engine

from app.core.config import Settings


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a job is run with, `owner` being a name that nobody else who runs jobs has.

    `stopping` is set when whoever runs the job is asked to end. A worker's context has more (`matches/turns.py`): only
    turns in live matches and calls of models need an event loop in another thread, and web processes to be told.
    """

    database: Engine
    settings: Settings
    owner: str
    stopping: threading.Event = field(default_factory=threading.Event)
