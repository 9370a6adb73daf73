"""Small programs for tests to fork, and `python -m tests.forked_programs NAME`, which forks one of them.

In a process of its own, because the one that runs tests may have several threads. It says how the fork has ended.
"""

import atexit
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from workers.forked_process import Entry, ForkedProcess


def tell() -> int:
    """Print what this process is, in one line of JSON, and end with exit code 7."""
    files = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.exists()]
    about = {
        "command": Path("/proc/self/cmdline").read_text().rstrip("\0"),
        "arguments": sys.argv[1:],
        "leads a session": os.getsid(0) == os.getpid(),
        "files": sorted(file for file in files if not file.startswith("/proc")),
        "variable": os.environ["FORK_VARIABLE"],
        "nice": os.nice(0),
        "handlers": [repr(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGHUP)],
        "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    }
    print(json.dumps(about))
    return 7


def last_words() -> None:
    """Leave a thread and something to be done at the end, and end with a line instead of an exit code."""
    atexit.register(print, "done at the end")
    threading.Timer(0.2, print, ["a thread"]).start()
    sys.exit("a reason")


def fail() -> None:
    """End with an exception."""
    raise ValueError("a mistake")


def wait() -> None:
    """Do nothing until somebody ends it."""
    time.sleep(1000)


def _fork(name: str) -> ForkedProcess:
    entry = Entry(f"tests.forked_programs:{name}", ("--one", "two"), nice=3)
    return ForkedProcess(entry, {"FORK_VARIABLE": "handed down"}, output=1, errors=1)


def main(name: str) -> None:
    """Fork a program with much around it that is not to reach it, and print its exit code."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with socket.create_server(("127.0.0.1", 0)), Path(__file__).open():
        if name == "asked_to_end_at_once":
            for _ in range(100):
                process = _fork("wait")
                process.terminate()
                print(process.wait())
        else:
            print(_fork(name).wait(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
