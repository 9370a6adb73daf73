"""A small disk for tests: a tmpfs that can be filled up, emptied and made larger."""

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class Volume:
    """A tmpfs of a few megabytes at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        """Leave not a byte; again whenever something was freed meanwhile."""
        with self._filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(65536)) == 65536:
                pass
            while file.write(b"x"):
                pass

    @contextmanager
    def kept_full(self) -> Iterator[None]:
        """Fill it again and again meanwhile, so that nothing finds room that was freed a moment before."""
        done = threading.Event()

        def keep() -> None:
            while not done.wait(0.005):
                self.fill()

        self.fill()
        keeper = threading.Thread(target=keep)
        keeper.start()
        try:
            yield
        finally:
            done.set()
            keeper.join()

    def make_room(self) -> None:
        self._filler.unlink()

    def resize(self, megabytes: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={megabytes}m", str(self.path)], check=True)


@contextmanager
def small_volume(path: Path, megabytes: int) -> Iterator[Volume]:
    """A volume of that size; skips the test where this user may not mount one."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk to fill")
    options = f"size={megabytes}m"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    try:
        yield Volume(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=False)
