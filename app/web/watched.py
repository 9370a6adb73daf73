"""What pages may watch: jobs of every kind, each read as figures by name."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.alignments import listing as alignments
from app.alignments.job import ALIGNMENT
from app.assessments import listing as assessments
from app.assessments.job import ASSESSMENT
from app.benchmarks import listing as benchmarks
from app.benchmarks.job import BENCHMARK
from app.campaigns import listing as campaigns
from app.campaigns.job import CAMPAIGN
from app.finetuning import listing as trainings
from app.finetuning.job import TRAINING
from app.games.base import JSON
from app.job_kinds import JOB_KINDS
from app.jobs.kind import JobKind
from app.jobs.listing import JobListItem, job_figures, job_items
from app.models import Alignment, Assessment, BenchmarkJob, Campaign, Rehearsal, RoundRow, Society, TrainingJob
from app.rounds.cost import Prices
from app.rounds.job import ROUND
from app.rounds.prices import prices_of_round
from app.rounds.progress import RecentPace, figures, mean_pace
from app.society import listing as societies
from app.society.job import SOCIETY
from app.studies.bots.job import REHEARSAL

_PRICED = 15.0  # seconds for which prices are good


class WatchedKind:
    """Jobs of a kind as they are watched. A kind with figures of its own has a subclass."""

    def __init__(self, kind: JobKind[Any]) -> None:
        self.kind = kind

    def read(self, session: Session, numbers: Collection[int], now: float) -> Mapping[int, JSON]:
        """The figures of those jobs that there are, at the moment `now` of a clock that only goes on."""
        table = self.kind.table
        return self.figures(session, session.scalars(select(table).where(table.id.in_(numbers))).all(), now)

    def figures(self, session: Session, rows: Sequence[Any], now: float) -> Mapping[int, JSON]:  # noqa: ARG002 - a kind may have a pace
        """The figures of these jobs, by number."""
        return {item.row.id: job_figures(item) for item in job_items(session, self.kind, rows)}


@dataclass(slots=True)
class _Known:
    """What is remembered of a round: its pace, and what its tokens cost."""

    pace: RecentPace = field(default_factory=RecentPace)
    prices: Prices | None = None
    priced_at: float = float("-inf")


class _WatchedRounds(WatchedKind):
    """Self-play rounds."""

    def __init__(self, kind: JobKind[Any]) -> None:
        super().__init__(kind)
        self._known: dict[int, _Known] = {}

    def figures(self, session: Session, rows: Sequence[RoundRow], now: float) -> Mapping[int, JSON]:
        """See WatchedKind."""
        self._known = {row.id: self._known.get(row.id) or _Known() for row in rows}
        found, states = {}, ROUND.states_of(session, rows)
        for row in rows:
            known = self._known[row.id]
            if now - known.priced_at > _PRICED:
                known.prices, known.priced_at = prices_of_round(session, row), now
            pace = known.pace.see(now, row.finished, row.moves) or mean_pace(row, datetime.now(UTC))
            found[row.id] = figures(row, states[row.id], pace, known.prices)
        return found


class _WatchedTrainings(WatchedKind):
    """Training jobs."""

    def figures(self, session: Session, rows: Sequence[TrainingJob], now: float) -> Mapping[int, JSON]:  # noqa: ARG002
        """See WatchedKind."""
        return trainings.figures_of(session, rows)


class _WatchedCampaigns(WatchedKind):
    """Campaigns."""

    def figures(self, session: Session, rows: Sequence[Campaign], now: float) -> Mapping[int, JSON]:  # noqa: ARG002
        """See WatchedKind."""
        return {row.id: campaigns.figures_of(session, row) for row in rows}


class _WatchedRehearsals(WatchedKind):
    """Rehearsals of studies."""

    def figures(self, session: Session, rows: Sequence[Rehearsal], now: float) -> Mapping[int, JSON]:  # noqa: ARG002
        """See WatchedKind."""
        return {item.row.id: rehearsal_figures(item) for item in job_items(session, self.kind, rows)}


def rehearsal_figures(item: JobListItem) -> JSON:
    """What changes of a rehearsal while it runs; with each new `at`, twenty at most, its page asks for the report."""
    return {**job_figures(item), "at": f"{item.state} {item.percent // 5}"}


class _WatchedBenchmarks(WatchedKind):
    """Benchmarks."""

    def figures(self, session: Session, rows: Sequence[BenchmarkJob], now: float) -> Mapping[int, JSON]:  # noqa: ARG002
        """See WatchedKind."""
        return benchmarks.figures_of(session, rows)


class _WatchedSocieties(WatchedKind):
    """Societies."""

    def figures(self, session: Session, rows: Sequence[Society], now: float) -> Mapping[int, JSON]:  # noqa: ARG002
        """See WatchedKind."""
        return societies.figures_of(session, rows)


class _WatchedAssessments(WatchedKind):
    """Assessments."""

    def figures(self, session: Session, rows: Sequence[Assessment], now: float) -> Mapping[int, JSON]:  # noqa: ARG002
        """See WatchedKind."""
        return assessments.progress_of(session, rows)


class _WatchedAlignments(WatchedKind):
    """Alignments."""

    def figures(self, session: Session, rows: Sequence[Alignment], now: float) -> Mapping[int, JSON]:  # noqa: ARG002
        """See WatchedKind."""
        return {row.id: alignments.progress_of(session, row) for row in rows}


_OWN: Mapping[str, type[WatchedKind]] = {
    ROUND.name: _WatchedRounds,
    TRAINING.name: _WatchedTrainings,
    CAMPAIGN.name: _WatchedCampaigns,
    BENCHMARK.name: _WatchedBenchmarks,
    SOCIETY.name: _WatchedSocieties,
    ASSESSMENT.name: _WatchedAssessments,
    ALIGNMENT.name: _WatchedAlignments,
    REHEARSAL.name: _WatchedRehearsals,
}


def watched_kinds() -> list[WatchedKind]:
    """All kinds of jobs, each as it is watched."""
    return [_OWN.get(kind.name, WatchedKind)(kind) for kind in JOB_KINDS]
