"""The processes of a training: which one this is, and how it ends with its parent. Loads no torch.

Source: the environment variables are those of torchrun and `accelerate launch`.
"""

import os
import signal
import time

INTERRUPTED = 130  # the exit code of a training that somebody stopped
LAUNCHED_WITH = "TRAINING_LAUNCHED_WITH"  # tells the processes what to call their launcher
_PARENT_EVERY = 0.5  # seconds between checks that the starting process is still alive


def processes() -> int:
    """How many processes train together; 1 if several were not started."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def process_number() -> int:
    """The number of this process, from 0; 0 is the main one, which writes files and reports progress."""
    return int(os.environ.get("RANK", "0"))


def stop_without(parent: int, by: int = signal.SIGTERM) -> None:
    """Stop this process with a checkpoint once its parent is gone, as nothing else could stop it then.

    Works on any platform that has processes.
    """
    while os.getppid() == parent:
        time.sleep(_PARENT_EVERY)
    os.kill(os.getpid(), by)
