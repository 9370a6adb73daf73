"""Curves of a job: what changed as it went on, for comparing jobs of a kind. A JobKind names what reads them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sqlalchemy.orm import Session

from app.core.errors import Phrase
from app.jobs.kind import JobKind


@dataclass(frozen=True, slots=True)
class Curve:
    """A figure of a job by place: `name` is that in addresses, `x` what places are.

    Places are numbers in rising order, or words where they have no order; then nothing is smoothed.
    """

    name: str
    title: Phrase
    x: Phrase
    points: Sequence[tuple[float | str, float]]


def curves_of(kind: JobKind[Any], session: Session, row: Any) -> Sequence[Curve]:
    """The curves of a job that have points; none of kinds that have no curves."""
    if not kind.curves:
        return []
    module, _, name = kind.curves.partition(":")
    read: Callable[[Session, Any], Sequence[Curve]] = getattr(import_module(module), name)
    return [curve for curve in read(session, row) if curve.points]
