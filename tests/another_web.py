"""A second web process on the data of a running Parlor, under settings of its own: cheaper than a second Parlor."""

import contextlib
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping

from tests.stack import PATIENCE, ROOT, Stack, free_port, wait_until


@contextlib.contextmanager
def another_web(stack: Stack, env: Mapping[str, str]) -> Iterator[str]:
    """The address of a web process with `env` laid over the stack's environment, as long as the block lasts."""
    port = str(free_port())
    command = [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "wsgi:app"]
    with (stack.home / "logs" / f"web-{port}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env={**stack.env, "PORT": port, **env}, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _answers(url), "an answer from the second web process")
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url + "/healthz", timeout=2) as response:  # noqa: S310 - our own address
            return bool(response.status == 200)
    except OSError:
        return False
