"""Kills and pauses processes of a running Parlor at random, by a seed, and writes down what it did and when."""

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.chaos.harms import STILL, Harm, do, felt_by
from tests.stack import Stack

SERVING = "serving"  # the process behind `web` that serves, whose parent starts another
PAUSED = "paused turns"  # the worker, stopped for longer than its leases last, and then let go on
CHILD_OF = {SERVING: "web", PAUSED: "turns"}
LEASE = 2.0  # seconds that a worker's turn is its own
PAUSE = LEASE + 0.7
LONGEST_PEACE = timedelta(seconds=60)  # after which even a process that does nothing is struck again
LONGEST_WORK = timedelta(seconds=8)  # that a process is left to do once it works again


@dataclass(frozen=True)
class Blow:
    """One thing that was done to a process, from `at` on; `until` is when it was let go on, if it was only paused."""

    victim: str
    at: datetime
    until: datetime | None = None


class Killer(threading.Thread):
    """Strikes each victim once, as soon as it may, and then any of them, until `stop` is set; `harms` are victims, too.

    A process that was struck is left in peace until `works(name, since)` says that it does its work again, and a
    little longer, so that there is always something to break, however slow the machine.
    """

    def __init__(
        self,
        stack: Stack,
        processes: Sequence[str],
        harms: Mapping[str, Harm],
        seed: str,
        stop: threading.Event,
        works: Callable[[str, datetime], bool],
    ) -> None:
        super().__init__(name="killer", daemon=True)
        self.blows: list[Blow] = []
        self.failure: BaseException | None = None
        self._rng = random.Random(seed)
        self._victims = [*processes, *harms]
        self.to_begin_with = self._rng.sample(self._victims, len(self._victims))
        self._stack = stack
        self._harms = harms
        self._stop_it = stop
        self._works = works
        self._struck: dict[str, datetime] = {}
        self._left_until: dict[str, datetime] = {}  # of those that work again
        self.recovered: dict[str, list[float]] = {}  # seconds until the work was done again, by victim
        self._victim_of: dict[str, str] = {}  # what was last done to a process

    def run(self) -> None:
        try:
            while not self._stop_it.wait(self._rng.uniform(0.2, 1.8)):
                order = [*self.to_begin_with, *self._rng.sample(self._victims, len(self._victims))]
                struck = next((victim for victim in order if self._strike(victim)), None)
                self._look()
                self.to_begin_with = [victim for victim in self.to_begin_with if victim != struck]
        except BaseException as error:
            self.failure = error

    @property
    def count(self) -> Counter[str]:
        """How often each victim was struck."""
        return Counter(blow.victim for blow in self.blows)

    def _look(self) -> None:
        """Note who works again; a look may come a second or two late."""
        for name in self._struck:
            self._rested(name, datetime.now(UTC))

    def _strike(self, victim: str) -> bool:
        """False when the victim is between two lives, or to be left in peace."""
        at, name = datetime.now(UTC), self._process(victim)
        pid = pid_of(self._stack, SERVING if victim == STILL else victim if victim not in self._harms else name)
        if pid is None or not self._rested(name, at):
            return False
        with contextlib.suppress(ProcessLookupError):
            if victim in self._harms:
                do(self._harms[victim], self._stack, pid)
            elif victim == PAUSED:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(PAUSE)
                os.kill(pid, signal.SIGCONT)
            else:
                os.kill(pid, signal.SIGKILL)
        self._struck[name] = datetime.now(UTC)
        self._left_until.pop(name, None)
        self._victim_of[name] = victim
        self.blows.append(Blow(victim, at, self._struck[name] if victim == PAUSED else None))
        return True

    def _process(self, victim: str) -> str:
        """The supervisor's child that a victim is, or belongs to."""
        return felt_by(victim) if victim in self._harms else CHILD_OF.get(victim, victim)

    def _rested(self, name: str, now: datetime) -> bool:
        struck = self._struck.get(name)
        if struck is None or now - struck > LONGEST_PEACE:
            return True
        if name not in self._left_until and self._works(name, struck):
            seconds = (datetime.now(UTC) - struck).total_seconds()
            self.recovered.setdefault(self._victim_of[name], []).append(seconds)
            self._left_until[name] = now + self._rng.uniform(0, 1) * LONGEST_WORK
        return now > self._left_until.get(name, now)


def pid_of(stack: Stack, victim: str) -> int | None:
    """The number of a process, or of the one that serves; None between two lives."""
    try:
        pid = stack.pid(CHILD_OF.get(victim, victim))
        if victim != SERVING:
            return pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0]) if children else None
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return None
