"""Kills web and worker processes of a Parlor with bots in it, by a seed; and a second web process beside the first."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from types import TracebackType

from tests.chaos.killer import SERVING, pid_of
from tests.stack import PATIENCE, ROOT, Stack, free_port, wait_until

SECOND = "second web"
VICTIMS = ("web", SERVING, "turns", "upkeep")


class SecondWeb:
    """A web process on the data of a running Parlor, on a port of its own, which can be killed and comes back."""

    def __init__(self, parlor: Stack) -> None:
        port = str(free_port())
        self.url = f"http://127.0.0.1:{port}"
        self._env = {**parlor.env, "PORT": port}
        self._log = parlor.home / "logs" / "second-web.log"
        self._process: subprocess.Popen[bytes]

    def __enter__(self) -> "SecondWeb":
        self._start()
        wait_until(self.answers, "the second web process")
        return self

    def __exit__(self, _type: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        self._kill()

    def restart(self) -> None:
        """Kill it with all that it started, and start another."""
        self._kill()
        self._start()

    def answers(self) -> bool:
        """Whether pages come from it."""
        return _answers(self.url)

    def _start(self) -> None:
        command = [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "wsgi:app"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=self._env, stdout=log, stderr=log, start_new_session=True
            )

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE)


class StudyKiller(threading.Thread):
    """Kills one process after the other until `stop`; a web process that was killed serves again before the next."""

    def __init__(self, parlor: Stack, second: SecondWeb | None, seed: int, every: float) -> None:
        super().__init__(name="study killer", daemon=True)
        self.count: Counter[str] = Counter()
        self._parlor, self._second, self._every = parlor, second, every
        self._rng = random.Random(seed)
        self._ended = threading.Event()

    def stop(self) -> None:
        """Kill nothing more."""
        self._ended.set()
        self.join(PATIENCE)

    def run(self) -> None:
        victims = [*VICTIMS, *([SECOND] if self._second else [])]
        while not self._ended.wait(self._rng.uniform(0.5, 1.5) * self._every):
            victim = self._rng.choice(victims)
            if victim == SECOND and self._second is not None:
                self._second.restart()
            elif (pid := pid_of(self._parlor, victim)) is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            else:
                continue
            self.count[victim] += 1
            urls = [self._parlor.url, *([self._second.url] if self._second else [])]
            while not self._ended.is_set() and not all(map(_answers, urls)):
                time.sleep(0.3)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=5) as response:  # noqa: S310 - our own address
            return bool(response.status == 200)
    except OSError:
        return False
