"""The events that notices report: failed jobs, paused waves, limits that are nearly reached, and urgent reports.

The texts hold names of jobs and studies, counts and amounts: nothing that people wrote, and no error of a job, which
may quote it.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.disk import low_disk
from app.core.errors import Phrase, Verbatim
from app.job_kinds import JOB_KINDS
from app.jobs.listing import failed_jobs, named
from app.jobs.page import page_of
from app.models import Study, StudyEvent, Wave
from app.spend.limits import limits
from app.spend.people import wave_caps
from app.studies.enrolment import PAUSED_BY_START
from app.studies.reports import REPORT
from app.studies.waves import PAUSED

JOBS, STUDIES, LIMITS, REPORTS, TEST = "jobs", "studies", "limits", "reports", "test"
KINDS: Mapping[str, Phrase] = {
    JOBS: Phrase("a job failed"),
    STUDIES: Phrase("a study paused"),
    LIMITS: Phrase("a budget, a spend cap or the disk is nearly used up: at 80 % and at 100 %"),
    REPORTS: Phrase("a participant reports that something is broken, stuck or upsetting"),
}
NEAR, REACHED = 80, 100  # percent of a limit
URGENT = ("broken", "stuck", "upsetting")  # reasons of reports that are notified at once
_MOST = 500  # of one kind per look: more would be one mail anyway


class NoticeCause(NamedTuple):
    """An event to report once. `key` is the same each time the event is found; `path` is of the page that it links
    to.
    """

    kind: str
    key: str
    at: datetime
    text: Phrase
    path: str


def find_causes(session: Session, settings: Settings, since: datetime) -> list[NoticeCause]:
    """Events since `since`, and the limits that are nearly reached now."""
    now = datetime.now(UTC)
    return [
        *_failed_jobs(session, since),
        *_of_waves(session, since),
        *near_limits(session, settings),
        *_disk(settings, now),
    ]


def near_limits(session: Session, settings: Settings) -> list[NoticeCause]:
    """The spending limits that are used up to NEAR percent or more."""
    now = datetime.now(UTC)
    return [*_limits_nearly_reached(session, settings, now), *_caps_of_waves(session, now)]


def _failed_jobs(session: Session, since: datetime) -> Iterator[NoticeCause]:
    for kind in JOB_KINDS:
        rows = failed_jobs(session, kind, since, _MOST)
        items = page_of(kind).items_of(session, rows) if rows else ()
        for row, item in zip(rows, items, strict=True):
            key = f"failed {kind.name} {row.id} {row.ended_at:%Y-%m-%dT%H:%M:%S.%f}"
            path = f"/admin/run/{kind.name}/{row.id}"
            yield NoticeCause(JOBS, key, row.ended_at, Phrase("a job failed: %(job)s", job=named(kind, item)), path)


def _of_waves(session: Session, since: datetime) -> Iterator[NoticeCause]:
    """Paused waves, and urgent reports by people."""
    events = (
        select(StudyEvent, Wave, Study.name)
        .join(Wave, Wave.id == StudyEvent.wave_id)
        .join(Study, Study.id == Wave.study_id)
        .where(
            StudyEvent.at >= since,
            StudyEvent.kind.in_((REPORT, PAUSED, PAUSED_BY_START)),
            Wave.rehearsal.is_(False),
        )
        .order_by(StudyEvent.id.desc())
        .limit(_MOST)
    )
    for event, wave, study in session.execute(events):
        name = Verbatim(f"{study}:{wave.name}")
        if event.kind != REPORT:
            text = Phrase("the wave %(wave)s paused", wave=name)
            yield NoticeCause(STUDIES, f"paused {event.id}", event.at, text, f"/admin/studies/waves/{wave.id}")
        elif event.body.get("reported") in URGENT:
            text = Phrase("a participant of %(wave)s reports a problem", wave=name)
            yield NoticeCause(REPORTS, f"report {event.id}", event.at, text, f"/admin/studies/reports/{event.id}")


def _limits_nearly_reached(session: Session, settings: Settings, now: datetime) -> Iterator[NoticeCause]:
    for limit in limits(session, settings, 0):  # the pace is not needed here
        unit = "tokens" if limit.in_tokens else "USD"
        of = "installation" if limit.kind is None else f"{limit.kind} {limit.number}"
        if limit.kind is None:  # each period is reported anew
            of += f" {now:%Y-%m-%d}" if settings.SPENDING_PERIOD == "day" else f" {now:%Y-%m}"
        title = limit.title if limit.kind is None else Phrase("budget of %(job)s", job=limit.title)
        yield from _near(title, of, limit.spent, limit.most, unit, now, "/admin/spend#limits")


def _caps_of_waves(session: Session, now: datetime) -> Iterator[NoticeCause]:
    for cap in wave_caps(session):
        path = f"/admin/studies/waves/{cap.number}"
        title = Phrase("spend cap of %(wave)s", wave=cap.title)
        yield from _near(title, f"wave {cap.number}", cap.spent, cap.most, cap.currency or "USD", now, path)


def _near(
    title: Phrase, of: str, spent: float, most: float, unit: str, now: datetime, path: str
) -> Iterator[NoticeCause]:
    """The higher of the two marks that a limit has passed, if any."""
    percent = 100 * spent / most if most else 0
    mark = REACHED if percent >= REACHED else NEAR if percent >= NEAR else None
    if mark is None:
        return
    form = {"tokens": "%.0f tokens", "USD": "$%.2f"}.get(unit, f"%.2f {unit}")
    text = Phrase(
        "%(limit)s: %(percent)s %% used, %(spent)s of %(most)s",
        limit=title,
        percent=int(percent),
        spent=Verbatim(form % spent),
        most=Verbatim(form % most),
    )
    yield NoticeCause(LIMITS, f"limit {of} {most:g} {unit} {mark}", now, text, path)


def _disk(settings: Settings, now: datetime) -> Iterator[NoticeCause]:
    if (left := low_disk(settings)) is not None:
        text = Phrase("%(left)s MB are left on the disk", left=left)
        yield NoticeCause(LIMITS, f"disk {now:%Y-%m-%d}", now, text, "/admin/spend#storage")
