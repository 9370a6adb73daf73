"""The supervisor: starts everything, keeps it running, leaves nothing behind, and refuses in one line."""

import contextlib
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.cli import checks
from app.cli.checks import OK
from app.core.errors import Conflict
from tests.stack import PATIENCE, ROOT, TURNS_ALONE, Stack, alive, running_parlor, supervisors, wait_until
from tests.tables import database, settings_of
from workers import managed_process as children
from workers.managed_process import ManagedProcess, Program, end_leftover

CHILDREN = ("broker", "web", "models", "turns", "batch", "train", "upkeep")
LIVE_PLAY = ("broker", "web", "models", "turns", "upkeep")  # with TURNS_ALONE


def refused(home: Path, port: int, **env: str) -> str:
    """What a supervisor prints that must refuse to start, with exit code 2 and in one line."""
    own = {"PARLOR_HOME": str(home), "PORT": str(port)}
    with tempfile.TemporaryFile() as output:
        process = supervisors.fork((), {**os.environ, **own, **env}, (output.fileno(),))
        assert process.wait(PATIENCE) == 2
        output.seek(0)
        said = output.read().decode()
    assert said.count("\n") == 1, said
    return said


def wait_for_each(home: Path, children: tuple[str, ...]) -> None:
    """Wait for all processes: the worker that trains starts behind the greeting, once its packages are found."""
    wait_until(lambda: {path.stem for path in (home / "run").glob("*.pid")} == set(children), "a process of each kind")


@pytest.fixture(scope="module")
def parlor() -> Iterator[Stack]:
    """One Parlor for all tests that leave it running."""
    with running_parlor(anew=True) as running:
        wait_for_each(running.home, CHILDREN)
        yield running


def test_a_start_prints_where_to_go_and_keeps_its_folders_private(parlor: Stack) -> None:
    home = parlor.home
    assert f"Play    {parlor.url}/" in parlor.output()
    assert re.search(rf"Admin   {parlor.url}/\S+  \(works once, within 30 minutes\)", parlor.output())
    assert str(home) in parlor.output()
    assert parlor.healthy()
    for name in ("run", "broker", "logs"):
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o700
    wait_until(lambda: {path.stem for path in (home / "logs").glob("*.log")} == set(CHILDREN), "a log of each process")


@pytest.mark.parametrize(
    ("number", "env", "children"),
    [
        (signal.SIGINT, {}, CHILDREN),
        pytest.param(signal.SIGTERM, TURNS_ALONE, LIVE_PLAY, marks=pytest.mark.long),
        pytest.param(signal.SIGHUP, TURNS_ALONE, LIVE_PLAY, marks=pytest.mark.long),
    ],
)
def test_a_request_to_stop_ends_everything_that_was_started(
    stack: Callable[..., Stack], home: Path, number: signal.Signals, env: dict[str, str], children: tuple[str, ...]
) -> None:
    parlor = stack(env)
    wait_for_each(home, children)
    family = parlor.family()
    assert len(family) > len(children)
    assert parlor.stop(number) == 0
    assert "killed" not in parlor.output()  # each ended in good order
    assert [pid for pid in family if alive(pid)] == []
    assert list((home / "run").glob("*.pid")) == []
    with socket.create_server(("127.0.0.1", int(parlor.env["PORT"]))):
        pass  # the port is free again


def test_whatever_is_killed_comes_back_and_a_line_says_so(parlor: Stack) -> None:
    for name in CHILDREN:
        others = {other: parlor.pid(other) for other in CHILDREN if other != name}
        line = f"{name} was killed by SIGKILL; it starts again"
        before = parlor.output().count(line)
        assert alive(parlor.kill(name))
        wait_until(lambda line=line, before=before: parlor.output().count(line) == before + 1, "a line")
        assert {other: parlor.pid(other) for other in others} == others
        assert parlor.healthy()


def test_each_process_is_named_by_the_command_that_starts_it_by_hand(parlor: Stack) -> None:
    celery = "celery --quiet -A workers.celery_app worker"
    commands = {queue: f"{celery} -n {queue}@%h -Q {queue} " for queue in ("turns", "batch", "train")}
    commands |= {"models": "workers.models", "upkeep": "workers.upkeep"}

    def title(name: str) -> str:
        return Path(f"/proc/{parlor.pid(name)}/cmdline").read_text()

    for name, command in commands.items():  # a fork first has the title of what it was forked from
        wait_until(lambda n=name, c=command: title(n).startswith(f"{sys.executable} -m {c}"), f"{name}'s title")
    assert "gunicorn" in title("web")


def test_workers_and_upkeep_share_memory_and_hold_no_file_of_another_process(parlor: Stack) -> None:
    listener = f"socket:[{_listening_inode(int(parlor.env['PORT']))}]"
    assert listener in _open_files(parlor.pid("web"))
    for name in ("models", "turns", "batch", "train", "upkeep"):
        sizes = Path(f"/proc/{parlor.pid(name)}/smaps_rollup").read_text()
        rss, pss = (int(re.search(rf"^{size}: +(\d+)", sizes, re.MULTILINE)[1]) for size in ("Rss", "Pss"))
        assert pss < 0.75 * rss
        files = _open_files(parlor.pid(name))
        assert listener not in files
        assert {Path(file).name for file in files if str(parlor.home / "logs") in file} == {f"{name}.log"}
        assert {Path(file).name for file in files if str(parlor.home / "run") in file} == {f"{name}.pid"}


def _open_files(pid: int) -> list[str]:
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.append(str(entry.readlink()))
    return found


def _listening_inode(port: int) -> str:
    rows = (row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return next(row[9] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A")


def test_whatever_hangs_is_replaced(stack: Callable[..., Stack]) -> None:
    parlor = stack({"PROCESS_TIMEOUT": "5", **TURNS_ALONE})
    settings = settings_of(parlor)
    wait_until(lambda: next(checks.workers(settings, True)).state == OK, "the worker")
    with database(parlor) as engine:
        wait_until(lambda: all(found.state == OK for found in checks.upkeep(engine)), "upkeep")
    before = {name: parlor.pid(name) for name in LIVE_PLAY}
    for name in LIVE_PLAY:
        os.killpg(before[name], signal.SIGSTOP)
    for name in LIVE_PLAY:
        wait_until(lambda name=name: f"{name} sent no heartbeat for" in parlor.output(), f"a line about {name}")
    wait_until(lambda: not any(alive(pid) for pid in before.values()), "the end of all that hung")
    wait_until(parlor.healthy, "a page")
    wait_until(lambda: next(checks.workers(settings, True)).state == OK, "the next worker")


def test_a_request_made_while_the_web_process_is_away_is_answered_by_the_next_one(parlor: Stack) -> None:
    os.killpg(parlor.pid("web"), signal.SIGKILL)  # with its workers: one of them could begin an answer and not end it
    assert parlor.healthy()  # not refused: the listening socket never closed


def test_who_comes_before_the_database_is_ready_waits_for_a_whole_page(stack: Callable[..., Stack], home: Path) -> None:
    parlor = stack(TURNS_ALONE, wait=False)
    wait_until(lambda: (home / "run" / "web.pid").exists(), "the web process")
    assert "Parlor" in parlor.get("/", timeout=PATIENCE)
    parlor.wait_until_ready()


def test_a_start_after_the_supervisor_was_killed_finds_nothing_in_its_way(stack: Callable[..., Stack]) -> None:
    first = stack(TURNS_ALONE)
    family = first.family()
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.wait()
    second = stack({"PORT": first.env["PORT"], **TURNS_ALONE})
    assert second.healthy()
    assert [pid for pid in family if alive(pid)] == []


def test_a_second_supervisor_is_refused_and_the_first_goes_on(parlor: Stack, free_port: int) -> None:
    pids = {name: parlor.pid(name) for name in CHILDREN}
    line = refused(parlor.home, free_port)
    assert str(parlor.home) in line
    assert str(parlor.process.pid) in line
    assert {name: parlor.pid(name) for name in CHILDREN} == pids
    assert parlor.healthy()


def test_a_taken_port_is_one_line_with_port_and_setting_and_starts_nothing(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = refused(home, port)
    assert line.startswith("error: PORT: ")
    assert str(port) in line
    assert list((home / "logs").iterdir()) == []
    assert not (home / "parlor.db").exists()


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"PORT": "many"}, "error: PORT: "),
        ({"HOST": "192.0.2.1"}, "error: HOST: "),
        ({"HOST": "caf\udce9"}, "error: HOST: expected text in UTF-8, got 'caf\\udce9'"),
        (
            {"PARLOR_HOME": "/nowhere/caf\udce9"},
            "error: PARLOR_HOME: expected text in UTF-8, got '/nowhere/caf\\udce9'",
        ),
        (  # where Python is told to take text for ASCII
            {"PARLOR_HOME": "/nowhere/café", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
            "error: PARLOR_HOME: expected text in UTF-8",
        ),
        ({"HOME": "/nowhere/caf\udce9", "PARLOR_HOME": "~/x"}, "error: PARLOR_HOME: expected a path in UTF-8"),
        ({"PARLOR_HOME": "/dev/null/parlor"}, "error: PARLOR_HOME: "),
        ({"REDIS_URL": "http://somewhere"}, "error: REDIS_URL: "),
        ({"DATABASE_URL": "mysql://127.0.0.1/nowhere"}, "error: DATABASE_URL: "),
        ({"DATABASE_URL": "sqlite:////dev/null/parlor.db"}, "error: DATABASE_URL: "),
    ],
)
def test_a_setting_that_cannot_be_is_one_line(home: Path, free_port: int, env: dict[str, str], expected: str) -> None:
    assert refused(home, free_port, **env).startswith(expected)


def test_embedded_parlor_connects_to_no_database_or_redis_server(parlor: Stack) -> None:
    command = [sys.executable, "-m", "flask", "doctor"]
    seen: set[int] = set()
    with subprocess.Popen(command, cwd=ROOT, env=parlor.env, stdout=subprocess.DEVNULL) as doctor:
        while doctor.poll() is None:
            parlor.get("/")
            for pid in [doctor.pid, *parlor.family()]:
                seen.update(_remote_ports(pid))
            time.sleep(0.02)
    assert seen.isdisjoint({5432, 6379}), seen


def _remote_ports(pid: int) -> set[int]:
    """The remote ports of a process's TCP connections."""
    inodes = set()
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            if (target := str(entry.readlink())).startswith("socket:["):
                inodes.add(target.removeprefix("socket:[").rstrip("]"))
        tables = Path(f"/proc/{pid}/net/tcp").read_text() + Path(f"/proc/{pid}/net/tcp6").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return set()
    rows = [line.split() for line in tables.splitlines() if ":" in line.split()[0]]
    return {int(row[2].rpartition(":")[2], 16) for row in rows if row[9] in inodes}


# One child, with a shell in place of Parlor's own programs.


@pytest.fixture
def make_child(home: Path) -> Callable[..., ManagedProcess]:
    def make(script: str, most_bytes: int = 1_000_000) -> ManagedProcess:
        return ManagedProcess(Program("example", ["/bin/sh", "-c", script]), home, home, os.environ, most_bytes)

    return make


def ended(child: ManagedProcess) -> str:
    result: list[str] = []
    wait_until(lambda: result.append(end) or True if (end := child.died()) else False, "the child's end")
    return result[0]


def test_a_child_that_dies_young_waits_twice_as_long_each_time(
    make_child: Callable[[str], ManagedProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    child = make_child("exit 3")
    for delay in (0.5, 1, 2, 4, 8, 10, 10):
        child.start()
        began = time.monotonic()
        assert ended(child) == "ended with exit code 3"
        assert child.start_at is not None
        assert began + delay <= child.start_at <= time.monotonic() + delay
    monkeypatch.setattr(children, "YOUNG", 0.0)
    child.start()
    ended(child)
    assert child.start_at <= time.monotonic()


def test_a_child_that_has_just_ended_by_itself_can_be_told_to_end(
    make_child: Callable[[str], ManagedProcess], home: Path
) -> None:
    child = make_child("exit 2")
    child.start()
    pid = int((home / "example.pid").read_text())
    wait_until(lambda: not alive(pid), "the end of the child")
    child.terminate()
    child.kill()
    assert child.died() == "ended with exit code 2"


def test_the_whole_family_of_a_dead_child_is_killed(make_child: Callable[[str], ManagedProcess], home: Path) -> None:
    child = make_child("trap '' TERM; sleep 1000 & echo $!; wait")
    child.start()
    lines: list[str] = []
    wait_until(lambda: lines.extend(child.new_lines()) or lines, "the grandchild's number")
    os.kill(int((home / "example.pid").read_text()), signal.SIGKILL)
    assert ended(child) == "was killed by SIGKILL"
    wait_until(lambda: not alive(int(lines[0])), "the grandchild's end")


def test_a_family_of_an_earlier_run_is_ended_even_when_it_does_not_listen(
    make_child: Callable[[str], ManagedProcess], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "LEFTOVER_PATIENCE", 0.3)
    child = make_child("trap '' TERM; echo ready; while :; do sleep 0.1; done")
    child.start()
    wait_until(lambda: list(child.new_lines()), "the trap")
    end_leftover(home / "example.pid")
    assert ended(child) == "was killed by SIGKILL"


def test_a_pid_file_whose_family_is_gone_harms_nobody(home: Path) -> None:
    (home / "example.pid").write_text(f"{os.getpid()}\n")  # a number that belongs to a stranger by now
    end_leftover(home / "example.pid")
    assert not (home / "example.pid").exists()


def test_a_family_that_cannot_be_ended_is_one_clear_refusal(
    make_child: Callable[[str], ManagedProcess], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "LEFTOVER_PATIENCE", 0.1)
    child = make_child("sleep 1000")
    child.start()
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    with pytest.raises(Conflict, match=r"example\.pid"):
        end_leftover(home / "example.pid")
    monkeypatch.undo()
    child.kill()
    ended(child)


def test_a_log_is_kept_once_when_its_program_starts_anew(
    make_child: Callable[[str], ManagedProcess], home: Path
) -> None:
    for word in ("first", "second"):
        child = make_child(f"echo {word}")
        child.start()
        ended(child)
    assert (home / "example.log.1").read_text() == "first\n"
    assert (home / "example.log").read_text() == "second\n"


def test_a_log_begins_anew_when_it_is_large_and_what_was_before_is_kept_once(
    make_child: Callable[..., ManagedProcess], home: Path
) -> None:
    log, before, more = home / "example.log", home / "example.log.1", home / "more"
    os.mkfifo(more)
    child = make_child(f"seq -w 1 60000; read _ < {more}; seq -w 60001 60003", most_bytes=100_000)
    child.start()
    wait_until(lambda: log.stat().st_size == 360_000, "all that is printed first")
    assert child.new_lines() == [f"{number:05}" for number in range(1, 60001)]
    assert log.stat().st_size == 0
    assert before.read_text().splitlines() == [f"{number:05}" for number in range(1, 60001)]
    more.write_text("go on\n")
    ended(child)
    assert child.new_lines() == ["60001", "60002", "60003"]
    assert log.read_text() == "60001\n60002\n60003\n"
    assert before.stat().st_size == 360_000
