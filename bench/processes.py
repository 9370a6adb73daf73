"""Processes of a benchmark: servers that are started and surely ended, and what /proc says of them (on Linux)."""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workers.parent_death import end_with

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 60.0
STOP_SECONDS = 20.0
_TICKS = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """Why a benchmark cannot continue, in one line."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The resources that a process has used so far."""

    cpu: float  # seconds, user and system
    main_thread: float  # the first thread's part of it
    rss: float  # MiB
    peak: float  # MiB, since the process started


def usage(pid: int) -> Usage:
    """The process's CPU time and memory, from /proc."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines())
    rss, peak = (int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return Usage(_cpu(f"/proc/{pid}/stat"), _cpu(f"/proc/{pid}/task/{pid}/stat"), rss, peak)


def together(pids: Sequence[int]) -> Usage:
    """The total that several processes have used."""
    each = [usage(pid) for pid in pids]
    return Usage(*(sum(getattr(one, name) for one in each) for name in ("cpu", "main_thread", "rss", "peak")))


def _cpu(stat: str) -> float:
    fields = Path(stat).read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def busy_seconds() -> float:
    """CPU seconds that the whole machine has been busy since it started."""
    user, nice, system, _idle, _waiting, *rest = map(
        int, Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + sum(rest[:2])) / _TICKS


def yardstick_ms() -> float:
    """The shortest time that a fixed piece of Python currently takes on this machine."""
    times = []
    for _ in range(5):
        begun = time.process_time()
        sum(number * number for number in range(300_000))
        times.append(1000 * (time.process_time() - begun))
    return min(times)


def only_child(pid: int) -> int:
    """The one child of a process: gunicorn's worker."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    if len(children) != 1:
        raise BenchError(f"expected one process under {pid}, got {len(children)}")
    return int(children[0])


def free_port() -> int:
    """A loopback port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def allow_many_sockets(wanted: int) -> None:
    """Raise the soft limit of open files, which processes started later inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise BenchError(f"expected a limit of at least {wanted} open files, got {hard}; raise it with ulimit -Hn")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


class Server:
    """A server in its own session. It ends with the block, and the system ends it if the benchmark is killed."""

    def __init__(self, name: str, module: str, arguments: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        self.name = name
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=ROOT,
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=end_with(os.getpid()),
            )

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Wait for the server to be ready. Raises BenchError with its last output line if it is not ready in time."""
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            ended = self.process.poll() is not None
            if ended or time.monotonic() > deadline:
                why = f"it ended with exit code {self.process.returncode}" if ended else "it gave no answer in time"
                raise BenchError(f"{self.name} did not start: {why}; it said: {self.last_words()}")
            time.sleep(0.05)

    def output(self) -> str:
        """Everything the server has printed."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def last_words(self) -> str:
        """The last line that the server has printed."""
        return next((line for line in reversed(self.output().splitlines()) if line.strip()), "nothing")

    def stop(self) -> None:
        """Ask the server to end, and kill its session when it does not."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def answers(url: str) -> bool:
    """Whether a server answers a request with 200."""
    try:
        with urllib.request.urlopen(url, timeout=1) as response:  # noqa: S310 - a loopback address
            return bool(response.status == 200)
    except OSError:
        return False
