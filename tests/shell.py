"""`flask` as a shell starts it: a command in a process of its own, in which no other command was ever loaded.

The processes are forked from one that has loaded the app and no command, because to load the app takes two seconds of
processor time, and to fork a hundredth of one. `python -m tests.shell` is that process: it reads a JSON object a line,
and answers with the exit code.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tests.stack import PATIENCE, ROOT


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command has come to, under the names that click's Result has."""

    exit_code: int
    stdout_bytes: bytes
    stderr_bytes: bytes

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode()

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode()

    @property
    def output(self) -> str:
        """All that was printed; unlike click's, one stream after the other."""
        return self.stdout + self.stderr


class Shell:
    """Runs commands of `flask`."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.shell"]
        self._server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def flask(self, *lines: Sequence[object], env: Mapping[str, str] | None = None, typed: bytes = b"") -> Finished:
        """Run the command lines, without `flask` at their head, in one process, up to the first that fails."""
        with tempfile.TemporaryDirectory(prefix="parlor-") as folder:
            (Path(folder) / "in").write_bytes(typed)
            request = {"lines": [[*map(str, line)] for line in lines], "env": {**os.environ, **(env or {})}}
            assert self._server.stdin
            assert self._server.stdout
            self._server.stdin.write(json.dumps({**request, "folder": folder}).encode() + b"\n")
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            return Finished(code, *((Path(folder) / name).read_bytes() for name in ("out", "err")))

    def python(self, program: str, *arguments: str, env: Mapping[str, str] | None = None) -> Finished:
        """Run a program, as `python -c` does, in a process that has loaded the app."""
        return self.flask(["-c", program, *arguments], env=env)

    def close(self) -> None:
        assert self._server.stdin
        self._server.stdin.close()
        self._server.wait(PATIENCE)


# ---- The process that is forked ---------------------------------------------


def _serve() -> None:
    import app.factory  # noqa: F401 - what every command needs

    gc.freeze()  # a fork that looks through what it shares has to copy it
    for line in sys.stdin.buffer:
        request = json.loads(line)
        child = os.fork() or _run(**request)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(lines: Sequence[Sequence[str]], env: Mapping[str, str], folder: str) -> NoReturn:
    code: Any = 1
    try:
        for number, (name, flags) in enumerate({"in": os.O_RDONLY, "out": _NEW, "err": _NEW}.items()):
            os.dup2(os.open(f"{folder}/{name}", flags, 0o600), number)
        os.environ.clear()
        os.environ.update(env)
        code = next(filter(None, map(run_flask, lines)), 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run_flask(line: Sequence[str]) -> int:
    """Run a command line, without `flask` at its head, in this process; returns the exit code. `-c` runs a program."""
    from flask.cli import cli

    if line[:1] == ["-c"]:
        sys.argv = ["-c", *line[2:]]
        exec(line[1], {"__name__": "__main__"})  # noqa: S102 - a test's own
        return 0
    try:
        cli.main(args=[*line], prog_name="flask")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    return 0


_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC

if __name__ == "__main__":
    _serve()
