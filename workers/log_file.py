"""The log of one process, which the process itself writes and the supervisor follows, shows, and keeps small."""

import contextlib
import os
import shutil
from pathlib import Path

_TAIL = 4096  # bytes searched for the last error message


class LogFile:
    """`NAME.log`, with earlier content in `NAME.log.1`, from an earlier run or this one.

    A process keeps writing to the file that it was given, so the file stays and is truncated: anything written between
    copying and truncating is lost.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path = path
        self._before = path.with_suffix(".log.1")
        self._most_bytes = most_bytes
        if path.exists():
            path.replace(self._before)
        self._writer = path.open("ab")  # appends, so that writing continues at the start of an emptied file
        self._reader = path.open("rb")
        self._begun_line = b""

    def fileno(self) -> int:
        """The file descriptor for the process to write to."""
        return self._writer.fileno()

    def last_lines(self) -> list[str]:
        """The last lines of the file, without empty ones."""
        with self._path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            return [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]

    def new_lines(self) -> list[str]:
        """The complete lines written since the last call. A file that has grown too large is restarted."""
        text = self._begun_line + self._reader.read()
        if self._reader.tell() > self._most_bytes:
            text += self._begin_anew()
        *lines, self._begun_line = text.split(b"\n")
        return [line.decode(errors="replace") for line in lines]

    def _begin_anew(self) -> bytes:
        """Move the content to the earlier log and empty the file; returns what was written in the meantime."""
        try:
            shutil.copyfile(self._path, self._before)
        except OSError:  # no room for two: the older half is worth less than the disk
            with contextlib.suppress(OSError):
                self._before.unlink(missing_ok=True)
        meanwhile = self._reader.read()
        os.ftruncate(self._writer.fileno(), 0)
        self._reader.seek(0)
        return meanwhile
