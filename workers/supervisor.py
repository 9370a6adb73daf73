"""Starts Parlor on one machine and keeps it running: `make run`, or `python -m workers.supervisor`.

It runs its checks, starts the broker and the web process, brings the database up to date, starts the workers, the
process of local models and upkeep, prints where to go, restarts whatever dies, and stops everything on Ctrl-C, SIGTERM
or SIGHUP. All except broker and web process are forks of the supervisor, which loads their shared modules once
(`workers.shared_modules`): they start at once and share its memory. The web process starts from scratch, as gevent has
to patch before anything is loaded. The listening socket belongs to the supervisor and is passed to the web process: a
port that is taken is detected before anything else happens, and while the web process is being replaced, clients wait
instead of being refused.
"""

import contextlib
import errno
import fcntl
import http.client
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import IO

from dotenv import dotenv_values

from app import training_part
from app.core import logs
from app.core.config import NO_BROKER, QUEUES, ROOT, Settings, load_settings
from app.core.disk import is_full
from app.core.errors import AppError, Conflict, Invalid, Verbatim
from app.core.queues import BATCH, TURNS
from workers import broker
from workers import training_part as installation
from workers.forked_process import Entry, ForkedProcess
from workers.managed_process import ManagedProcess, Pauses, Program, end_leftover, ending
from workers.sockets import make_folder_of

TICK = 0.1  # seconds between checks of the children
START_SECONDS = 60.0  # of waiting before a line says for what
MOST_FAILED_STARTS = 5  # by a program that ends itself; by then a passing shortage would be over
STOP_SECONDS = 5.0
STOP_TRAINING_SECONDS = 35.0  # a step has to end, and a checkpoint to be written
SAME_REQUEST = 1.0  # seconds; make forwards a signal that its whole group received, so one request arrives twice
OWN_SILENCE = 5.0  # seconds between checks after which the supervisor, or the machine, must have been stopped
BACKLOG = 2048
PRIVATE = 0o077  # files of Parlor's processes are private to their owner
WRONG_SETTING = 2  # exit code: somebody has to change a setting
# Each group stops while what it needs still runs.
STOPPING_ORDER = (("web",), ("turns", "batch", "train", "upkeep", "training-part"), ("models",), ("broker",))
INSTALL_AGAIN = 600.0  # seconds until the training part is tried again, after a try that said why it failed


class StartError(AppError):
    """A process did not start."""

    code = "not_started"
    status = 500


class Supervisor:
    """The children of one PARLOR_HOME, from their start to their end."""

    def __init__(self, settings: Settings, server: Path | None, listener: socket.socket) -> None:
        """`server` is the Redis server to start, if one is to be started."""
        self._settings = settings
        self._stop_asked_at: float | None = None
        self._in_a_hurry = False
        self._installer: ManagedProcess | None = None  # of the training part, until that is installed
        self._is_served = False  # whether the web process has answered since the start
        self._looked_at = time.monotonic()
        environment = {name: value for name, value in dotenv_values(ROOT / ".env").items() if value is not None}
        # A variable that is set wins over its line in .env, as it does in app.core.config.
        self._environment = environment | os.environ
        if not settings.has_broker:
            self._environment["REDIS_URL"] = settings.REDIS_URL
        if _holds_models(settings):
            self._environment["MODELS_PROCESS"] = "true"
        # The web process loads while the database is brought up to date, and serves when the gate's far end is closed.
        near, far = os.pipe()
        self._gate = open(far, "wb")  # noqa: PTH123, SIM115 - a file descriptor, closed by _start_all or _stop_all
        self._trainer: ManagedProcess | None = None  # the worker of trainings
        self._children = [self._managed(program) for program in programs(settings, server, listener.fileno(), near)]

    def _managed(self, program: Program) -> ManagedProcess:
        home, most_bytes = self._settings.home, int(self._settings.LOG_MEGABYTES * 1_000_000)
        return ManagedProcess(program, home / "run", home / "logs", self._environment, most_bytes)

    def run(self) -> None:
        """Start everything, print where to go once the web process answers, and run until asked to stop."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup is respected
                signal.signal(number, self._ask_to_stop)
        try:
            if self._settings.has_broker and self._settings.REDIS_URL:
                self._wait_for_redis()
            if self._stop_asked_at is None:
                self._start_all()
            while self._stop_asked_at is None:
                self._keep_alive()
                time.sleep(TICK)
        except AppError:
            self._in_a_hurry = True  # nobody has been served yet
            raise
        finally:
            self._stop_all()

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        if self._stop_asked_at is None:
            self._stop_asked_at = time.monotonic()
        elif time.monotonic() - self._stop_asked_at > SAME_REQUEST:
            self._in_a_hurry = True

    def _start_all(self) -> None:
        waiting = {child.name: child for child in self._children}
        embedded = waiting.pop("broker", None)
        if embedded:
            _start_first(embedded)
        _start_first(waiting.pop("web"))
        # Not earlier: the web process takes longest to load, and does so meanwhile.
        import_module("workers.shared_modules").load(self._settings)
        admin_link = self._prepare_database()
        self._gate.close()
        if embedded:
            self._wait_for("the broker", lambda: broker.answers(self._settings.redis_url))
        self._wait_for("the web process", lambda: web_answers(self._settings))
        self._is_served = True
        if self._stop_asked_at is None:
            # Not earlier: on two cores that would delay the first page by another second.
            self._trainer = waiting.pop("train", None)
            for child in waiting.values():
                _start_first(child)
            say(greeting(self._settings, admin_link))
            self._see_to_training_part()

    def _see_to_training_part(self) -> None:
        """Start the worker of trainings, or the installer of the packages that it needs."""
        if self._is_to_be_installed():
            program = Program("training-part", Entry("workers.training_part:main", nice=self._settings.WORK_NICENESS))
            self._installer = self._managed(program)
            self._children.append(self._installer)
            _start_first(self._installer)
        elif self._trainer is not None:
            _start_first(self._trainer)

    def _is_to_be_installed(self) -> bool:
        """Whether the training part is missing, wanted and installable; prints why if it cannot be installed."""
        reason = ""
        try:
            if training_part.lacking() is None and installation.is_current():
                return False
            if self._settings.PARLOR_TRAINING == "off":
                training_part.record_missing(training_part.Lacking(is_off=True))
                return False
            reason = installation.is_possible()
            state = training_part.Lacking("asking pip", error=reason, is_off=bool(reason), pid=os.getpid())
            training_part.record_missing(state)
            if not reason:
                return True
        except OSError as error:
            reason = reason or str(error)
        say(f"torch and what else trains models cannot be installed here: {reason}; pages and API models work without")
        return False

    def _follow_installer(self, child: ManagedProcess, end: str) -> None:
        """Handle the end of the installer: start what waits for it, or set when it tries again."""
        if end == ending(0) and training_part.lacking() is None:
            self._children.remove(child)
            self._installer = child.start_at = None
            if self._trainer is not None:
                _start_first(self._trainer)
        elif end == ending(installation.FAILED):  # it has said why
            child.start_at = time.monotonic() + INSTALL_AGAIN

    def _prepare_database(self) -> str:
        """Bring the database up to date, retrying however often that is killed; returns an admin link, or nothing if
        asked to stop. Raises Invalid where trying again cannot help.
        """
        pauses, waiting = Pauses(), _Waiting()
        while self._stop_asked_at is None:
            code, link, complaint = self._run_preparation()
            last = complaint.splitlines()[-1] if complaint else ""
            if code == 0:
                return link
            if code == WRONG_SETTING:
                raise AppError(last.removeprefix("error: "), code=Invalid.code)
            if self._stop_asked_at is None:
                pause = pauses.next()
                if code == os.EX_TEMPFAIL:
                    waiting.say(last.removeprefix("error: "))
                else:
                    reason = f" ({last})" if last else ""
                    say(f"the preparation of the database {ending(code)}{reason}; it starts again in {pause:.1f} s")
                self._wait_until(time.monotonic() + pause)
        return ""

    def _wait_for_redis(self) -> None:
        """Wait until the Redis server named by a setting answers. Raises Invalid where it admits nobody."""
        pauses, waiting = Pauses(), _Waiting()
        while self._stop_asked_at is None and (silence := broker.silence_of(self._settings.redis_url)) is not None:
            waiting.say(f"REDIS_URL: the Redis server does not answer yet: {silence}")
            self._wait_until(time.monotonic() + pauses.next())

    def _run_preparation(self) -> tuple[int, str, str]:
        """Try once; returns the exit code (or minus the signal that killed it), the link, and the error output."""
        with _Pipe() as link, _Pipe() as complaint:
            try:
                process = ForkedProcess(Entry("workers.prepare:main"), self._environment, link.writer, complaint.writer)
            except OSError as error:  # no process or memory available
                return 1, "", str(error)
            while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                if self._stop_asked_at is not None:
                    os.kill(process.pid, signal.SIGKILL)
                link.read()
                complaint.read()
                self._keep_alive()
                time.sleep(TICK / 4)
            code = process.wait()
            said, complained = link.read(), complaint.read()
        if code and complained:
            with contextlib.suppress(OSError):
                (self._settings.home / "logs" / "prepare.log").write_text(complained + "\n", encoding="utf-8")
        return code, said, complained

    def _wait_until(self, moment: float) -> None:
        self._wait_for("the clock", lambda: time.monotonic() >= moment)

    def _wait_for(self, what: str, ready: Callable[[], bool]) -> None:
        """Wait until `ready`, keeping alive what has been started. Raises StartError where that cannot be started."""
        said_at = time.monotonic()
        while self._stop_asked_at is None and not ready():
            self._keep_alive()
            if time.monotonic() - said_at > START_SECONDS:
                said_at = time.monotonic()
                say(f"still waiting for an answer from {what}; look into {self._settings.home / 'logs'}")
            time.sleep(TICK / 4)

    def _keep_alive(self) -> None:
        for child in list(self._children):
            end = child.died()
            if end and not self._is_served:
                _refuse_what_cannot_start(child)
            if end or self._is_served:  # a start that is refused says so in one line
                self._show_output(child)
            if end and child is self._installer:
                self._follow_installer(child, end)
            if end and child.start_at is not None and end != ending(installation.FAILED):
                delay = child.start_at - time.monotonic()
                say(f"{child.name} {end}; it starts again {f'in {delay:.1f} s' if delay > 0 else 'now'}")
            if child.start_at is not None and time.monotonic() >= child.start_at:
                child.start()
        self._replace_hung()

    def _replace_hung(self) -> None:
        """Kill each child that was silent for PROCESS_TIMEOUT seconds; it is restarted as if it had died."""
        now, last = time.monotonic(), self._looked_at
        self._looked_at = now
        for child in self._children:
            silent = child.silent_for()
            if now - last > OWN_SILENCE:  # the children may have been stopped, too, with no time for a heartbeat
                child.forgive()
            elif 0 < self._settings.PROCESS_TIMEOUT < silent:
                say(f"{child.name} sent no heartbeat for {silent:.0f} s and is killed")
                child.kill()
                child.forgive()

    def _stop_all(self) -> None:
        """End all children in order: SIGTERM, then SIGKILL after a few seconds or at a second request to stop."""
        self._gate.close()
        for names in STOPPING_ORDER:
            group = [child for child in self._children if child.name in names]
            for child in group:
                child.terminate()
            asked_at = time.monotonic()
            while any(child.alive for child in group):
                for child in group:
                    patience = STOP_TRAINING_SECONDS if child.name == "train" else STOP_SECONDS
                    if self._in_a_hurry or time.monotonic() - asked_at > patience:
                        child.kill()
                for child in group:
                    child.died()
                time.sleep(TICK / 4)

    @staticmethod
    def _show_output(child: ManagedProcess) -> None:
        for line in child.new_lines():
            if line.strip():
                say(f"{child.name:>6} | {line}")


def _start_first(child: ManagedProcess) -> None:
    """Start a child for the first time. Raises StartError where no later try would help either."""
    try:
        child.start()
    except OSError as error:
        if is_full(error):
            raise
        raise StartError(f"{child.name} cannot be started: {error}") from None


def _refuse_what_cannot_start(child: ManagedProcess) -> None:
    """Raise StartError, before anyone is served, for a child that reports that it cannot start."""
    lines = child.last_lines()
    if child.name == "web" and (refusals := [line for line in lines if line.lower().startswith("error: ")]):
        raise AppError(refusals[-1].partition(": ")[2], code=Invalid.code)
    if child.failed_starts >= MOST_FAILED_STARTS:
        raise StartError(
            f"{child.name} ended by itself {child.failed_starts} times while Parlor was starting"
            f" ({lines[-1].strip() if lines else 'without a word'}); the reason is in {child.log_path}"
        )


class _Waiting:
    """Prints why the start is waiting: at first, once every START_SECONDS, and when the reason changes."""

    def __init__(self) -> None:
        self._reason, self._said_at = "", 0.0

    def say(self, reason: str) -> None:
        """Report that something is not ready yet, and why."""
        if reason != self._reason or time.monotonic() - self._said_at > START_SECONDS:
            self._reason, self._said_at = reason, time.monotonic()
            say(f"waiting: {reason}")


class _Pipe:
    """A process's short output, read without blocking."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._said = b""

    def read(self) -> str:
        """Everything written so far."""
        with contextlib.suppress(BlockingIOError):
            while more := os.read(self._reader, 65536):
                self._said += more
        return self._said.decode(errors="replace").strip()

    def __enter__(self) -> "_Pipe":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._reader)
        os.close(self.writer)


def programs(settings: Settings, server: Path | None, listener: int, gate: int) -> list[Program]:
    """The programs that run beside the supervisor; the web process serves the listening socket once the gate is open.

    `server` is the Redis server to start, if one is to be started.
    """
    gunicorn = [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "--bind", f"fd://{listener}"]
    gunicorn += ["--env", f"PARLOR_GATE={gate}", "wsgi:app"]
    # Whoever plays live comes first: rounds and trainings take what processor time is left over.
    worker = celery if settings.has_broker else polling
    workers = {
        "turns": worker("turns", settings.TURN_THREADS),
        "batch": worker("batch", settings.ROUND_THREADS, settings.WORK_NICENESS),
        "train": worker("train", 1, settings.WORK_NICENESS),
    }
    # Pages go before models, and models before trainings: people may wait for either of the two first.
    models = Entry("workers.models:main", nice=settings.WORK_NICENESS // 2)
    found = [
        Program("web", gunicorn, fds=(listener, gate)),
        *([Program("models", models)] if _holds_models(settings) else ()),
        *(Program(queue, workers[queue]) for queue in QUEUES if queue in settings.worker_queues),
        Program("upkeep", Entry("workers.upkeep:main")),
    ]
    if server is not None:
        # Its warnings concern the machine's kernel settings and mean nothing to players; they are in its log.
        command = broker.command(server, settings.redis_socket, settings.home / "broker")
        found.insert(0, Program("broker", command, echo=False, answers=broker.Probe(settings.redis_socket)))
    return found


def _holds_models(settings: Settings) -> bool:
    """Whether workers that play with local models start here."""
    return not {TURNS, BATCH}.isdisjoint(settings.worker_queues)


def celery(queue: str, threads: int, nice: int = 0) -> Entry:
    """The worker of a queue."""
    which = ("-n", f"{queue}@%h", "-Q", queue, "-c", str(threads))  # first: `ps` cuts a long command short
    others = ("-P", "threads", "--loglevel", "warning")
    # Workers have nothing to gossip about; a ping (flask doctor) needs none of the three.
    alone = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    arguments = ("--quiet", "-A", "workers.celery_app", "worker", *which, *others, *alone)
    return Entry("celery.__main__:main", arguments, nice)


def polling(queue: str, threads: int, nice: int = 0) -> Entry:
    """The worker of a queue where there is no broker."""
    return Entry("workers.polling:main", (queue, str(threads)), nice)


def web_answers(settings: Settings) -> bool:
    """Whether the web process answers a request within half a second, even if only that the disk is full."""
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.HOST, settings.HOST)  # noqa: S104
    connection = http.client.HTTPConnection(host, settings.PORT, timeout=0.5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status in (http.HTTPStatus.OK, http.HTTPStatus.SERVICE_UNAVAILABLE)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def listen(host: str, port: int) -> socket.socket:
    """The socket that the web process will serve. Raises Invalid when the port is taken or unavailable."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            used = Verbatim(f"{port}, which another program uses")
            refusal = Invalid("PORT", expected="a free port", got=used, remedy="choose another one")
        elif error.errno == errno.EACCES:
            refusal = Invalid(
                "PORT", expected="a port that this user may open", got=port, remedy="choose one above 1023"
            )
        else:
            given = Verbatim(f"{host} ({error.strerror})")
            refusal = Invalid("HOST", expected="an address of this machine", got=given, remedy="mend it in HOST")
        raise refusal from None
    return listener


@contextlib.contextmanager
def claim(home: Path) -> Iterator[None]:
    """Make the folders, hold the supervisor's lock on them, and end what a killed supervisor left behind."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("run", "broker", "logs"):
            (home / name).mkdir(exist_ok=True)
            (home / name).chmod(0o700)
        lock = (home / "run" / "supervisor.lock").open("a+", encoding="utf-8")
    except OSError as error:
        raise Invalid(
            "PARLOR_HOME",
            expected="a folder that this user may write to",
            got=Verbatim(f"{home} ({error.strerror})"),
            remedy="choose another one",
        ) from None
    with lock:
        _lock_or_refuse(lock, home)
        for pid_path in sorted((home / "run").glob("*.pid")):
            end_leftover(pid_path)
        yield


def _lock_or_refuse(lock: IO[str], home: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        raise Conflict(
            None,
            expected="a PARLOR_HOME that nobody runs yet",
            got=Verbatim(f"{home}, which the supervisor with process number {lock.read().strip()} runs"),
            remedy="stop that one, or choose another PARLOR_HOME",
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()


def greeting(settings: Settings, admin_link: str) -> str:
    """The message that says where to go."""
    lines = [
        "Parlor is running.",
        f"  Play    {settings.public_url}/",
        f"  Admin   {admin_link}  (works once, within 30 minutes)",
        f"  Data    {settings.home}",
    ]
    if not settings.has_broker:
        lines.append("  Without a Redis server: workers look into the database, so models' turns begin a little later.")
    return "\n".join([*lines, "Ctrl-C stops everything."])


def say(text: str) -> None:
    """Print if anyone can read it; a closed terminal must not keep a process from ending."""
    with contextlib.suppress(OSError):
        print(text, flush=True)


def _open_standard_files() -> None:
    """Open any closed standard files on the null device, so that no file opened later gets one of their numbers."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


def _decide_on_broker(settings: Settings, server: Path | None) -> Settings:
    """The settings, with whether there is a broker decided for all processes and commands of this PARLOR_HOME."""
    if settings.REDIS_URL == NO_BROKER or (not settings.REDIS_URL and server is None):
        settings.no_broker_mark.touch()
        return settings.model_copy(update={"REDIS_URL": NO_BROKER})
    settings.no_broker_mark.unlink(missing_ok=True)
    if server is not None:
        make_folder_of(settings.redis_socket)
    return settings


def main() -> int:
    """Run until asked to stop. 0: stopped when asked; 1: something did not start; 2: a setting has to change."""
    os.umask(PRIVATE)
    _open_standard_files()
    logs.print_anything()
    # Processes started from scratch, and their libraries, read files as UTF-8 whatever the locale.
    os.environ.setdefault("PYTHONUTF8", "1")
    try:
        settings = load_settings()
        with claim(settings.home), listen(settings.HOST, settings.PORT) as listener:
            server = None if settings.REDIS_URL else broker.server_program()
            settings = _decide_on_broker(settings, server)
            Supervisor(settings, server, listener).run()
    except KeyboardInterrupt:
        return 0
    except AppError as error:
        say(f"error: {error.message}")
        return 1 if isinstance(error, StartError) else WRONG_SETTING
    except OSError as error:
        if is_full(error):
            wanted = f"room on the disk of {settings.home}, got none; make room and start again"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            wanted = f"files that this user may write to, got {error}; give them to this user"
        else:
            raise
        say(f"error: PARLOR_HOME: expected {wanted}")
        return WRONG_SETTING
    return 0


if __name__ == "__main__":
    sys.exit(main())
