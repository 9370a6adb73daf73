"""Creation of a kind's jobs from a spec, described once for commands, forms and the API.

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
    """A request for jobs: the spec, the content of the files that it may name, by field, and the result of `prepare`.

    A file is None if it is not given and none ships with Parlor. `home` holds datasets and checkpoints.
    """

    spec: S
    files: Mapping[str, Any]
    home: Path
    known: Any = None


class CreateJobs(Protocol):
    """Stores the requested jobs as waiting, for workers if they are `queued`. Raises AppError."""

    def __call__(
        self, session: Session, request: JobRequest[Any], *, queued: bool, requester: Requester | None
    ) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCreation(Generic[S]):
    """How jobs of a kind are created from a spec.

    prepare: slow lookups done before the transaction; it only reads. Raises AppError.
    """

    spec: type[S]
    create: CreateJobs
    prepare: Callable[[Session, JobRequest[Any]], Any] | None = None

    def prepared(self, session: Session, request: JobRequest[S]) -> JobRequest[S]:
        """The request with the results of `prepare`. Raises AppError."""
        return request if self.prepare is None else request._replace(known=self.prepare(session, request))


def creation_of(kind: JobKind[Any]) -> JobCreation[Any] | None:
    """How jobs of a kind are created from a spec; None if they are created in another way."""
    if not kind.creation:
        return None
    module, _, name = kind.creation.partition(":")
    declared: JobCreation[Any] = getattr(import_module(module), name)
    return declared
