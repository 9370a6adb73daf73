"""The log of one process, which the process itself writes and the supervisor follows, shows, and keeps small."""

import contextlib
import os
import shutil
from pathlib import Path

_TAIL = 4096  # bytes that a last error message is looked for in


class LogFile:
    """`NAME.log`, and in `NAME.log.1` what was there before it: of an earlier run, or of this one.

    A process goes on writing into the file that it was given, so the file stays and is emptied: what is written in the
    moment between copying and emptying is lost.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path = path
        self._before = path.with_suffix(".log.1")
        self._most_bytes = most_bytes
        if path.exists():
            path.replace(self._before)
        self._writer = path.open("ab")  # appends, so that writing goes on at the beginning of an emptied file
        self._reader = path.open("rb")
        self._begun_line = b""

    def fileno(self) -> int:
        """Where the process is to write."""
        return self._writer.fileno()

    def last_lines(self) -> list[str]:
        """The end of what is written, without empty lines."""
        with self._path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            return [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]

    def new_lines(self) -> list[str]:
        """The whole lines that were written since the last call. A file that has grown too large begins again."""
        text = self._begun_line + self._reader.read()
        if self._reader.tell() > self._most_bytes:
            text += self._begin_anew()
        *lines, self._begun_line = text.split(b"\n")
        return [line.decode(errors="replace") for line in lines]

    def _begin_anew(self) -> bytes:
        """Keep what is there as what came before, and empty the file; returns what was written meanwhile."""
        try:
            shutil.copyfile(self._path, self._before)
        except OSError:  # no room for two: the older half is worth less than the disk
            with contextlib.suppress(OSError):
                self._before.unlink(missing_ok=True)
        meanwhile = self._reader.read()
        os.ftruncate(self._writer.fileno(), 0)
        self._reader.seek(0)
        return meanwhile
