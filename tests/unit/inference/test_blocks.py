"""Memory for keys and values that the system does not give is want of memory, which the engine survives."""

import subprocess
import sys

from app.core.config import ROOT

# What is there once torch is loaded, and 64 MiB more.
CODE = """
import resource
import torch
from pathlib import Path
from app.inference.blocks import zeros
from app.inference.requests import is_out_of_memory

taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (64 << 20), resource.getrlimit(resource.RLIMIT_AS)[1]))
try:
    zeros((1 << 28,), torch.zeros(1))
except Exception as error:
    print(type(error).__name__, is_out_of_memory(error))
"""


def test_a_block_that_there_is_no_room_for_is_want_of_memory() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "MemoryError True\n"
