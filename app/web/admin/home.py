"""The overview: what is running, what went wrong, and everything that was played as CSV."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from flask import Response, render_template, request
from sqlalchemy.orm import Session

from app.core.disk import low_disk
from app.core.errors import Phrase, Verbatim
from app.core.extensions import reading
from app.core.failures import MODEL_FAULT, SETTINGS_FAULT, VENDOR_FAULT
from app.core.lists import English, ListColumn, Reference
from app.job_kinds import JOB_KINDS
from app.jobs.kind import JobKind
from app.jobs.listing import failed_jobs
from app.jobs.page import page_of
from app.matches.failures import LATELY, MOST, ModelFailure, last_failures
from app.matches.listing import player_cell
from app.matches.model_list import ModelListItem
from app.matches.overview import latest_matches, live_matches, overview
from app.notices.outbox import count_failed
from app.registry import list_models
from app.rounds.listing import open_rounds
from app.web.admin.blueprint import blueprint
from app.web.admin.home_charts import small_charts
from app.web.admin.home_parts import NeedLine, failed_need, other_needs, people_today, runs
from app.web.admin.job_pages import named_job
from app.web.admin.lists import phrase, table_of
from app.web.admin.spending_note import used_up_budget
from app.web.admin.study_reports import reports_waiting
from app.web.csv_exports import csv_download
from app.web.language import midnight
from app.web.seats import settings


@blueprint.get("/")
def home() -> str:
    """What is being played, what went wrong or was played last, and the models that can be played against."""
    now, today = datetime.now(UTC), midnight()
    with reading() as session:
        figures, models, rounds = overview(session, now, today), list_models(session), open_rounds(session)
        quiet = ListColumn("quiet", Phrase("For"), lambda line: _minutes(now, line.match.moved_at), numeric=True)
        live, latest = live_matches(session, now), latest_matches(session)
        causes = _by_cause(_failures(session, now))
        page = {
            "needs": _needs(session, causes),
            "runs": runs(session, rounds),
            "charts": small_charts(session, today),
            "people": people_today(session, today),
            "now": now,
            "figures": figures,
            "low_disk": low_disk(settings()),
            "used_up": used_up_budget(),
            "reports": reports_waiting(),
            "unsent_notices": count_failed(session),
            "upkeep_runs": figures.upkeep_until is not None and figures.upkeep_until > now,
            "live": table_of(session, "matches", live, "match", "game", "players", "source", "moves", _TO_MOVE, quiet),
            "failures": table_of(session, "matches", causes[:_MOST_CAUSES], *_FAILURE),
            "most_failures": MOST,
            "latest": table_of(
                session, "matches", latest,
                "match", "game", "players", "source", "state", "scores", "moves", "started_at",
            ),
            "models": models,
            "registry": table_of(
                session, "models", [ModelListItem(row) for row in models[:_MODELS]], "name", "label", "test_call", "for"
            ),
            "rounds": rounds,
        }  # fmt: skip
        return render_template("admin/home.html", **page)


class JobFailure(NamedTuple):
    """A job that stopped because it could not continue."""

    at: datetime
    job_kind: JobKind[Any]
    number: int
    name: str
    detail: str


def _failures(session: Session, now: datetime) -> list[ModelFailure | JobFailure]:
    """Recent failures of matches, models and jobs of every kind, newest first."""
    failures: list[ModelFailure | JobFailure] = [*last_failures(session, now)]
    failures += [
        JobFailure(item.row.ended_at, kind, item.row.id, named_job(kind, item), item.row.error or "")
        for kind in JOB_KINDS
        if (rows := failed_jobs(session, kind, now - LATELY, MOST))
        for item in page_of(kind).items_of(session, rows)
    ]
    return sorted(failures, key=lambda failure: failure.at, reverse=True)


def _needs(session: Session, causes: Sequence["FailureCause"]) -> list[NeedLine]:
    """What waits for an experimenter: failed jobs that have not been resumed, and everything else."""
    failed = [(each.latest, each.times) for each in causes if isinstance(each.latest, JobFailure)]
    return [
        *(failed_need(latest.job_kind, latest.number, latest.name, latest.detail, times) for latest, times in failed),
        *other_needs(session),
    ]


class FailureCause(NamedTuple):
    """Failures of one model, or of one kind of job, with the same cause: the latest one, and their number."""

    latest: ModelFailure | JobFailure
    times: int


def _by_cause(failures: Sequence[ModelFailure | JobFailure]) -> list[FailureCause]:
    """Failures grouped by cause, most recent first. `failures` are sorted newest first."""
    causes: dict[tuple[Any, ...], list[ModelFailure | JobFailure]] = {}
    for failure in failures:
        of = failure.job_kind if isinstance(failure, JobFailure) else (failure.kind, failure.fault, failure.model)
        causes.setdefault((of, _NUMBERS.sub("#", failure.detail)), []).append(failure)
    return [FailureCause(found[0], len(found)) for found in causes.values()]


_MOST_CAUSES = 20  # in the list
_MODELS = 10  # in the registry; all of them have a page
_NUMBERS = re.compile(r"\d[\d.,]*")  # seconds, job numbers: causes that differ only in these are the same
_ABORTED: Mapping[str, Phrase] = {
    MODEL_FAULT: Phrase("Match aborted, the model’s fault"),
    SETTINGS_FAULT: Phrase("Match aborted, the settings’ fault"),
    VENDOR_FAULT: Phrase("Match aborted, the vendor’s fault"),
}


def _what_failed(failure: ModelFailure | JobFailure) -> Phrase:
    if isinstance(failure, JobFailure):
        return Phrase("%(job)s stopped", job=Verbatim(failure.name))
    if failure.kind != "match":
        return Phrase("A test call failed") if failure.kind == "test" else Phrase("A call brought no answer")
    return _ABORTED.get(failure.fault, Phrase("Match aborted, our fault"))


def _model_of(failure: ModelFailure | JobFailure) -> Reference | str | None:
    if isinstance(failure, JobFailure) or failure.model_id is None:
        return None if isinstance(failure, JobFailure) else failure.model
    return Reference("model", failure.model_id, failure.model or "")


def _match_or_job(failure: ModelFailure | JobFailure) -> Reference | None:
    if isinstance(failure, JobFailure):
        return Reference(failure.job_kind.name, failure.number, failure.name)
    return Reference("match", failure.match_id, failure.match_id) if failure.match_id else None


_FAILURE = (
    ListColumn("what", Phrase("What happened"), lambda alike: phrase(_what_failed(alike.latest))),
    ListColumn("times", Phrase("How often"), lambda alike: alike.times, numeric=True),
    ListColumn("why", Phrase("Why"), lambda alike: English(alike.latest.detail)),
    ListColumn("model", Phrase("Model"), lambda alike: _model_of(alike.latest)),
    ListColumn("where", Phrase("The latest"), lambda alike: _match_or_job(alike.latest), none=Phrase("none")),
    ListColumn("at", Phrase("When, UTC"), lambda alike: alike.latest.at),
)
_TO_MOVE = ListColumn(
    "to_move",
    Phrase("To move"),
    lambda line: (
        player_cell(line.players[line.match.to_move]) if line.match.to_move is not None and line.players else None
    ),
)


def _minutes(now: datetime, since: datetime) -> str:
    """How long ago, as minutes and seconds."""
    minutes, seconds = divmod(max(0, int((now - since).total_seconds())), 60)
    return f"{minutes}:{seconds:02}"


@blueprint.get("/export/<name>.csv")
def download(name: str) -> Response:
    """Stream a CSV as it is written.

    `guard=1` and `bom=1` work as on the command line; the filters of the list of matches apply here, too. Raises
    NotFound for an unknown table or player, Invalid for an impossible filter.
    """
    return csv_download(name, request.args)
