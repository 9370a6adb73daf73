"""`flask` as a shell starts it: a command in a process of its own, in which no other command was ever loaded.

The processes are forked from one that has loaded the app and no command, because to load the app takes two seconds of
processor time, and to fork a hundredth of one.
"""

import gc
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile

from tests.fork_server import ForkServer, serve

_commands = ForkServer("tests.shell")


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

    def flask(self, *lines: Sequence[object], env: Mapping[str, str] | None = None, typed: bytes = b"") -> Finished:
        """Run the command lines, without `flask` at their head, in one process, up to the first that fails."""
        with TemporaryFile() as written, TemporaryFile() as output, TemporaryFile() as errors:
            written.write(typed)
            files = (output, errors, written)
            for file in files:
                file.seek(0)
            process = _commands.fork(
                [json.dumps([*map(str, line)]) for line in lines],
                {**os.environ, **(env or {})},
                [file.fileno() for file in files],
                errors_apart=True,
                reads_last=True,
            )
            code = process.wait()
            for file in files:
                file.seek(0)
            return Finished(code, output.read(), errors.read())

    def python(self, program: str, *arguments: str, env: Mapping[str, str] | None = None) -> Finished:
        """Run a program, as `python -c` does, in a process that has loaded the app."""
        return self.flask(["-c", program, *arguments], env=env)


# ---- The process that is forked ---------------------------------------------


def _run(lines: list[str]) -> int:
    return next(filter(None, (run_flask(json.loads(line)) for line in lines)), 0)


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


if __name__ == "__main__":
    import app.factory  # noqa: F401 - what every command needs

    gc.freeze()  # a fork that looks through what it shares has to copy it
    serve(_run)
