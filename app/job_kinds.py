"""All kinds of jobs, in one list: upkeep, workers and pages that are told of changes go through it."""

from typing import Any

from app.alignments.job import ALIGNMENT
from app.assessments.job import ASSESSMENT
from app.benchmarks.job import BENCHMARK
from app.campaigns.job import CAMPAIGN
from app.finetuning.job import TRAINING
from app.jobs.kind import JobKind
from app.rounds.job import ROUND
from app.society.job import SOCIETY
from app.studies.bots.job import REHEARSAL

JOB_KINDS: list[JobKind[Any]] = [ROUND, TRAINING, CAMPAIGN, BENCHMARK, SOCIETY, ASSESSMENT, ALIGNMENT, REHEARSAL]


def find_kind(name: str) -> JobKind[Any]:
    """The kind of that name. Raises KeyError."""
    return {kind.name: kind for kind in JOB_KINDS}[name]
