"""`transformers serve` as it really runs: with one checkpoint, on loopback, in a process of its own."""

import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.stack import free_port, wait_until


class TransformersServer:
    """Serves a checkpoint under its path as the model's name; can be killed and started again at its address."""

    def __init__(self, checkpoint: Path, folder: Path) -> None:
        """`folder` is for its log and for the cache of models that it lists, which stays empty."""
        self.model = str(checkpoint)
        self.kills = 0
        self._port = free_port()
        self._folder = folder
        (folder / "hub").mkdir(parents=True)  # without it /v1/models answers 500
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Self:
        self.start()
        wait_until(self._is_healthy, "a server that has loaded its checkpoint")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def start(self) -> None:
        """Begin to load the checkpoint, without waiting until it answers."""
        command = Path(sys.executable).with_name("transformers")
        address = ("--host", "127.0.0.1", "--port", str(self._port), "--device", "cpu")
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [command, "serve", self.model, *address],
                stdout=log,
                stderr=log,
                env={**os.environ, "HF_HOME": str(self._folder), "HF_HUB_OFFLINE": "1"},
            )

    def kill_and_start(self) -> None:
        """End it as a crash would, calls in flight included, and begin to start it again."""
        self._end()
        self.kills += 1
        self.start()

    def _end(self) -> None:
        assert self._process
        self._process.kill()
        self._process.wait()

    def _is_healthy(self) -> bool:
        assert self._process
        assert self._process.poll() is None, (self._folder / "log").read_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/health", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False
