"""Sums of model calls by day, model and purpose: kept by upkeep for earlier calls, computed from rows for the latest.

A call's row is long because it holds the prompt: SQLite takes half a second for one week out of a million calls. No
call waits for these sums: upkeep makes them for calls that ended at least an hour ago. They are kept when the texts of
calls are removed, because the spend remains. Without any sums, the figures are the same.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, Engine, Table, and_, case, delete, func, insert, literal, or_, select
from sqlalchemy.orm import Session

from app.assessments.job import ASSESSMENT
from app.benchmarks.job import BENCHMARK
from app.core.extensions import lock_tables, reading, transact
from app.jobs.call_costs import Prices, TokenCounts, cost_of
from app.models import (
    Arm,
    AssessedAnswer,
    BenchmarkAnswer,
    CallSum,
    GenerationRow,
    MatchRow,
    Removal,
    SocietyInteraction,
    StudyVersion,
)
from app.models.types import is_among
from app.registry.spending import CallSums, first_since
from app.rounds.job import ROUND
from app.society.job import SOCIETY

STUDY, GUESTS, REQUESTS = "study", "guests", "requests"
_SETTLED = timedelta(hours=1)  # by then the transaction that wrote a call has ended, and with it all of lower numbers
_LEAST, _MOST = 1_000, 100_000  # calls summed at once
_TABLE = cast(Table, CallSum.__table__)
_GROUP = ("day", "model_id", "kind", "number")
_COUNTS = ("calls", "failed", "costless")
_SUMS = (
    "cost", "prompt_tokens", "completion_tokens", "estimated_tokens", "unpriced_estimate", "unpriced_prompt",
    "unpriced_completion", "unpriced_cached", "unpriced_cache_write", "unpriced_reasoning",
)  # fmt: skip


class Purpose(NamedTuple):
    """What calls were made for: a run of some kind, a study, or GUESTS or REQUESTS, which have no number."""

    kind: str
    number: int | None = None


def numbers_by_kind(purposes: Iterable[Purpose]) -> Mapping[str, set[int]]:
    """The numbers of the purposes that have one, by kind."""
    found: dict[str, set[int]] = defaultdict(set)
    for kind, number in purposes:
        if number is not None:
            found[kind].add(number)
    return found


class CallCounts(NamedTuple):
    """Counts and sums of several calls. `costless` are answered calls without a cost."""

    calls: int
    failed: int
    costless: int
    sums: CallSums

    @classmethod
    def of(cls, row: Sequence[Any]) -> "CallCounts":
        """From the counts and sums of a row, in the order of its columns."""
        calls, failed, costless = map(int, row[:3])
        return cls(calls, failed, costless, CallSums.of(row[3:]))


class SummedCalls(NamedTuple):
    """Counts and sums of a model's calls on a day (UTC) for one purpose."""

    day: date
    model_id: int | None
    purpose: Purpose
    counts: CallCounts


class CallsSince:
    """The calls since a midnight, or since the start: those that upkeep has summed, and the latest ones.

    The database adds up the existing sums: a week has one row for each run and model, which may be thousands.
    """

    def __init__(self, session: Session, since: datetime | None) -> None:
        self._session, self._since = session, since
        self._until = _kept_until(session)  # read once, as upkeep may sum further ones meanwhile
        self._which = [_TABLE.c.last_call <= self._until]
        if since is not None:
            self._which.append(_TABLE.c.day >= since.date())

    def latest(self) -> Iterator[SummedCalls]:
        """The calls that upkeep has not summed yet, by day, model and purpose."""
        further = [GenerationRow.id > self._until]
        if self._since is not None:
            first = select(GenerationRow.at).where(*further).order_by(GenerationRow.id).limit(1)
            if (at := self._session.scalar(first)) is not None and at < self._since:
                # Takes a logarithmic number of statements; numbers are in order of time, except for what was written
                # meanwhile.
                further.append(GenerationRow.id >= first_since(self._session, self._since - _SETTLED))
            further.append(GenerationRow.at >= self._since)
        return _of_rows(self._session, *further)

    def summed(self) -> Iterator[SummedCalls]:
        """The calls that upkeep has summed, by day, model and purpose."""
        for day, model_id, kind, number, *counts in self._added_up(*_GROUP):
            yield SummedCalls(day, model_id, Purpose(kind, number), CallCounts.of(counts))

    def by_day_and_model(self) -> Iterator[tuple[tuple[date, int | None], CallCounts]]:
        """The summed calls by day and model id."""
        for day, model_id, *counts in self._added_up("day", "model_id"):
            yield (day, model_id), CallCounts.of(counts)

    def by_purpose(self, runs: Iterable[Purpose]) -> Iterator[tuple[Purpose, int | None, CallCounts]]:
        """The summed calls by purpose and model id, for these runs and everything that is not a run."""
        column = _TABLE.c
        of_kinds = [
            and_(column.kind == kind, is_among(column.number, numbers))
            for kind, numbers in numbers_by_kind(runs).items()
        ]
        which = [or_(column.kind == STUDY, column.number.is_(None), *of_kinds)]
        for kind, number, model_id, *counts in self._added_up("kind", "number", "model_id", which=which):
            yield Purpose(kind, number), model_id, CallCounts.of(counts)

    def dearest(self, prices: Mapping[int, Prices | None], most: int | None) -> tuple[list[Purpose], int]:
        """The most expensive purposes of summed calls, except studies, by the models' prices, and their total number.

        All of them if `most` is None, otherwise that many and at least one.
        """
        column = _TABLE.c
        usd: ColumnElement[float] = column.cost
        # Without free models: campaigns register thousands, and each would be a parameter of the statement.
        if paid := {number: each for number, each in prices.items() if each is not None and any(each)}:
            for name in TokenCounts._fields:
                a_token = {number: cost_of(each, TokenCounts(**{name: 1})) for number, each in paid.items()}
                usd = usd + column[f"unpriced_{name}"] * case(a_token, value=column.model_id, else_=0.0)
        tokens = column.prompt_tokens + column.completion_tokens + column.estimated_tokens
        by = column.kind, column.number
        found = (
            select(*by, func.count().over())
            .where(*self._which, column.kind != STUDY)
            .group_by(*by)
            .order_by(func.sum(usd).desc(), func.sum(tokens).desc(), *by)
            .limit(None if most is None else max(most, 1))  # each row has the total number
        )
        rows = self._session.execute(found).all()
        return [Purpose(kind, number) for kind, number, _ in rows], rows[0][2] if rows else 0

    def _added_up(self, *group: str, which: Sequence[ColumnElement[bool]] = ()) -> Iterable[Sequence[Any]]:
        """Rows of the group's columns and the values that `CallCounts.of` reads, ordered by group."""
        column = _TABLE.c
        by = [column[name] for name in group]
        unpriced = sum((column[name] for name in _SUMS if name.startswith("unpriced_")), literal(0))
        # Calls that used nothing cost nothing, whatever the prices: decided here, as sums do not show it.
        costless = case((unpriced > 0, column.costless), else_=0)
        counts = [costless if name == "costless" else column[name] for name in (*_COUNTS, *_SUMS)]
        chosen = select(*by, *(func.sum(each) for each in counts)).where(*self._which, *which)
        return self._session.execute(chosen.group_by(*by).order_by(*by))


def recount(database: Engine) -> int:
    """Sum all earlier calls again from scratch; the number of calls summed."""

    def forget(session: Session) -> None:
        lock_tables(session, _TABLE.name)
        session.execute(delete(CallSum))

    transact(database)(forget)
    done = 0
    while some := keep_sums(database):
        done += some
    return done


def keep_sums(database: Engine) -> int:
    """Sum up to a hundred thousand earlier calls not yet summed, if there are enough of them; the number summed."""
    with reading(database) as session:
        kept = _kept_until(session)
        settled = first_since(session, datetime.now(UTC) - _SETTLED)
        due = select(GenerationRow.id).where(GenerationRow.id > kept, GenerationRow.id < settled)
        some = due.order_by(GenerationRow.id).limit(_MOST).subquery()
        number, last = session.execute(select(func.count(), func.max(some.c.id))).one()
        if number < _LEAST:
            return 0
        found = [*_of_rows(session, GenerationRow.id > kept, GenerationRow.id <= last)]
    rows = [
        dict(zip((*_GROUP, *_COUNTS), (each.day, each.model_id, *each.purpose, *each.counts[:3]), strict=True))
        | dict(zip(_SUMS, (*each.counts.sums[:5], *each.counts.sums.unpriced), strict=True))
        | {"last_call": last}
        for each in found
    ]

    def write(session: Session) -> int:
        lock_tables(session, _TABLE.name)  # so that no call is summed twice
        if _kept_until(session) != kept:  # another process was faster
            return 0
        session.execute(insert(_TABLE), rows)
        return int(number)

    return transact(database)(write)


def _kept_until(session: Session) -> int:
    """The id of the last call included in the sums."""
    return session.scalar(select(func.max(CallSum.last_call))) or 0


def _of_rows(session: Session, *which: ColumnElement[bool]) -> Iterator[SummedCalls]:
    """The sums of these calls, computed from their rows."""
    studies = dict(session.execute(select(Arm.id, StudyVersion.study_id).join(StudyVersion)).all())
    table, match, asked = GenerationRow, MatchRow, BenchmarkAnswer
    benchmark = select(asked.request_id, func.min(asked.job_id).label("job_id")).group_by(asked.request_id).subquery()
    of = (
        func.date(table.at),
        table.language_model_id,
        match.round_id,
        match.arm_id,
        table.match_id.is_not(None),
        func.coalesce(table.society_id, SocietyInteraction.society_id),
        AssessedAnswer.assessment_id,
        benchmark.c.job_id,
        Removal.kind,
        Removal.number,
    )
    counts = (
        func.count(),
        func.count(table.error),
        func.sum(case((table.cost.is_(None) & table.error.is_(None), 1), else_=0)),
    )
    chosen = (
        select(*of, *counts, *CallSums.columns())
        .outerjoin(match, match.id == table.match_id)
        .outerjoin(SocietyInteraction, SocietyInteraction.id == table.interaction_id)
        .outerjoin(AssessedAnswer, AssessedAnswer.id == table.answer_id)
        .outerjoin(benchmark, benchmark.c.request_id == table.request_id)
        .outerjoin(Removal, Removal.id == table.removal_id)
        .where(*which)
        .group_by(*of)
    )
    for row in session.execute(chosen):
        day, model_id, *owners = row[: len(of)]
        at = day if isinstance(day, date) else date.fromisoformat(day)
        yield SummedCalls(at, model_id, _purpose(studies, *owners), CallCounts.of(row[len(of) :]))


def _purpose(
    studies: Mapping[int, int],
    round_id: int | None,
    arm_id: int | None,
    in_match: bool,
    society_id: int | None,
    assessment_id: int | None,
    benchmark_id: int | None,
    removed_kind: str | None,
    removed_number: int | None,
) -> Purpose:
    if removed_kind is not None:
        return Purpose(removed_kind, removed_number)
    runs = ((ROUND, round_id), (SOCIETY, society_id), (ASSESSMENT, assessment_id), (BENCHMARK, benchmark_id))
    for kind, number in runs:
        if number is not None:
            return Purpose(kind.name, number)
    if arm_id is not None:
        return Purpose(STUDY, studies[arm_id])
    return Purpose(GUESTS if in_match else REQUESTS)
