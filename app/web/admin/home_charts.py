"""Small charts of the overview: matches by day, and the latest job of each kind whose figures changed as it ran.

They use stored data: the number of finished matches of each round, and figures by step. Matches of people are counted
by their index, and only for the days shown. Matches of a round that ran past midnight are counted once a day, up to its
last day; the rest of its finished matches ended on that last day.
"""

import time
from collections import Counter
from collections.abc import Hashable, Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from flask import current_app
from gevent.lock import BoundedSemaphore
from sqlalchemy import ScalarSelect, func, or_, select
from sqlalchemy.orm import Session

from app.core.errors import Phrase
from app.core.extensions import db
from app.job_kinds import JOB_KINDS
from app.jobs import states
from app.jobs.curves import curves_of
from app.jobs.kind import JobKind
from app.jobs.page import page_of
from app.matches.filter import PEOPLES
from app.models import MatchRow, RoundRow
from app.rounds.job import SELFPLAY
from app.web.admin.job_pages import job_address, named_job
from app.web.threads import in_worker_thread

_DAYS = 14
_POINTS = 60  # in a curve, at most
_WIDTH, _HEIGHT, _EDGE = 240, 64, 5  # of a curve, in drawing units
_EVERY = 30.0  # seconds between two reads of what changes
_one_at_a_time = BoundedSemaphore(1)  # so that simultaneous requests do not all read the same


class DayBar(NamedTuple):
    """The matches of a day: those of people by their start, those of rounds by their end."""

    day: date
    people: int
    rounds: int


class SmallCurve(NamedTuple):
    """The first curve of a job.

    `path` draws it; its values run from `start` to `end`, which is at the place `at`.
    """

    name: str
    address: str
    title: Phrase
    x: Phrase
    path: str
    tip: tuple[float, float]
    start: float
    end: float
    at: float


class _Points(NamedTuple):
    """The title of a curve, the meaning of its places, and some of its points, including the last."""

    title: Phrase
    x: Phrase
    points: list[tuple[float, float]]


class SmallCharts(NamedTuple):
    """The charts of the overview."""

    days: Sequence[DayBar]
    curves: Sequence[SmallCurve]

    @property
    def most(self) -> int:
        """The number of matches on the busiest day."""
        return max(each.people + each.rounds for each in self.days)


class _Kept(NamedTuple):
    """The last value read for something, with its state then and the time by `time.monotonic`."""

    state: Any
    at: float
    found: Any


def small_charts(session: Session, midnight: datetime) -> SmallCharts:
    """The charts of today and the days before it.

    Today began at `midnight`, in the time zone whose days are shown. A curve may be half a minute old.
    """
    return SmallCharts(_days(session, midnight), [curve for kind in JOB_KINDS if (curve := _curve(session, kind))])


def _days(session: Session, midnight: datetime) -> list[DayBar]:
    begins = [midnight - timedelta(days=back) for back in reversed(range(_DAYS))]
    days = pairwise([*begins, midnight + timedelta(days=1)])
    people = session.execute(select(*(_people_between(*day) for day in days))).one()
    rounds = Counter[date | None]()
    lately = or_(RoundRow.ended_at >= begins[0], RoundRow.status.in_(states.LIVE))
    own = RoundRow.id, RoundRow.started_at, RoundRow.ended_at, RoundRow.removed_at, RoundRow.finished
    played = select(*own).where(RoundRow.source == SELFPLAY, lately).order_by(RoundRow.id)
    for number, started, ended, removed, finished in session.execute(played):
        first, last = ((at or midnight).astimezone(midnight.tzinfo).date() for at in (started or ended, ended))
        if first < last and removed is None:  # the matches of a removed round do not say when they ended
            before = _looked(
                ("days", midnight.tzinfo, number), last, True, _earlier_matches_by_day, number, begins, last
            )
            rounds += before
            finished = max(0, finished - before.total())  # a match may have ended since `finished` was read
        rounds[last] += finished
    return [DayBar(each.date(), count, rounds[each.date()]) for each, count in zip(begins, people, strict=True)]


def _people_between(begin: datetime, end: datetime) -> ScalarSelect[int]:
    """The number of matches that people began between two times.

    Counted in the index, because reading the matches took most of the page's time.
    """
    began = MatchRow.source.in_(PEOPLES), MatchRow.started_at >= begin, MatchRow.started_at < end
    return select(func.count()).select_from(MatchRow).where(*began).scalar_subquery()


def _earlier_matches_by_day(
    session: Session, number: int, begins: Sequence[datetime], last: date
) -> Counter[date | None]:
    """The matches of a round that ended before its last day, counted by day.

    `begins` are the times at which days begin; None stands for everything earlier.
    """
    until = datetime(last.year, last.month, last.day, tzinfo=begins[0].tzinfo)
    shown = [begin for begin in begins if begin < until]
    days = {None: (MatchRow.ended_at < min(begins[0], until),)} | {
        begin.date(): (MatchRow.ended_at >= begin, MatchRow.ended_at < end) for begin, end in pairwise([*shown, until])
    }
    # A range of the index alone for each: reading a long round's rows took half a second.
    counts = [
        select(func.count()).select_from(MatchRow).where(MatchRow.round_id == number, *ended).scalar_subquery()
        for ended in days.values()
    ]
    return Counter(dict(zip(days, session.execute(select(*counts)).one(), strict=True)))


def _curve(session: Session, kind: JobKind[Any]) -> SmallCurve | None:
    """The curve of the latest job of a kind that has started; None without such a job, or if it has too few points."""
    if not kind.curves:
        return None
    begun = select(kind.table).where(kind.table.started_at.is_not(None), kind.table.removed_at.is_(None))
    row = session.scalar(begun.order_by(kind.table.id.desc()).limit(1))
    if row is None:
        return None
    state, is_over = (row.id, row.status, row.ended_at), row.ended_at is not None
    found: _Points | None = _looked(kind.name, state, is_over, _job_curve_points, kind, row.id)
    if found is None:
        return None
    [item] = page_of(kind).items_of(session, [row])
    title, x, points = found
    drawn = _points_in_drawing_units(points)
    path = "M" + "L".join(f"{left:g} {top:g}" for left, top in drawn)
    at, end = points[-1]
    address = job_address(kind, row.id)
    return SmallCurve(named_job(kind, item), address, title, x, path, drawn[-1], points[0][1], end, at)


def _looked(name: Hashable, state: Any, is_over: bool, read: Any, *arguments: Any) -> Any:
    """The result of `read(session, *arguments)`, read off the event loop: once if the state is final, else
    periodically.
    """
    kept: dict[Hashable, _Kept] = current_app.extensions.setdefault(__name__, {})

    def is_fresh() -> bool:
        last = kept.get(name)
        return last is not None and last.state == state and (is_over or time.monotonic() <= last.at + _EVERY)

    if not is_fresh():
        with _one_at_a_time:
            if not is_fresh():  # nobody else has read it meanwhile
                found = in_worker_thread(db.engine, read, *arguments)
                kept[name] = _Kept(state, time.monotonic(), found)
    return kept[name].found


def _job_curve_points(session: Session, kind: JobKind[Any], number: int) -> _Points | None:
    for curve in curves_of(kind, session, kind.get(session, number)):
        points = [(place, value) for place, value in curve.points if not isinstance(place, str)]
        if len(points) > 1:
            every = -(-len(points) // _POINTS)
            return _Points(curve.title, curve.x, points[::-1][::every][::-1])
    return None


def _points_in_drawing_units(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points in drawing units, with 0 at the top."""
    (left, right), values = (points[0][0], points[-1][0]), [value for _, value in points]
    low, wide, high = min(values), (right - left) or 1, (max(values) - min(values)) or 1
    return [
        (
            round(_EDGE + (_WIDTH - 2 * _EDGE) * (place - left) / wide, 1),
            round(_HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * (value - low) / high, 1),
        )
        for place, value in points
    ]
