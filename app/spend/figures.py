"""Spend on model calls and on trainings at vendors, by day, by model, and by run or study.

All groupings add up the same lines, each a model's cost on a day for one purpose; the database adds them up where there
may be thousands.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from operator import add, attrgetter
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.assessments.job import ASSESSMENT
from app.benchmarks.job import BENCHMARK
from app.core.csv_tables import Column
from app.core.errors import Phrase
from app.core.lists import Reference, job_cell
from app.finetuning.job import TRAINING
from app.jobs.kind import JobKind
from app.models import (
    LanguageModel,
    Study,
    TrainingCharge,
)
from app.models.types import is_among
from app.registry.prices import prices_of_model
from app.registry.training_charges import charges_with_spent
from app.rounds.job import ROUND
from app.society.job import SOCIETY
from app.spend.call_sums import (
    GUESTS,
    REQUESTS,
    STUDY,
    CallCounts,
    CallsSince,
    Purpose,
    SummedCalls,
    numbers_by_kind,
)

K = TypeVar("K")

WEEK, MONTH, ALL = "week", "month", "all"
PERIODS: Mapping[str, Phrase] = {
    WEEK: Phrase("Today and the seven days before"),
    MONTH: Phrase("This month"),
    ALL: Phrase("Since the start"),
}
RUNS: Mapping[str, JobKind[Any]] = {kind.name: kind for kind in (ROUND, SOCIETY, ASSESSMENT, BENCHMARK, TRAINING)}
OTHERS: Mapping[str, Phrase] = {
    GUESTS: Phrase("matches outside rounds and studies"),
    REQUESTS: Phrase("test calls and single questions"),
}


class SpendSums(NamedTuple):
    """Sums over several calls, in US dollars and tokens.

    `unpriced` is the number of calls whose cost is unknown; `estimated` is the number of tokens that servers did not
    count.
    """

    calls: int = 0
    failed: int = 0
    unpriced: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: int = 0
    trained_tokens: int = 0
    usd: float = 0.0

    @classmethod
    def of(cls, several: Sequence["SpendSums"]) -> "SpendSums":
        """The sum of several, usually one or two."""
        if len(several) == 1:
            return several[0]
        if len(several) == 2:
            return cls(*map(add, *several))
        return cls(*map(sum, zip(*several, strict=True)))

    @property
    def tokens(self) -> int:
        """All tokens, including trained and estimated ones."""
        return self.prompt_tokens + self.completion_tokens + self.estimated + self.trained_tokens


class SpendLine(NamedTuple):
    """A model's cost on a day (UTC) for one purpose. `model_id` is None if the model is not registered."""

    day: date
    model_id: int | None
    purpose: Purpose
    sums: SpendSums


SpendByDayAndModel = Mapping[tuple[date, int | None], SpendSums]  # by day (UTC) and number of a registered model


@dataclass(frozen=True)
class SpendLines:
    """Spend in a period, one line for each day, model and purpose, with the names of the models and purposes."""

    lines: Sequence[SpendLine]
    models: Mapping[int, LanguageModel]
    names: Mapping[Purpose, str]


@dataclass(frozen=True)
class Spend:
    """Spend since a moment, or since the start, and the names of what it was spent on.

    `by_purpose` has the most expensive first: all studies, and either all or only the most expensive of the rest, which
    are runs and OTHERS; `runs` is the number of the rest.
    """

    since: datetime | None
    until: datetime
    by_day_and_model: SpendByDayAndModel
    by_purpose: Sequence[tuple[Purpose, SpendSums]]
    runs: int
    models: Mapping[int, LanguageModel]
    names: Mapping[Purpose, str]

    @property
    def total(self) -> SpendSums:
        return SpendSums.of([*self.by_day_and_model.values()])

    def by_model(self) -> list[tuple[LanguageModel | None, SpendSums]]:
        """By model, the most expensive first."""
        found = _dearest_first(_added((number, sums) for (_, number), sums in self.by_day_and_model.items()))
        return [(None if number is None else self.models[number], sums) for number, sums in found]

    def by_run(self) -> list[tuple[Purpose, SpendSums]]:
        """By run, without studies, the most expensive first."""
        return [each for each in self.by_purpose if each[0].kind != STUDY]

    def by_study(self) -> list[tuple[Purpose, SpendSums]]:
        """By study, the most expensive first."""
        return [each for each in self.by_purpose if each[0].kind == STUDY]

    def by_day(self) -> list[tuple[date, SpendSums]]:
        """By day, the latest first; days of the period without calls have a line as well."""
        found = _added((day, sums) for (day, _), sums in self.by_day_and_model.items())
        if not found and self.since is None:
            return []
        first = min(found) if self.since is None else self.since.date()
        days = (self.until.date() - first).days + 1
        every = [self.until.date() - timedelta(days=back) for back in range(days)]
        return [(day, found.get(day, SpendSums())) for day in every]

    def cell(self, purpose: Purpose) -> Reference | Phrase:
        """The name of a purpose, with a link target if it is a run or a study."""
        kind, number, name = purpose.kind, purpose.number, self.names.get(purpose)
        if number is None:
            return OTHERS[kind]
        if kind == STUDY:
            return Reference(STUDY, number, name or "")
        return job_cell(kind, number, name, RUNS[kind].subject(number))


def _dearest_first(found: Mapping[K, SpendSums]) -> list[tuple[K, SpendSums]]:
    return sorted(found.items(), key=lambda each: (-each[1].usd, -each[1].tokens))


def _added(pairs: Iterable[tuple[K, SpendSums]]) -> dict[K, SpendSums]:
    """The sums by key."""
    found: dict[K, list[SpendSums]] = defaultdict(list)
    for key, sums in pairs:
        found[key].append(sums)
    return {key: SpendSums.of(several) for key, several in found.items()}


def begin_of(period: str, now: datetime) -> datetime | None:
    """When a period of PERIODS began, in UTC: seven days before today, or at the start of the month; None for ALL."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return {WEEK: today - timedelta(days=7), MONTH: today.replace(day=1), ALL: None}[period]


def read_spend(session: Session, period: str, now: datetime | None = None, most: int | None = None) -> Spend:
    """Spend in a period of PERIODS; `by_purpose` has all runs, or at least the `most` most expensive ones."""
    now = now or datetime.now(UTC)
    since = begin_of(period, now)
    found = _SpentSince(session, since)
    by_purpose, runs = found.by_purpose(most)
    names = _names_of_purposes(session, [purpose for purpose, _ in by_purpose])
    return Spend(since, now, found.by_day_and_model(), by_purpose, runs, found.models, names)


def read_spend_by_day_and_model(session: Session, period: str, now: datetime) -> SpendByDayAndModel:
    """Spend in a period of PERIODS by day and model id only."""
    return _SpentSince(session, begin_of(period, now)).by_day_and_model()


def read_spend_lines(session: Session, period: str, now: datetime | None = None) -> SpendLines:
    """The lines, by day, that the figures of `read_spend` sum up."""
    found = _SpentSince(session, begin_of(period, now or datetime.now(UTC)))
    lines = found.lines()
    return SpendLines(lines, found.models, _names_of_purposes(session, [line.purpose for line in lines]))


class _SpentSince:
    """The cost of calls and trainings since a midnight, or since the start, by the prices of registered models."""

    def __init__(self, session: Session, since: datetime | None) -> None:
        self.models = {row.id: row for row in session.scalars(select(LanguageModel))}
        self._prices = {number: prices_of_model(model) for number, model in self.models.items()}
        self._calls = CallsSince(session, since)
        self._latest = [*map(self._spend_line, self._calls.latest()), *_lines_of_trainings(session, since)]

    def lines(self) -> list[SpendLine]:
        """One line for each day, model and purpose."""
        lines = chain(map(self._spend_line, self._calls.summed()), self._latest)
        summed = _added((line[:3], line.sums) for line in lines)
        return sorted((SpendLine(*key, sums) for key, sums in summed.items()), key=attrgetter("day"))

    def by_day_and_model(self) -> SpendByDayAndModel:
        """By day and model id, which is None for a model that is not registered."""
        summed = (
            ((day, self._registered(model)), self._spend_sums(model, counts))
            for (day, model), counts in self._calls.by_day_and_model()
        )
        return _added(chain(summed, (((line.day, line.model_id), line.sums) for line in self._latest)))

    def by_purpose(self, most: int | None) -> tuple[list[tuple[Purpose, SpendSums]], int]:
        """By purpose, the most expensive first, with all runs or at least `most` of them; and the total number of
        runs.
        """
        dearest, summed_runs = self._calls.dearest(self._prices, most)
        latest = {line.purpose for line in self._latest}
        summed = [
            (purpose, self._spend_sums(model, counts))
            for purpose, model, counts in self._calls.by_purpose({*dearest, *latest})
        ]
        further = latest - {purpose for purpose, _ in summed}  # not counted in `summed_runs`
        found = _dearest_first(_added([*summed, *((line.purpose, line.sums) for line in self._latest)]))
        return found, summed_runs + sum(purpose.kind != STUDY for purpose in further)

    def _registered(self, model_id: int | None) -> int | None:
        return model_id if model_id in self.models else None

    def _spend_sums(self, model_id: int | None, counts: CallCounts) -> SpendSums:
        calls, failed, costless, found = counts
        cost = found.cost(None if model_id is None else self._prices.get(model_id))
        tokens = found.prompt_tokens, found.completion_tokens, found.estimated_tokens
        usd = found.stored_cost if cost is None else cost
        return SpendSums(calls, failed, costless if cost is None else 0, *tokens, 0, usd)

    def _spend_line(self, calls: SummedCalls) -> SpendLine:
        sums = self._spend_sums(calls.model_id, calls.counts)
        return SpendLine(calls.day, self._registered(calls.model_id), calls.purpose, sums)


def _lines_of_trainings(session: Session, since: datetime | None) -> Iterable[SpendLine]:
    which = [] if since is None else [TrainingCharge.at >= since]
    for charge, job, spent in charges_with_spent(session, *which):
        sums = SpendSums(trained_tokens=spent.tokens, usd=spent.usd)
        yield SpendLine(charge.at.date(), job.base_id, Purpose(TRAINING.name, job.id), sums)


def _names_of_purposes(session: Session, purposes: Iterable[Purpose]) -> Mapping[Purpose, str]:
    """The names of studies, and of those runs that have one."""
    found: dict[Purpose, str] = {}
    for name, numbers in numbers_by_kind(purposes).items():
        table: Any = Study if name == STUDY else RUNS[name].table
        if hasattr(table, "name"):
            rows = session.execute(select(table.id, table.name).where(is_among(table.id, numbers)))
            found |= {Purpose(name, number): called for number, called in rows}
    return found


# ---- As a file ---------------------------------------------------------------------


def spend_columns(of: SpendLines) -> Sequence[Column]:
    """The columns of a CSV whose rows are `of.lines`: a model's cost on a day for one purpose."""

    def model_of(line: SpendLine) -> str | None:
        return None if line.model_id is None else of.models[line.model_id].name

    def column(name: str, kind: str, meaning: str, values: str, read: Callable[[SpendLine], Any]) -> Column:
        return Column(name, kind, meaning, values, read)

    def summed(name: str, meaning: str) -> Column:
        return Column(name, "integer", meaning, "from 0", lambda line: getattr(line.sums, name))

    purposes = " | ".join((*RUNS, STUDY, *OTHERS))
    return (
        column("day", "date", "The day, in UTC.", "2026-01-31", lambda line: line.day.isoformat()),
        column("model", "text", "The model, as the registry names it.", "a name; empty for another one", model_of),
        column("purpose", "text", "What the calls were made for.", purposes, lambda line: line.purpose.kind),
        column("number", "integer", "The number of the run or study.", "empty for others",
               lambda line: line.purpose.number),
        column("name", "text", "The name of the run or study.", "empty where there is none",
               lambda line: of.names.get(line.purpose)),
        summed("calls", "Calls of the model."),
        summed("failed", "Calls without an answer."),
        summed("unpriced", "Calls whose cost nobody knows."),
        summed("prompt_tokens", "Tokens in."),
        summed("completion_tokens", "Tokens out."),
        summed("estimated", "Tokens that the server did not count, by estimate."),
        summed("trained_tokens", "Tokens that a vendor trained on."),
        column("usd", "number", "US dollars, as far as prices are known.", "0.25",
               lambda line: round(line.sums.usd, 6)),
    )  # fmt: skip
