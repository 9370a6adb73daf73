"""All kinds of jobs, in one list: upkeep, workers and pages that are told of changes go through it."""

from functools import cache
from typing import Any

from sqlalchemy import CompoundSelect, exists, literal, select, union_all
from sqlalchemy.orm import Session

from app.alignments.job import ALIGNMENT
from app.assessments.job import ASSESSMENT
from app.benchmarks.job import BENCHMARK
from app.campaigns.job import CAMPAIGN
from app.finetuning.job import TRAINING
from app.jobs import states
from app.jobs.kind import JobKind
from app.rounds.job import ROUND
from app.society.job import SOCIETY
from app.studies.bots.job import REHEARSAL

JOB_KINDS: list[JobKind[Any]] = [ROUND, TRAINING, CAMPAIGN, BENCHMARK, SOCIETY, ASSESSMENT, ALIGNMENT, REHEARSAL]


def find_kind(name: str) -> JobKind[Any]:
    """The kind of that name. Raises KeyError."""
    return {kind.name: kind for kind in JOB_KINDS}[name]


def kinds_with_live_jobs(session: Session) -> list[JobKind[Any]]:
    """The kinds of which some job is not over, asked of all of them at once."""
    names = set(session.scalars(_names_of_live(tuple(JOB_KINDS))))
    return [kind for kind in JOB_KINDS if kind.name in names]


@cache
def _names_of_live(kinds: tuple[JobKind[Any], ...]) -> CompoundSelect[Any]:
    return union_all(
        *(select(literal(kind.name)).where(exists().where(kind.table.status.in_(states.LIVE))) for kind in kinds)
    )
