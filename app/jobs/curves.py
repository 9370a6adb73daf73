"""Curves of a job: figures over its course, for comparing jobs of a kind. A JobKind names the function that reads
them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sqlalchemy.orm import Session

from app.core.errors import Phrase
from app.jobs.kind import JobKind


@dataclass(frozen=True, slots=True)
class Curve:
    """A figure of a job by position: `name` is used in addresses, `x` describes the positions.

    Positions are numbers in ascending order, or words if they have no order; then nothing is smoothed.
    """

    name: str
    title: Phrase
    x: Phrase
    points: Sequence[tuple[float | str, float]]


def curves_of(kind: JobKind[Any], session: Session, row: Any) -> Sequence[Curve]:
    """The curves of a job that have points; empty for kinds without curves."""
    if not kind.curves:
        return []
    module, _, name = kind.curves.partition(":")
    read: Callable[[Session, Any], Sequence[Curve]] = getattr(import_module(module), name)
    return [curve for curve in read(session, row) if curve.points]
