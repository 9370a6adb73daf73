"""Where a process spends its time: py-spy's samples, summed by function and by package. The sums are pure."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

RATE = 100  # samples a second; each one stops the process briefly
_FRAME = re.compile(r"(?P<function>.+) \((?P<file>[^()]+?)(?::\d+)?\)")
_OWN = ("app", "workers", "wsgi", "bench")
_LIBRARIES = re.compile(r".*/(?:site-packages|python3\.\d+)/")


@dataclass(frozen=True, slots=True)
class Hotspot:
    """A function or a package, and its share of all samples: at the top of the stack, and anywhere in it."""

    name: str
    own: float
    cumulative: float


def start(pid: int, seconds: int, folded: Path, *, gil: bool) -> "subprocess.Popen[bytes]":
    """Start sampling a process; waiting threads are excluded, and C code counts as the Python code that called it.

    With `gil`, only the thread that holds the interpreter's lock counts: the one that blocks everything else.
    """
    spy = str(Path(sys.executable).with_name("py-spy"))
    command = [spy, "record", "--pid", str(pid), "--duration", str(seconds), "--rate", str(RATE)]
    command += ["--format", "raw", "--nolineno", "--output", str(folded)]
    command += ["--gil"] if gil else []
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def functions(lines: Iterable[str]) -> list[Hotspot]:
    """The functions in folded stacks (`frame;frame count`), most own samples first."""
    return _summed(lines, _function)


def packages(lines: Iterable[str]) -> list[Hotspot]:
    """The packages in folded stacks: Parlor's own modules, and libraries as a whole."""
    return _summed(lines, _package)


def _function(frame: str) -> str:
    """`name (file)`, without the folder of a library."""
    found = _FRAME.fullmatch(frame)
    return f"{found['function']} ({_LIBRARIES.sub('', found['file'])})" if found else frame


def _package(frame: str) -> str:
    """`app.matches.live` for Parlor's own code, else the outermost package: `sqlalchemy`."""
    found = _FRAME.fullmatch(frame)
    parts = _LIBRARIES.sub("", found["file"]).removesuffix(".py").split("/") if found else [frame]
    return ".".join(parts) if parts[0] in _OWN else parts[0]


def _summed(lines: Iterable[str], name_of: Callable[[str], str]) -> list[Hotspot]:
    own: Counter[str] = Counter()
    cumulative: Counter[str] = Counter()
    total = 0
    for line in lines:
        stack, _, count = line.strip().rpartition(" ")
        if not stack:
            continue
        names = [name_of(frame) for frame in stack.split(";")]
        total += int(count)
        own[names[-1]] += int(count)
        for name in set(names):
            cumulative[name] += int(count)
    found = [Hotspot(name, own[name] / total, count / total) for name, count in cumulative.items()]
    return sorted(found, key=lambda each: (-each.own, -each.cumulative, each.name))
