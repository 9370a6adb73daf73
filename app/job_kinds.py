"""All kinds of job: each `job.py` in a package of `app` defines one. Upkeep, workers and pages use this list."""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from sqlalchemy import CompoundSelect, exists, literal, select, union_all
from sqlalchemy.orm import Session

from app.jobs import states
from app.jobs.kind import JobKind


def kinds_below(folder: Path, package: str) -> list[JobKind[Any]]:
    """The kinds defined by the `job.py` modules of a package at that folder, in the order of their places."""
    modules = modules_below(folder, package, "job")
    kinds = [each for module in modules for each in vars(module).values() if isinstance(each, JobKind)]
    return sorted(dict.fromkeys(kinds), key=lambda kind: (kind.place, kind.name))


def modules_below(folder: Path, package: str, name: str) -> list[ModuleType]:
    """The modules of that name in a package at that folder and in its subpackages."""
    files = sorted(path.relative_to(folder).with_suffix("") for path in folder.glob(f"**/{name}.py"))
    return [import_module(".".join([package, *file.parts])) for file in files]


JOB_KINDS = kinds_below(Path(__file__).parent, __package__ or "app")


def find_kind(name: str) -> JobKind[Any]:
    """The kind of that name. Raises KeyError."""
    return {kind.name: kind for kind in JOB_KINDS}[name]


def kinds_with_live_jobs(session: Session) -> list[JobKind[Any]]:
    """The kinds with a job that is not over, found in one query for all of them."""
    names = set(session.scalars(_names_of_live(tuple(JOB_KINDS))))
    return [kind for kind in JOB_KINDS if kind.name in names]


@cache
def _names_of_live(kinds: tuple[JobKind[Any], ...]) -> CompoundSelect[Any]:
    return union_all(
        *(select(literal(kind.name)).where(exists().where(kind.table.status.in_(states.LIVE))) for kind in kinds)
    )
