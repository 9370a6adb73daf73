"""A process forked from another: it is what a new process would be, and shares the memory of what is loaded."""

import json
import os
import subprocess
import sys

from tests.stack import PATIENCE, ROOT


def forked(name: str) -> list[str]:
    """What a program of `tests.forked_programs` prints in a fork, and its exit code after that."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.forked_programs", name],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return done.stdout.splitlines()


def test_a_fork_is_what_its_program_would_be_if_it_was_started_anew() -> None:
    line, code = forked("tell")
    about = json.loads(line)
    assert about["command"] == f"{sys.executable} -m tests.forked_programs --one two"
    assert about["arguments"] == ["--one", "two"]
    assert about["leads a session"]
    assert about["variable"] == "handed down"
    assert about["nice"] == min(19, os.nice(0) + 3)
    assert code == "7"


def test_a_fork_has_no_file_and_no_handler_of_its_parent_but_ignores_what_that_ignores() -> None:
    about = json.loads(forked("tell")[0])
    assert [file.partition(":")[0] for file in about["files"]] == ["/dev/null", "pipe", "pipe"]
    assert about["handlers"] == ["<Handlers.SIG_DFL: 0>", "<Handlers.SIG_IGN: 1>"]
    assert about["blocked"] == 0


def test_a_fork_ends_as_an_interpreter_does() -> None:
    assert forked("last_words") == ["a reason", "a thread", "done at the end", "1"]
    *traceback, code = forked("fail")
    assert traceback[-1] == "ValueError: a mistake"
    assert code == "1"


def test_no_request_to_end_is_lost_however_early_it_comes() -> None:
    assert forked("asked_to_end_at_once") == ["-15"] * 100


def test_what_is_loaded_before_forks_starts_no_thread_and_opens_nothing() -> None:
    script = """
import os
from pathlib import Path
from app.core.config import load_settings
from workers import shared_modules

def open_files():
    return {path.name: os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.exists()}

before = open_files()
for url in ("sqlite://", "postgresql://nobody@127.0.0.1/none"):
    shared_modules.load(load_settings({"DATABASE_URL": url}))
print(len(list(Path("/proc/self/task").iterdir())), open_files() == before)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout, done.stderr) == ("1 True\n", "")
