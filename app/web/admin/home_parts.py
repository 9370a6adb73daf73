"""Parts of the overview: what needs an experimenter now, what is running, and today's people."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from flask import current_app, get_template_attribute, url_for
from flask_babel import gettext
from markupsafe import Markup
from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from app.core.errors import Phrase, Verbatim
from app.core.extensions import db
from app.core.lists import Done, ListColumn, Reference, State
from app.job_kinds import kinds_with_live_jobs
from app.jobs import states
from app.jobs.kind import JobKind
from app.jobs.listing import list_of
from app.matches.filter import PEOPLES, REHEARSAL
from app.models import Enrolment, MatchRow, PaymentBatch, SeatRow, Study, Wave
from app.notices.causes import NoticeCause, near_limits
from app.rounds.job import ROUND
from app.rounds.listing import RoundListItem
from app.studies.batches import UPLOADED
from app.studies.endings import COMPLETED
from app.studies.listing import wave_state
from app.studies.waves import CLOSED, OPEN, PAUSED
from app.web.admin.job_pages import job_address, job_name
from app.web.admin.lists import ListLine, ListView
from app.web.seats import settings
from app.web.threads import in_worker_thread

_MOST = 20  # of each kind in a list
_EVERY = 30.0  # seconds for which the limits are cached


class NeedLine(NamedTuple):
    """Something that waits for an experimenter: what happened, what follows if nothing is done, and a button.

    `posts` are buttons: for each its label, its address, and the action that it sends.
    """

    kind: Phrase
    what: Phrase | Reference
    otherwise: Phrase | None
    bad: bool = False
    why: str = ""  # in English, as in the job's row
    times: int = 1
    link: str = ""
    posts: Sequence[tuple[Phrase, str, str]] = ()


class RunLine(NamedTuple):
    """Something that runs or waits to run: a job of any kind, or an open wave."""

    name: Reference
    state: State
    done: Done
    what: Phrase | str
    began: datetime | None
    acts: Markup | None


class PeopleLine(NamedTuple):
    """Today's people of a wave, those who play without a study, or rehearsal bots."""

    who: Reference | Phrase
    here: int | None
    came: int | None
    finished: int | None
    early: int | None
    over: int
    aborted: int


RESUME, REOPEN = Phrase("Resume"), Phrase("Reopen")


def failed_need(kind: JobKind[Any], number: int, name: str, why: str, times: int) -> NeedLine:
    """The line for a failed job."""
    posts = [(RESUME, job_address(kind, number), "resume")] if times == 1 else []
    what = Reference(kind.name, number, name)
    return NeedLine(
        Phrase("failed"), what, Phrase("It stays as it is until it is resumed."), True, why, times, "", posts
    )


def other_needs(session: Session) -> list[NeedLine]:
    """Limits that are nearly reached, paused waves, and payment batches that nobody has confirmed."""
    found = [
        NeedLine(Phrase("limit"), cause.text, Phrase("What it limits stops when it is reached."), link=cause.path)
        for cause in _near_limits()
    ]
    paused = (
        select(Wave, Study.name)
        .join(Study, Study.id == Wave.study_id)
        .where(Wave.status == PAUSED, Wave.rehearsal.is_(False), Wave.frozen_at.is_(None))
        .order_by(Wave.id.desc())
        .limit(_MOST)
    )
    for wave, study in session.execute(paused):
        reference = Reference("wave", wave.id, f"{study}:{wave.name}")
        reopen = [(REOPEN, url_for("admin.wave_page", wave_id=wave.id), "reopen")]
        otherwise = Phrase("Nobody new gets in until it is reopened.")
        found.append(NeedLine(Phrase("paused"), reference, otherwise, posts=reopen))
    uploaded = (
        select(PaymentBatch, Wave, Study.name)
        .join(Wave, Wave.id == PaymentBatch.wave_id)
        .join(Study, Study.id == Wave.study_id)
        .where(PaymentBatch.status == UPLOADED, Wave.rehearsal.is_(False))
        .order_by(PaymentBatch.id)
        .limit(_MOST)
    )
    for batch, wave, study in session.execute(uploaded):
        name = Verbatim(f"{study}:{wave.name}")
        what = Phrase("batch %(number)s of %(wave)s is uploaded and not confirmed", number=batch.number, wave=name)
        pay = url_for("admin.wave_pay", wave_id=wave.id)
        found.append(NeedLine(Phrase("pay"), what, Phrase("Its people count as unpaid until then."), link=pay))
    return found


class _CachedLimits(NamedTuple):
    """The limits that were nearly reached, and when they were read by the clock of `time.monotonic`."""

    at: float
    found: list[NoticeCause]


def _near_limits() -> list[NoticeCause]:
    """The limits that are at least 80 % used, read off the event loop; they may be half a minute old."""
    last: _CachedLimits | None = current_app.extensions.get(__name__)
    if last is None or time.monotonic() > last.at + _EVERY:
        last = _CachedLimits(time.monotonic(), in_worker_thread(db.engine, near_limits, settings()))
        current_app.extensions[__name__] = last
    return last.found


def runs(session: Session, rounds: Sequence[RoundListItem]) -> ListView:
    """All waiting or running jobs and all open waves, each with the buttons that stop it. `rounds` are open."""
    lines = [*_waves(session)]
    for kind in kinds_with_live_jobs(session):
        listing = list_of(kind)
        name, status, done = (listing.column(each, "column") for each in ("name", "status", "done"))
        for item in _live_items(session, kind, rounds):
            row, subject = item.row, job_name(kind, item.row.id)
            # A cross-play is one line; its page has one stop button for all of its rounds.
            acts = [("cancel", gettext("Cancel"))] if kind.may_cancel(row) and not getattr(item, "members", ()) else []
            called, state, far = (column.value(item) for column in (name, status, done) if column.value)
            lines.append(
                RunLine(
                    called,
                    state,
                    far,
                    subject,
                    row.started_at,
                    _buttons(job_address(kind, row.id), acts, subject) if acts else None,
                )
            )
    return _list_view(_RUNS, lines)


def _live_items(session: Session, kind: JobKind[Any], rounds: Sequence[RoundListItem]) -> Sequence[Any]:
    """The waiting or running jobs of a kind, as items of its list."""
    if kind is ROUND:
        return rounds
    live = select(kind.table).where(kind.table.status.in_(states.LIVE)).order_by(kind.table.id.desc())
    return list_of(kind).items(session, session.scalars(live.limit(_MOST)).all())


def _waves(session: Session) -> list[RunLine]:
    people = select(func.coalesce(func.sum(case((Enrolment.ending == COMPLETED, 1), else_=0)), 0)).where(
        Enrolment.wave_id == Wave.id
    )
    opened = (
        select(Wave, Study.name, people.scalar_subquery())
        .join(Study, Study.id == Wave.study_id)
        .where(Wave.status != CLOSED, Wave.rehearsal.is_(False))
        .order_by(Wave.id.desc())
        .limit(_MOST)
    )
    found = []
    for wave, study, completed in session.execute(opened):
        acts = [("pause", gettext("Pause"))] if wave.status == OPEN else [("reopen", gettext("Reopen"))]
        name = f"{study}:{wave.name}"
        address = url_for("admin.wave_page", wave_id=wave.id)
        found.append(
            RunLine(
                Reference("wave", wave.id, name),
                wave_state(wave),
                Done(completed, wave.settings.get("places")),  # files of earlier versions may call it otherwise
                Phrase("wave of a study"),
                wave.created_at,
                _buttons(address, [*acts, ("close", gettext("Close"))], name),
            )
        )
    return found


def people_today(session: Session, midnight: datetime) -> ListView:
    """The people since midnight by wave, those without a study, and the rehearsal bots in a separate line."""
    entered = Enrolment.enrolled_at >= midnight
    ended = Enrolment.ended_at >= midnight
    counted: Sequence[ColumnElement[bool]] = (
        Enrolment.ending.is_(None),
        entered,
        ended & (Enrolment.ending == COMPLETED),
        ended & (Enrolment.ending != COMPLETED),
    )
    sums = [func.sum(case((each, 1), else_=0)) for each in counted]
    grouped = (
        select(Wave.id, Wave.name, Study.name, Wave.rehearsal, *sums)
        .join(Enrolment, Enrolment.wave_id == Wave.id)
        .join(Study, Study.id == Wave.study_id)
        .where(entered | ended | (Wave.status != CLOSED))
        .group_by(Wave.id, Wave.name, Study.name, Wave.rehearsal)
        .order_by(Wave.id.desc())
    )
    matches = _matches_today(session, midnight)
    waves, bots = list[PeopleLine](), [0, 0, 0, 0, 0, 0]
    for number, wave, study, rehearsal, *figures in session.execute(grouped):
        all_figures = [*map(int, figures), *matches.get(number, (0, 0))]
        if rehearsal:
            bots = [sum(pair) for pair in zip(bots, all_figures, strict=True)]
        elif any(all_figures):
            waves.append(PeopleLine(Reference("wave", number, f"{study}:{wave}"), *all_figures))
    lines = waves[:_MOST]
    if any(guests := matches.get(None, (0, 0))):
        lines.append(PeopleLine(Phrase("without a study"), None, None, None, None, *guests))
    if any(bots):
        lines.append(PeopleLine(Phrase("rehearsal bots, in no sum"), *bots))
    return _list_view(_PEOPLE, lines)


def _matches_today(session: Session, midnight: datetime) -> Mapping[int | None, tuple[int, int]]:
    """Today's finished matches and the aborted ones among them, by wave; None for matches without a study."""
    aborted = func.count(case((MatchRow.reason == "aborted", 1)))
    # All by one index: finished matches have a reason, and those of a study have an arm.
    over = MatchRow.started_at >= midnight, MatchRow.reason.is_not(None)
    others = select(func.count(), aborted).where(*over, MatchRow.source.in_(PEOPLES), MatchRow.arm_id.is_(None))
    in_studies = select(MatchRow.id).where(
        *over, MatchRow.source.in_((*PEOPLES, REHEARSAL)), MatchRow.arm_id.is_not(None)
    )
    first = (
        select(SeatRow.match_id, func.max(Enrolment.wave_id).label("wave"))
        .join(Enrolment, Enrolment.id == SeatRow.enrolment_id)
        .where(SeatRow.match_id.in_(in_studies))
        .group_by(SeatRow.match_id)
        .subquery()
    )
    of_waves = select(first.c.wave, func.count(), aborted).join(MatchRow, MatchRow.id == first.c.match_id)
    rows = [(None, *session.execute(others).one()), *session.execute(of_waves.group_by(first.c.wave))]
    return {wave: (count, broken) for wave, count, broken in rows}


def _buttons(address: str, acts: Sequence[tuple[str, str]], name: str) -> Markup:
    write_buttons = get_template_attribute("admin/home-parts.html", "act_buttons")
    found: Markup = write_buttons(address, acts, name)
    return found


def _list_view(columns: Sequence[ListColumn], lines: Sequence[Any]) -> ListView:
    return ListView(
        columns, [ListLine(line, [column.value(line) for column in columns if column.value]) for line in lines]
    )


_RUNS = (
    ListColumn("run", Phrase("Run"), lambda line: line.name),
    ListColumn("what", Phrase("What"), lambda line: line.what),
    ListColumn("state", Phrase("State"), lambda line: line.state),
    ListColumn("progress", Phrase("Progress"), lambda line: line.done),
    ListColumn("began", Phrase("Began, UTC"), lambda line: line.began, none=Phrase("not yet"), numeric=True),
    ListColumn("acts", Phrase("Actions"), lambda line: line.acts),
)
_PEOPLE = (
    ListColumn("who", Phrase("Who"), lambda line: line.who),
    ListColumn("here", Phrase("Active now"), lambda line: line.here, numeric=True),
    ListColumn("came", Phrase("Entered"), lambda line: line.came, numeric=True),
    ListColumn("finished", Phrase("Completed"), lambda line: line.finished, numeric=True),
    ListColumn("early", Phrase("Ended early"), lambda line: line.early, numeric=True),
    ListColumn("over", Phrase("Finished matches"), lambda line: line.over, numeric=True),
    ListColumn("aborted", Phrase("Aborted"), lambda line: line.aborted, numeric=True),
)
