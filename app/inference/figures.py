"""Figures of a process's engines, by checkpoint. Pure; the monitoring of workers reads them."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class EngineFigures:
    """One checkpoint's engines in this process, counted from loading until closed to make room for another.

    Its weights take `weights` bytes, of `most_weights` allowed for all on its device. `slow` says why its answers are
    made by the library's own loop, None if they are batched as they come. `at_once` is the number of simultaneous
    answers that memory currently allows; None: as many as are wanted.
    """

    folder: str
    answers: int = 0
    out_of_memory: int = 0
    at_once: int | None = None
    slow: str | None = None
    weights: int = 0
    most_weights: int = 0

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON, as workers report them."""
        return asdict(self)
