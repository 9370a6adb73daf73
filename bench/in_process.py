"""What a benchmark runs in its own process: a fresh Parlor on SQLite, and a coroutine whose time is taken."""

import asyncio
import cProfile
import pstats
import shutil
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from app.core.config import Settings
from app.factory import create_app
from app.schema import upgrade


class Timed(NamedTuple):
    """How long something took in seconds: wall-clock time, and this process's CPU time."""

    seconds: float
    cpu: float


@contextmanager
def fresh_parlor(**settings: Any) -> Iterator[Settings]:
    """The settings of an app whose context is entered, in a folder of its own that is removed afterwards."""
    home = Path(tempfile.mkdtemp(prefix="parlor-bench-"))
    try:
        app = create_app({"PARLOR_HOME": home, "DATABASE_URL": "", "REDIS_URL": "", **settings})
        upgrade(app)
        with app.app_context():
            yield app.config["SETTINGS"]
    finally:
        shutil.rmtree(home)


def timed(work: Coroutine[Any, Any, object], *, profile: bool = False) -> Timed:
    """Run a coroutine to its end. With `profile`, print to standard error where its time went."""
    profiler = cProfile.Profile()
    cpu, began = time.process_time(), time.perf_counter()
    if profile:
        profiler.runcall(asyncio.run, work)
    else:
        asyncio.run(work)
    found = Timed(time.perf_counter() - began, time.process_time() - cpu)
    if profile:
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(45)
    return found
