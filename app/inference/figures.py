"""What the engines of a process have done, by checkpoint. Pure; whoever looks after workers reads it."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class EngineFigures:
    """One checkpoint's engines in this process, since it was loaded and did not have to make room for another.

    Its weights take `weights` bytes, of `most_weights` that all on its device may take.
    `slow` says why its answers are made by the library's own loop, and None that they are made together as they come.
    `at_once` is how many memory was found to allow just now; None: as many as are wanted.
    """

    folder: str
    answers: int = 0
    out_of_memory: int = 0
    at_once: int | None = None
    slow: str | None = None
    weights: int = 0
    most_weights: int = 0

    def to_json(self) -> dict[str, Any]:
        """As a worker tells it."""
        return asdict(self)
