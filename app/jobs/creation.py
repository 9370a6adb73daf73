"""How jobs of a kind come of a spec, described once for commands, forms and the API.

The `creation.py` of a kind declares a JobCreation, and its JobKind names it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from sqlalchemy.orm import Session

from app.jobs.kind import JobKind, Requester
from app.jobs.spec import JobSpec

S = TypeVar("S", bound=JobSpec)


class JobRequest(NamedTuple, Generic[S]):
    """What is asked for: the spec, what the files hold that it may name, by field, and what `prepare` has found.

    A file that is not given and of which none ships is None. `home` is where datasets and checkpoints are.
    """

    spec: S
    files: Mapping[str, Any]
    home: Path
    known: Any = None


class CreateJobs(Protocol):
    """Stores what was asked for as jobs that wait, for workers if they are `queued`. Raises AppError."""

    def __call__(
        self, session: Session, request: JobRequest[Any], *, queued: bool, requester: Requester | None
    ) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCreation(Generic[S]):
    """How jobs of a kind come of a spec.

    prepare: what has to be known before the transaction, because it takes long; it only reads. Raises AppError.
    """

    spec: type[S]
    create: CreateJobs
    prepare: Callable[[Session, JobRequest[Any]], Any] | None = None

    def prepared(self, session: Session, request: JobRequest[S]) -> JobRequest[S]:
        """The request with what has to be known before the transaction. Raises AppError."""
        return request if self.prepare is None else request._replace(known=self.prepare(session, request))


def creation_of(kind: JobKind[Any]) -> JobCreation[Any] | None:
    """How jobs of a kind come of a spec; None where they come of something else."""
    if not kind.creation:
        return None
    module, _, name = kind.creation.partition(":")
    declared: JobCreation[Any] = getattr(import_module(module), name)
    return declared
