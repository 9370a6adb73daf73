"""Small charts of the overview: matches by day, and the latest job of each kind whose figures changed as it went on.

They are made of what is kept: how many matches of each round are over, and figures by step. Of matches only those of
people are counted, by their index, and only of the days that are shown.
"""

import time
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from flask import current_app
from sqlalchemy import or_, select
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
_POINTS = 60  # of a curve at most
_WIDTH, _HEIGHT, _EDGE = 240, 64, 5  # of a curve, in units of its drawing
_EVERY = 30.0  # seconds between two looks at what changes


class DayBar(NamedTuple):
    """The matches of a day: of people, by when they began, and of rounds, by when the round ended."""

    day: date
    people: int
    rounds: int


class SmallCurve(NamedTuple):
    """The first curve of a job. `path` draws it; `end` is where it ends, from `start` on, at the place `at`."""

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
    """Of a curve: what it is, what its places are, and some of its points, the last one among them."""

    title: Phrase
    x: Phrase
    points: list[tuple[float, float]]


class SmallCharts(NamedTuple):
    """What the overview draws."""

    days: Sequence[DayBar]
    curves: Sequence[SmallCurve]

    @property
    def most(self) -> int:
        """Matches of the day with the most of them."""
        return max(each.people + each.rounds for each in self.days)


class _KeptCurve(NamedTuple):
    """What was last read of a job, by its state then and the clock of `time.monotonic`."""

    state: tuple[Any, ...]
    at: float
    points: _Points | None


def small_charts(session: Session, now: datetime) -> SmallCharts:
    """The charts as they are now; a curve may be half a minute old."""
    return SmallCharts(_days(session, now), [curve for kind in JOB_KINDS if (curve := _curve(session, kind))])


def _days(session: Session, now: datetime) -> list[DayBar]:
    first = now.date() - timedelta(days=_DAYS - 1)
    since = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=_DAYS - 1)
    began = select(MatchRow.started_at).where(MatchRow.source.in_(PEOPLES), MatchRow.started_at >= since)
    people = Counter(at.date() for at in session.scalars(began))
    lately = or_(RoundRow.ended_at >= since, RoundRow.status.in_(states.LIVE))
    played = select(RoundRow.ended_at, RoundRow.finished).where(RoundRow.source == SELFPLAY, lately)
    rounds = Counter[date]()
    for ended, finished in session.execute(played):
        rounds[(ended or now).date()] += finished
    days = [first + timedelta(days=number) for number in range(_DAYS)]
    return [DayBar(day, people[day], rounds[day]) for day in days]


def _curve(session: Session, kind: JobKind[Any]) -> SmallCurve | None:
    """That of the latest job of a kind that has begun; None without one, or where it has too few points."""
    if not kind.curves:
        return None
    begun = select(kind.table).where(kind.table.started_at.is_not(None), kind.table.removed_at.is_(None))
    row = session.scalar(begun.order_by(kind.table.id.desc()).limit(1))
    found = None if row is None else _looked(kind, row)
    if row is None or found is None:
        return None
    [item] = page_of(kind).items_of(session, [row])
    title, x, points = found
    drawn = _drawn(points)
    path = "M" + "L".join(f"{left:g} {top:g}" for left, top in drawn)
    at, end = points[-1]
    address = job_address(kind, row.id)
    return SmallCurve(named_job(kind, item), address, title, x, path, drawn[-1], points[0][1], end, at)


def _looked(kind: JobKind[Any], row: Any) -> _Points | None:
    """The points of a job, read off the event loop: once when it is over, else now and then."""
    kept: dict[str, _KeptCurve] = current_app.extensions.setdefault(__name__, {})
    state, last = (row.id, row.status, row.ended_at), kept.get(kind.name)
    if last is None or last.state != state or (row.ended_at is None and time.monotonic() > last.at + _EVERY):
        last = kept[kind.name] = _KeptCurve(state, time.monotonic(), in_worker_thread(db.engine, _points, kind, row.id))
    return last.points


def _points(session: Session, kind: JobKind[Any], number: int) -> _Points | None:
    for curve in curves_of(kind, session, kind.get(session, number)):
        points = [(place, value) for place, value in curve.points if not isinstance(place, str)]
        if len(points) > 1:
            every = -(-len(points) // _POINTS)
            return _Points(curve.title, curve.x, points[::-1][::every][::-1])
    return None


def _drawn(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points in units of the drawing, whose top is 0."""
    (left, right), values = (points[0][0], points[-1][0]), [value for _, value in points]
    low, wide, high = min(values), (right - left) or 1, (max(values) - min(values)) or 1
    return [
        (
            round(_EDGE + (_WIDTH - 2 * _EDGE) * (place - left) / wide, 1),
            round(_HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * (value - low) / high, 1),
        )
        for place, value in points
    ]
