"""`python -m workers.supervisor` for tests, forked from a process that has loaded it and what its own forks share: that
takes one and a half seconds of processor time.
"""

import gc
import os
import sys
from importlib import import_module

from setproctitle import getproctitle, setproctitle

from app.jobs import process
from tests.fork_server import serve
from tests.trainings import ForkingSubprocess
from workers import shared_modules, supervisor

READS_SETTINGS = "workers.celery_app"  # when it is loaded, and each Parlor has its own


def _supervise(_arguments: list[str]) -> int:
    vars(process)["subprocess"] = ForkingSubprocess()  # of trainings, which the workers begin
    setproctitle(f"{sys.executable} -m {supervisor.__name__}")
    return supervisor.main()


if __name__ == "__main__":
    setproctitle(getproctitle())  # titles are written where the first environment lies, as long as it is there
    os.environ["NOSETPS"] = "1"  # as the supervisor has it when it loads Celery
    for each in shared_modules.MODULES:
        if each != READS_SETTINGS:
            import_module(each)
    gc.freeze()
    serve(_supervise)
