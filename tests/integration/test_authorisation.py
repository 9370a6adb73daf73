"""Who may do what: every route and every socket event, as nobody, as participant, as another one, as experimenter.

What exists is read from the running parts, what is allowed stands in the two tables here, ROUTES and EVENTS. A route
or an event without a line in its table fails, and the failure says which line to add.
"""

import contextlib
import http.cookiejar
import json
import re
import shutil
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, Literal

import pytest
import websocket
from flask import Flask
from flask.testing import FlaskClient
from itsdangerous import TimestampSigner
from sqlalchemy import func, select
from werkzeug.routing import Rule
from werkzeug.test import TestResponse

from app import accounts
from app.core.config import load_settings
from app.core.extensions import db, reading, writing
from app.factory import create_app
from app.matches import live
from app.models import EventRow, LanguageModel, LoginLink, MatchRow, SeatRow, StudyEvent, User, UserSession
from app.registry import add_api_model
from app.rounds import lifecycle, matrix
from app.rounds.spec import RoundSpec
from app.schema import upgrade
from app.studies.bots import job as rehearsals
from app.studies.bots.spec import RehearsalSpec
from app.studies.previews import preview_token
from app.studies.reports import REPORT, keep_report
from app.web import tickets
from app.web.extensions import socketio
from app.web.sockets import watch_namespace as watch
from tests.assessments import make_alignment, make_assessment
from tests.benchmarks import make_benchmark
from tests.campaigns import add_local, campaign_of
from tests.datasets import cut
from tests.enrolments import enrol, load_example, open_wave
from tests.experimenter import signed_in
from tests.jobs import make_job
from tests.participant import JSON, NAMESPACE, Participant, Refused, Table
from tests.publications import make_publication
from tests.recipes import make_run
from tests.rounds import make_round, play
from tests.societies import make_society
from tests.stack import PATIENCE, Stack, new_home
from tests.tables import database, negotiation, settings_of, taboo
from tests.waves import arrive, loaded_study, new_wave, store_study
from workers.prepare import new_admin_link

WORD, WORDS, MODEL = "marzipan", "Quokkas whisper", "zebra-quartz"  # the match's word, what was said in it, who played
Who = Literal["nobody", "participant", "other", "admin"]
WHO: tuple[Who, ...] = ("nobody", "participant", "other", "admin")
CHANGING = ("POST", "PUT", "PATCH", "DELETE")


# ---- The table of routes ------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What each visitor gets: a status, and where a redirect leads to (`*` stands for anything)."""

    nobody: str
    participant: str  # whose match it is, where the address names one
    other: str  # another participant, who sits in a match of their own
    admin: str
    form: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    token: bool = True  # whether the method, if it changes anything, is refused without a CSRF token


def everyone(what: str, **more: Any) -> Row:
    """The same for all."""
    return Row(what, what, what, what, **more)


def seated(what: str) -> Row:
    """For the participant of that match alone: the others and experimenters have no seat in it."""
    return Row("403", what, "403", "403")


def experimenters(what: str, **more: Any) -> Row:
    """For who is signed in; the rest is asked to sign in, and comes back after that if it was a page."""
    ask = "302 /sign-in{next}"
    return Row(ask, ask, ask, what, **more)


def programs() -> Row:
    """For programs with a token alone: every visitor here has a session's cookie, and is told to leave it out."""
    return everyone("400", token=False)


# One line a method of a rule. A rule with <match_id> has a second line for a match that is over.
ROUTES: dict[str, Row] = {
    "GET /static/<path:filename>": everyone("200"),
    "GET /": everyone("200"),
    "POST /start/<game>": everyone("303 /play/*"),
    "GET /play/<match_id>": seated("200"),
    "GET /play/<match_id> (over)": seated("303 /play/{match_id}/result"),
    "GET /play/<match_id>/result": seated("303 /play/{match_id}"),
    "GET /play/<match_id>/result (over)": seated("200"),
    "GET /rules/<game>": everyone("200"),
    "GET /about": everyone("200"),
    "GET /privacy": everyone("200"),
    "GET /privacy/my-data.json": everyone("404"),  # of the guest of this browser, before the first match
    "POST /privacy": everyone("303 /privacy?done=training", form={"action": "training"}),
    "GET /healthz": everyone("200"),
    # A study: whoever has the link is let in, and the private link is all that a person needs.
    "GET /s/<study>/<wave>": everyone("200"),
    "POST /s/<study>/<wave>": everyone("200"),  # without the recruiter's parameters nobody is let in
    "GET /s/preview/<signed>": everyone("200"),
    "POST /s/preview/<signed>": everyone("303 /s/me/*"),
    "GET /s/me/<token>": everyone("200"),
    "POST /s/me/<token>": everyone("303 /s/me/{token}"),  # for no step that is due
    "POST /s/me/<token>/here": everyone("303 /s/me/{token}"),
    "GET /s/me/<token>/rules": everyone("303 /s/me/{token}"),  # not before they were read
    "GET /s/me/<token>/agreed": everyone("200"),
    "GET /s/me/<token>/leave": everyone("200"),
    "GET /s/me/<token>/data.json": everyone("200"),
    "POST /s/me/<token>/leave": everyone("200"),
    "GET /s/me/<token>/report": everyone("200"),
    "POST /s/me/<token>/report": everyone("200", form={"reason": "broken", "text": "Slow.", "then": "stay"}),
    "GET /s/me/back/<code>": everyone("404"),  # a link of another kind
    "POST /s/me/back/<code>": everyone("404"),
    "POST /language": everyone("303 /", form={"language": "de"}),
    "POST /api/matches": everyone("201", json={"game": "taboo"}, token=False),
    # The API, which tests/integration/test_api.py asks with tokens.
    "GET /account/api": experimenters("200"),
    "GET /api/v1/openapi.json": everyone("200"),
    "GET /api/v1/matches": programs(),
    "GET /api/v1/matches/<match_id>": programs(),
    "GET /api/v1/matches/<match_id> (over)": programs(),
    "GET /api/v1/exports/<name>.csv": programs(),
    "GET /api/v1/studies": programs(),
    "GET /api/v1/studies/<int:number>": programs(),
    "GET /api/v1/studies/<int:number>/data.zip": programs(),
    "GET /api/v1/waves/<int:number>/people": programs(),
    "POST /api/v1/waves/<int:number>/ids": programs(),
    "GET /api/v1/<job_kind:kind>/<int:number>/events": programs(),
    "GET /api/v1/models": programs(),
    "GET /api/v1/models/<int:number>": programs(),
    "GET /api/v1/datasets": programs(),
    "GET /api/v1/removals": programs(),
    "GET /api/v1/codings": programs(),
    "GET /api/v1/codings/<int:number>": programs(),
    "GET /api/v1/datasets/<int:number>": programs(),
    "GET /api/v1/<job_kind:kind>": programs(),
    "POST /api/v1/<job_kind:kind>": programs(),
    "GET /api/v1/<job_kind:kind>/<int:number>": programs(),
    "POST /api/v1/<job_kind:kind>/<int:number>/cancel": programs(),
    "POST /api/v1/<job_kind:kind>/<int:number>/tags": programs(),
    "POST /api/v1/<job_kind:kind>/<int:number>/resume": programs(),
    "GET /sign-in": Row("200", "200", "200", "302 /admin/"),
    "POST /sign-in": everyone("401", form={"name": "admin", "password": "a wrong one"}),
    "POST /sign-out": experimenters("303 /sign-in"),
    "GET /enter/<token>": everyone("200"),
    "POST /enter/<token>": everyone("303 /admin/"),  # who holds the link may come in; it works once
    "GET /account": experimenters("200"),
    "POST /account": experimenters("400", form={"new": "one password", "again": "another password"}),
    "POST /account/time-zone": experimenters("400", form={"time_zone": "Nowhere"}),
    "POST /account/notices": experimenters("303 /account?notices=saved#notices"),
    "POST /account/tokens": experimenters("400", form={"token_name": "a token that may do nothing"}),
    "POST /account/tokens/<int:number>": experimenters("404"),  # nobody has made one
    "GET /admin/<path:_anything>": experimenters("404"),
    "GET /admin/": experimenters("200"),
    "GET /admin/spend": experimenters("200"),
    "POST /admin/spend": experimenters("400"),  # without an action
    "GET /admin/notices": experimenters("200"),
    "POST /admin/notices": experimenters("400"),  # without an action
    "POST /admin/tags/<kind>/<int:number>": experimenters("400"),  # without an action
    "GET /admin/run/<name>/<int:number>": experimenters("404"),  # no such kind of job
    "GET /admin/spend/storage": experimenters("200"),
    "POST /admin/spend/storage": experimenters("400"),  # without an action
    "GET /admin/spend/removed": experimenters("200"),
    "GET /admin/spend/removed/<int:number>": experimenters("404"),
    "POST /admin/spend/removed/<int:number>": experimenters("404"),
    "GET /admin/export/<name>.csv": experimenters("200"),
    "GET /admin/export/inspect.<form>": experimenters("404"),  # no such form
    "GET /admin/codebook": experimenters("200"),
    "GET /admin/compare/<jobs>": experimenters("400"),
    "POST /admin/figures/<form>": experimenters("400"),
    "POST /admin/lists/<name>/columns": experimenters("404"),
    "GET /admin/matches": experimenters("200"),
    "GET /admin/matches/analysis": experimenters("200"),
    "GET /admin/matches/transcripts": experimenters("200"),
    "GET /admin/matches/codings": experimenters("200"),
    "POST /admin/matches/codings": experimenters("400", form={"name": "", "codes": ""}),
    "POST /admin/matches/codings/add": experimenters("404", form={"coding": "999"}),
    "GET /admin/matches/codings/<int:number>": experimenters("404"),
    "POST /admin/matches/codings/<int:number>/codes": experimenters(
        "404", form={"match": "x", "line": "1", "key": "1"}
    ),
    "POST /admin/matches/codings/<int:number>/undo": experimenters("404"),
    "POST /admin/matches/codings/<int:number>/done": experimenters("404"),
    "GET /admin/matches/codings/<int:number>.csv": experimenters("404"),
    "POST /admin/matches/codings/<int:number>/left": experimenters("400"),  # without an action
    "GET /admin/matches/analysis.csv": experimenters("200"),
    "GET /admin/matches/<match_id>": experimenters("200"),
    "GET /admin/matches/<match_id> (over)": experimenters("200"),
    "GET /admin/rounds": experimenters("200"),
    "GET /admin/rounds/new": experimenters("200"),
    "POST /admin/rounds/new": experimenters("400", form={"game": "taboo", "matches": "none at all"}),
    "GET /admin/rounds/compare": experimenters("400"),
    "GET /admin/rounds/matrix/<int:round_id>": experimenters("200"),
    "POST /admin/rounds/matrix/<int:round_id>": experimenters(
        "303 /admin/rounds/matrix/{round_id}", form={"action": "cancel"}
    ),
    "GET /admin/rounds/<int:round_id>": experimenters("200"),
    "POST /admin/rounds/<int:round_id>": experimenters("303 /admin/rounds/{round_id}", form={"action": "cancel"}),
    "GET /admin/rounds/<int:round_id>/charts/<name>.json": experimenters("404"),  # nothing has been played
    "GET /admin/rounds/<int:round_id>/latest": experimenters("200"),
    "GET /admin/datasets": experimenters("200"),
    "GET /admin/datasets/new": experimenters("200"),
    "POST /admin/datasets/new": experimenters("400", form={"rounds": "none at all"}),
    "GET /admin/datasets/import": experimenters("200"),
    "POST /admin/datasets/import": experimenters("400", form={"format": "none that there is"}),
    "GET /admin/datasets/<int:dataset_id>": experimenters("200"),
    "POST /admin/datasets/<int:dataset_id>/rebuild": experimenters("303 /admin/datasets/*"),
    "GET /admin/datasets/<int:dataset_id>/rows": experimenters("200"),
    "GET /admin/datasets/<int:dataset_id>.jsonl": experimenters("200"),
    "GET /admin/datasets/<int:dataset_id>/export/<name>": experimenters("400"),  # no such form
    "GET /admin/other-jobs/<jobs>": experimenters("404"),  # every kind has pages of its own
    "GET /admin/other-jobs/<jobs>/<int:job>": experimenters("404"),
    "POST /admin/other-jobs/<jobs>/<int:job>": experimenters("404", form={"action": "cancel"}),
    "GET /admin/jobs": experimenters("200"),
    "GET /admin/jobs/new": experimenters("200"),
    "POST /admin/jobs/new": experimenters("400", form={"method": "none that there is"}),
    "GET /admin/jobs/<int:job_id>": experimenters("200"),
    "POST /admin/jobs/<int:job_id>": experimenters("303 /admin/jobs/{job_id}", form={"action": "cancel"}),
    "GET /admin/jobs/<int:job_id>/charts/loss.json": experimenters("200"),
    "GET /admin/jobs/<int:job_id>/charts/method.json": experimenters("404"),  # its method tells a loss alone
    "GET /admin/jobs/compare": experimenters("400"),
    "GET /admin/campaigns": experimenters("200"),
    "GET /admin/campaigns/new": experimenters("200"),
    "POST /admin/campaigns/new": experimenters("400", form={"game": "taboo", "iterations": "none at all"}),
    "GET /admin/campaigns/<int:campaign_id>": experimenters("200"),
    "POST /admin/campaigns/<int:campaign_id>": experimenters(
        "303 /admin/campaigns/{campaign_id}", form={"action": "cancel"}
    ),
    "GET /admin/campaigns/<int:campaign_id>/figure.json": experimenters("404"),  # nothing has been evaluated
    "GET /admin/campaigns/<int:campaign_id>/benchmarks.json": experimenters("404"),
    "POST /admin/campaigns/<int:campaign_id>/benchmarks": experimenters("400", form={"tasks": "none at all!"}),
    "GET /admin/publications": experimenters("200"),
    "GET /admin/publications/new": experimenters("200"),
    "POST /admin/publications/new": experimenters("400", form={"to": "nowhere"}),
    "GET /admin/publications/<int:publication_id>": experimenters("200"),
    "POST /admin/publications/<int:publication_id>": experimenters(
        "303 /admin/publications/{publication_id}", form={"action": "cancel"}
    ),
    "GET /admin/models/<int:number>/card": experimenters("200"),
    "POST /admin/models/<int:number>/card": experimenters("400", form={"licence": "none that there is"}),
    "GET /admin/models/<int:number>/README.md": experimenters("404"),  # a scripted one
    "GET /admin/datasets/<int:dataset_id>/card": experimenters("200"),
    "POST /admin/datasets/<int:dataset_id>/card": experimenters("400", form={"licence": "none that there is"}),
    "GET /admin/datasets/pull": experimenters("200"),
    "POST /admin/datasets/pull": experimenters("400", form={"place": "no repository"}),
    "GET /admin/datasets/<int:dataset_id>/README.md": experimenters("200"),
    "GET /admin/rehearsals": experimenters("200"),
    "GET /admin/rehearsals/new": experimenters("200"),
    "POST /admin/rehearsals/new": experimenters("400", form={"bots": "none at all"}),
    "GET /admin/rehearsals/<int:rehearsal_id>": experimenters("200"),
    "POST /admin/rehearsals/<int:rehearsal_id>": experimenters(
        "303 /admin/rehearsals/{rehearsal_id}", form={"action": "cancel"}
    ),
    "GET /admin/benchmarks": experimenters("200"),
    "GET /admin/benchmarks/new": experimenters("200"),
    "POST /admin/benchmarks/new": experimenters("404", form={"model": "none that there is", "tasks": "spag"}),
    "GET /admin/benchmarks/<int:benchmark_id>": experimenters("200"),
    "POST /admin/benchmarks/<int:benchmark_id>": experimenters(
        "303 /admin/benchmarks/{benchmark_id}", form={"action": "cancel"}
    ),
    "GET /admin/societies": experimenters("200"),
    "GET /admin/societies/new": experimenters("200"),
    "POST /admin/societies/new": experimenters("400", form={"size": "none at all"}),
    "GET /admin/societies/<int:society_id>": experimenters("200"),
    "POST /admin/societies/<int:society_id>": experimenters(
        "303 /admin/societies/{society_id}", form={"action": "cancel"}
    ),
    "GET /admin/societies/<int:society_id>/grid.json": experimenters("200"),
    "GET /admin/societies/<int:society_id>/charts/<name>.json": experimenters("404"),  # nothing has been rated
    "GET /admin/societies/<int:society_id>/records.zip": experimenters("200"),
    "GET /admin/societies/<int:society_id>/data": experimenters("200"),
    "POST /admin/societies/<int:society_id>/data": experimenters("400", form={"mixing": "none that there is"}),
    "GET /admin/societies/<int:society_id>/agents/<int:agent>": experimenters("200"),
    "GET /admin/societies/<int:society_id>/agents/<int:agent>/<int:iteration>": experimenters("200"),
    "GET /admin/assessments": experimenters("200"),
    "GET /admin/assessments/new": experimenters("200"),
    "POST /admin/assessments/new": experimenters("400", form={"questions": "none that there are"}),
    "GET /admin/assessments/<int:assessment_id>": experimenters("200"),
    "POST /admin/assessments/<int:assessment_id>": experimenters(
        "303 /admin/assessments/{assessment_id}", form={"action": "cancel"}
    ),
    "GET /admin/assessments/<int:assessment_id>/figures.csv": experimenters("200"),
    "GET /admin/assessments/<int:assessment_id>/answers": experimenters("200"),
    "GET /admin/recipes": experimenters("200"),
    "GET /admin/recipes/new": experimenters("200"),
    "POST /admin/recipes/new": experimenters("400", form={"recipe": "upload"}),
    "GET /admin/models/prompts": experimenters("200"),
    "POST /admin/models/prompts": experimenters(
        "303 /admin/models/prompts", form={"name": "terse", "text": "Be terse."}
    ),
    "GET /admin/recipes/<int:recipe_id>": experimenters("200"),
    "GET /admin/recipes/<int:recipe_id>/export.zip": experimenters("200"),
    "GET /admin/recipes/<int:recipe_id>/sweep.csv": experimenters("404"),  # its recipe has no sweep
    "GET /admin/campaigns/<int:campaign_id>/recipe.zip": experimenters("200"),
    "GET /admin/alignments/<int:alignment_id>/recipe.zip": experimenters("200"),
    "POST /admin/recipes/<int:recipe_id>": experimenters("303 /admin/recipes/{recipe_id}", form={"action": "cancel"}),
    "GET /admin/alignments": experimenters("200"),
    "GET /admin/alignments/new": experimenters("200"),
    "POST /admin/alignments/new": experimenters("400", form={"base": "none that there is"}),
    "GET /admin/alignments/<int:alignment_id>": experimenters("200"),
    "POST /admin/alignments/<int:alignment_id>": experimenters(
        "303 /admin/alignments/{alignment_id}", form={"action": "cancel"}
    ),
    "GET /admin/models": experimenters("200"),
    "GET /admin/models/new": experimenters("200"),
    "GET /admin/models/pull": experimenters("200"),
    "POST /admin/pulls/cancel": experimenters("303 /admin/models/pull"),
    "POST /admin/models/pull": experimenters("400", form={"place": "no repository"}),
    "POST /admin/models/new": experimenters("400", form={"name": "a model that plays nothing"}),
    "GET /admin/models/<int:number>": experimenters("200"),
    "GET /admin/models/<int:number>/lineage": experimenters("200"),
    "GET /admin/models/leaderboard": experimenters("200"),
    "GET /admin/models/leaderboard.csv": experimenters("200"),
    "GET /admin/models/side-by-side": experimenters("200"),
    "GET /admin/models/side-by-side/<name>.csv": experimenters("404"),
    "GET /admin/report": experimenters("400"),
    "GET /admin/report.<form>": experimenters("404"),
    "GET /admin/models/<int:number>/clone": experimenters("200"),
    "POST /admin/models/<int:number>/clone": experimenters("400", form={"name": ""}),
    "POST /admin/models/<int:number>/play": experimenters("404", form={"game": "none that there is"}),
    "POST /admin/models/<int:number>": experimenters(
        "303 /admin/models/{number}", form={"action": "edit", "label": "Partner Blue"}
    ),
    "GET /admin/studies": experimenters("200"),
    "POST /admin/studies": experimenters("400", form={"example": "none that ships"}),
    "GET /admin/studies/new": experimenters("200"),
    "POST /admin/studies/new": experimenters("400", form={}),
    "GET /admin/studies/reports": experimenters("200"),
    "POST /admin/studies/reports": experimenters("400", form={}),
    "GET /admin/studies/reports/<int:report_id>": experimenters("200"),
    "POST /admin/studies/reports/<int:report_id>": experimenters("400", form={"action": "none that there is"}),
    "GET /admin/studies/editor": experimenters("404"),  # no example is named
    "POST /admin/studies/editor": experimenters("400", form={"action": "none that there is"}),
    "GET /admin/studies/<int:study_id>": experimenters("200"),
    "GET /admin/studies/<int:study_id>/edit": experimenters("200"),
    "GET /admin/studies/<int:study_id>/texts": experimenters("200"),
    "GET /admin/studies/<int:study_id>/files.zip": experimenters("200"),
    "GET /admin/studies/<int:study_id>/waves/new": experimenters("200"),
    "POST /admin/studies/<int:study_id>/waves/new": experimenters("400", form={"places": "none at all"}),
    "GET /admin/studies/waves/<int:wave_id>": experimenters("200"),
    "POST /admin/studies/waves/<int:wave_id>": experimenters("400", form={"action": "none that there is"}),
    "GET /admin/studies/waves/<int:wave_id>/data.zip": experimenters("200"),
    "GET /admin/studies/waves/<int:wave_id>/since-freeze.zip": experimenters("409"),  # it is not frozen
    "GET /admin/studies/waves/<int:wave_id>/pay": experimenters("200"),
    "POST /admin/studies/waves/<int:wave_id>/pay": experimenters("400", form={"action": "none that there is"}),
    "GET /admin/studies/waves/<int:wave_id>/pay/<int:number>": experimenters("404"),  # nothing was drafted
    "GET /admin/studies/waves/<int:wave_id>/people/<int:enrolment_id>": experimenters("200"),
    "POST /admin/studies/waves/<int:wave_id>/people/<int:enrolment_id>": experimenters(
        "400", form={"action": "none that there is"}
    ),
}

# What stands for each part of a rule in angle brackets; all of them exist.
VALUES: dict[str, Callable[["House"], object]] = {
    "filename": lambda house: "css/base.css",
    "form": lambda house: "svg",
    "game": lambda house: "taboo",
    "match_id": lambda house: house.match,
    "token": lambda house: new_admin_link(house.app).rpartition("/")[2],
    "study": lambda house: "two-models",
    "wave": lambda house: "main",
    "code": lambda house: house.preview,
    "signed": lambda house: house.preview,
    "name": lambda house: "moves",
    "number": lambda house: house.model,
    "report_id": lambda house: house.report,
    "round_id": lambda house: house.round,
    "dataset_id": lambda house: house.dataset,
    "job_id": lambda house: house.job,
    "campaign_id": lambda house: house.campaign,
    "benchmark_id": lambda house: house.benchmark,
    "society_id": lambda house: house.society,
    "alignment_id": lambda house: house.alignment,
    "recipe_id": lambda house: house.recipe,
    "assessment_id": lambda house: house.assessment,
    "agent": lambda house: 0,
    "iteration": lambda house: 1,
    "rehearsal_id": lambda house: house.rehearsal,
    "publication_id": lambda house: house.publication,
    "study_id": lambda house: house.study,
    "wave_id": lambda house: house.wave,
    "enrolment_id": lambda house: house.enrolment,
    "jobs": lambda house: "campaigns",
    "kind": lambda house: "campaigns",
    "job": lambda house: house.campaign,
    "_anything": lambda house: "no/such/page",
}


# ---- The table of events ------------------------------------------------------------


@dataclass(frozen=True)
class Act:
    """An event's body, and the kinds and seats of what it adds to the log of the sender's match, who has seat 0."""

    body: JSON
    adds: tuple[tuple[str, int | None], ...] = ()


# Of every event that the server listens to. The two of Socket.IO itself have their tests below.
EVENTS: dict[str, Act | None] = {
    "connect": None,
    "disconnect": None,
    "move": Act({"move_id": "m", "ply": 0, "text": "[message] Hello there."}, (("message", 0), ("message", 1))),
    "resign": Act({}, (("resigned", 0), ("ended", None))),
    "sync": Act({}),
    "typing": Act({"on": True}),
}
ACTS = {event: act for event, act in EVENTS.items() if act is not None}


# ---- Routes -------------------------------------------------------------------------

_USES = LanguageModel.usable_in_rounds, LanguageModel.offered_to_people


class House:
    """An app in which two participants play, and an experimenter is signed in."""

    def __init__(self, app: Flask) -> None:
        self.app = app
        app.config["WTF_CSRF_ENABLED"] = False  # until all are in their places
        with app.app_context(), writing() as session:
            row = add_api_model(
                session, MODEL, "Partner Blue", ["negotiation"], {"model": MODEL, "base_url": "http://x"}
            )
            row.offered_to_people = True
            self.model = row.id
            store_study(session, loaded_study())
            wave = new_wave(session)
            self.private_link = arrive(session, wave, "ann").enrolment.token
            self.preview = preview_token(app.config["SETTINGS"].secret_key, wave.study_version_id)
            spec = RoundSpec(game="negotiation", models=("scripted", MODEL), cross_play=True, matches=2, seed=1)
            self.round = matrix.create(session, spec, queued=False)[0].id
        with app.app_context():
            settings, played = app.config["SETTINGS"], make_round(db.engine, "scripted", matches=2)
            play(db.engine, settings, played)
            dataset = cut(db.engine, settings.home, rounds=[played], filter="all")
            self.dataset, self.job = dataset.id, make_job(db.engine, dataset)
            add_local(db.engine, "local")
            self.campaign = campaign_of(db.engine, "local")
            self.benchmark = make_benchmark(db.engine, "local")
            self.assessment = make_assessment(db.engine, "scripted-agent", "scripted-observer", "scripted-observer")
            self.alignment = make_alignment(db.engine, "local", "chain")
            self.recipe = make_run(db.engine)
            self.society = make_society(db.engine, "scripted-agent", observers=["scripted-observer"])
        with app.app_context(), writing() as session:
            version = load_example(session, settings.home / "study")
            wave = open_wave(session, version, "link", "second")
            person = enrol(session, wave, "P1", version, arm=None)
            self.study, self.wave, self.enrolment = version.study_id, wave.id, person.enrolment.id
            keep_report(session, person, "broken", "It hung.")
            self.report = session.scalars(select(StudyEvent.id).where(StudyEvent.kind == REPORT)).one()
            self.publication = make_publication(session)
            self.rehearsal = rehearsals.create(session, RehearsalSpec(study="two-models", bots=1)).id
        self._browsers: dict[Who, FlaskClient] = {"nobody": app.test_client(), "admin": signed_in(app)}
        with app.app_context(), reading() as session:
            [began] = session.scalars(select(UserSession))
            self._session = {"token_hash": began.token_hash, "user_id": began.user_id, "began_at": began.began_at}
        for who in ("participant", "other"):
            self._browsers[who] = app.test_client()
        self.hidden = self.begin("participant", game="taboo", config={"word": WORD}, role="defender")
        self.talk = self.begin("participant", game="negotiation", opponent="Partner Blue", config={"first": 0})
        self.over = self.begin("participant", game="taboo", config={"word": WORD}, role="defender")
        self.others = self.begin("other", game="taboo", role="defender")
        self.say(self.hidden, WORDS)
        self.say(self.talk, f"[message] {WORDS}")
        self.say(self.over, WORDS)
        self.say(self.over, None)
        self.match = self.hidden
        app.config["WTF_CSRF_ENABLED"] = True
        self._tokens = {who: self._token(who) for who in WHO}

    def begin(self, who: Who, **body: Any) -> str:
        """Start a match in somebody's browser; gives its id."""
        answer = self._browsers[who].post("/api/matches", json=body).json or {}
        assert self._browsers[who].get(f"/play/{answer['match']}?ticket={answer['ticket']}").status_code == 303
        return str(answer["match"])

    def say(self, match: str, text: str | None) -> None:
        with self.app.app_context(), reading() as session:
            seat = session.scalar(select(SeatRow.seat).where(SeatRow.match_id == match, SeatRow.kind == "person"))
        with self.app.app_context():
            receipt = live.commit(db.engine, live.MoveSubmission(match, seat or 0, text), instant=True)
        assert receipt.answer.ok or receipt.answer.code == "not_your_turn"

    def visit(self, who: Who, method: str, path: str, row: Row, *, token: bool = True) -> TestResponse:
        """What a visitor gets, in a copy of their browser: nothing that happens in it is remembered there."""
        if who == "admin":
            with self.app.app_context(), writing() as session:
                session.merge(UserSession(**self._session))  # an earlier visit may have ended it
        browser = self.app.test_client()
        if cookie := self._browsers[who].get_cookie("session"):
            browser.set_cookie("session", cookie.value)
        if row.json is not None:
            return browser.open(path, method=method, json=row.json)
        with_token = {"csrf_token": self._tokens[who]} if token else {}
        data = {**row.form, **with_token} if method in CHANGING else None
        return browser.open(path, method=method, data=data)

    def state(self) -> tuple[object, ...]:
        """What a visit could change, as the database has it."""
        with self.app.app_context(), reading() as session:
            counts = [session.scalar(select(func.count()).select_from(table)) for table in (MatchRow, EventRow, User)]
            spent = session.scalar(select(func.count(LoginLink.used_at)))
            models = session.execute(select(LanguageModel.name, LanguageModel.label, *_USES)).all()
            return *counts, spent, tuple(models)

    def _token(self, who: Who) -> str:
        found = re.search(r'name="csrf_token" value="([^"]+)"', self._browsers[who].get("/").text)
        assert found
        return found[1]


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    home = new_home()
    app = create_app(
        {"PARLOR_HOME": home, "READING_WORDS_PER_MINUTE": 0, "GUEST_MATCHES_PER_MINUTE": 0, "GUEST_CONFIG": True}
    )
    upgrade(app)
    yield House(app)
    with app.app_context():
        db.engine.dispose()
    shutil.rmtree(home, ignore_errors=True)


def methods_of(rule: Rule) -> set[str]:
    """The methods that a rule has of its own: what it does for HEAD and OPTIONS follows from them."""
    methods = set(rule.methods or ())
    return methods - ({"HEAD", "OPTIONS"} if "GET" in methods else {"OPTIONS"})


def address(house: House, line: str) -> tuple[str, str, dict[str, str]]:
    """Method and path of a line of ROUTES, and the values in the path."""
    method, _, rest = line.partition(" ")
    rule, over, _ = rest.partition(" (over)")
    names = re.findall(r"<(?:\w+:)?(\w+)>", rule)
    values = {name: str(VALUES[name](house)) for name in names}
    if over:
        values["match_id"] = house.over
    if rule.startswith("/s/me/"):
        values["token"] = house.private_link
    return method, re.sub(r"<(?:\w+:)?(\w+)>", lambda found: values[found[1]], rule), values


def expected(row: Row, who: Who, method: str, path: str, values: Mapping[str, str]) -> str:
    came_from = f"?next={path}" if method in ("GET", "HEAD") else ""
    return str(getattr(row, who)).format(**values, next=came_from)


def private_to(house: House, who: Who, path: str, values: Mapping[str, str]) -> list[str]:
    """What no answer to this visitor may hold."""
    if who == "admin" and path.startswith(("/admin/", "/account")):
        return []
    if who == "participant":
        return [MODEL] if values.get("match_id") == house.over else [MODEL, WORD]
    return [MODEL, WORD, WORDS, "values&#34;", 'values"', *(house.hidden, house.talk, house.over)]


def check(house: House, who: Who, answer: TestResponse, wanted: str, private: list[str]) -> None:
    """An answer of the wanted kind that says nothing private, wherever in it."""
    status, _, location = wanted.partition(" ")
    came = f"{answer.status_code} {answer.location or ''}".strip()
    assert answer.status_code == int(status), f"expected {wanted} for {who}, got {came}"
    assert fnmatchcase(answer.location or "", location), f"expected {wanted} for {who}, got {came}"
    text = answer.data.decode(errors="replace")  # of an archive it is none
    assert "Traceback" not in text, f"expected no traceback for {who}"
    if 300 <= answer.status_code < 400:  # which repeats the address that was asked for
        private = [word for word in private if word not in location]
    said = text + "".join(f"{name}: {value}\n" for name, value in answer.headers)
    assert [word for word in private if word in said] == [], f"expected nothing private for {who}"


def test_every_route_has_a_line_here_and_every_line_a_route(house: House) -> None:
    there = {f"{method} {rule.rule}": rule for rule in house.app.url_map.iter_rules() for method in methods_of(rule)}
    wanted = {line for line, rule in there.items()}
    wanted |= {f"{line} (over)" for line, rule in there.items() if "match_id" in rule.arguments}
    missing = [
        f'add to ROUTES who may: "{line}": everyone("200"), seated("200") or experimenters("200"), or a Row(…)'
        for line in sorted(wanted - set(ROUTES))
    ]
    missing += [
        f'add to VALUES what stands for <{name}> of {rule.rule}: "{name}": lambda house: …'
        for rule in there.values()
        for name in sorted(rule.arguments - set(VALUES))
    ]
    stale = [f'take out of ROUTES what is gone: "{line}"' for line in sorted(set(ROUTES) - wanted)]
    assert not missing + stale, "\n".join(["", *missing, *stale])


@pytest.mark.parametrize("line", ROUTES)
def test_a_visitor_gets_what_the_table_says_and_nothing_private(house: House, line: str) -> None:
    row = ROUTES[line]
    for who in WHO:
        method, path, values = address(house, line)
        before = house.state()
        answer = house.visit(who, method, path, row)
        check(house, who, answer, expected(row, who, method, path, values), private_to(house, who, path, values))
        if method not in CHANGING or answer.status_code >= 400 or answer.location == "/sign-in":
            assert house.state() == before, f"expected nothing to change for {who}"
        if method == "GET":
            head = house.visit(who, "HEAD", path, row)
            check(house, who, head, expected(row, who, "HEAD", path, values), [])
            assert head.data == b"", f"expected no body for {who}"


@pytest.mark.parametrize("line", [line for line in ROUTES if "<match_id>" in line and "(over)" not in line])
def test_a_negotiation_is_as_private_as_a_game_of_taboo(
    house: House, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house, "match", house.talk)
    for who in WHO:
        method, path, values = address(house, line)
        answer = house.visit(who, method, path, ROUTES[line])
        wanted = expected(ROUTES[line], who, method, path, values)
        check(house, who, answer, wanted, private_to(house, who, path, values))


@pytest.mark.parametrize("who", WHO)
def test_nothing_is_changed_without_a_token(house: House, who: Who) -> None:
    before = house.state()
    asked = 0
    for line, row in ROUTES.items():
        method, path, _ = address(house, line)
        if method in CHANGING and row.token:
            answer = house.visit(who, method, path, row, token=False)
            assert (line, answer.status_code) == (line, 400)
            assert "reload it" in answer.text
            asked += 1
    assert asked >= 6
    assert house.state() == before


@pytest.mark.parametrize("who", WHO)
def test_methods_that_a_route_has_not_are_refused_and_options_say_nothing(house: House, who: Who) -> None:
    before = house.state()
    declared: dict[str, set[str]] = {}
    for rule in house.app.url_map.iter_rules():
        declared.setdefault(rule.rule, set()).update(methods_of(rule))
    for rule, methods in declared.items():
        if f"POST {rule}" in ROUTES and "token" in rule:  # no new link for each of these
            continue
        path = address(house, f"GET {rule}")[1]
        for method in set(CHANGING) - methods:
            assert house.visit(who, method, path, everyone("")).status_code == 405, (method, path)
        options = house.visit(who, "OPTIONS", path, everyone(""))
        assert (options.status_code, options.data) == (200, b""), path
    assert house.state() == before


def test_a_ticket_opens_its_own_match_and_no_other(house: House) -> None:
    answer = house.app.test_client().post("/api/matches", json={"game": "taboo"}).json or {}
    for who in ("nobody", "other", "admin"):
        for match in (house.hidden, house.talk, house.over):
            for page in (f"/play/{match}", f"/play/{match}/result"):
                got = house.visit(who, "GET", f"{page}?ticket={answer['ticket']}", everyone(""))
                check(house, who, got, "403", [WORD, WORDS, MODEL])
        own = house.visit(who, "GET", f"/play/{answer['match']}?ticket={answer['ticket']}", everyone(""))
        check(house, who, own, f"303 /play/{answer['match']}", [])


def test_a_match_from_the_api_is_a_new_one_with_the_ticket_of_a_person(house: House) -> None:
    settings = load_settings({"PARLOR_HOME": house.app.config["SETTINGS"].home})
    for who in WHO:
        answer = house.visit(who, "POST", "/api/matches", ROUTES["POST /api/matches"])
        assert set(answer.json or {}) == {"match", "ticket", "url"}
        match = (answer.json or {})["match"]
        seat = tickets.check(settings, (answer.json or {})["ticket"], match)
        with house.app.app_context(), reading() as session:
            kinds = session.scalars(select(SeatRow.kind).where(SeatRow.match_id == match, SeatRow.seat == seat)).all()
        assert kinds == ["person"]
        for field_name in ("match", "seat", "ticket", "start_key", "user"):
            body = {"game": "taboo", field_name: house.hidden}
            refused = house.visit(who, "POST", "/api/matches", everyone("", json=body))
            check(house, who, refused, "400", [WORD, WORDS, MODEL])


# ---- Events -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def admin_cookie(parlor: Stack) -> str:
    """The cookie of an experimenter who has signed in to the running Parlor."""
    found = re.search(r"Admin +(\S+)", parlor.output())
    assert found
    return signed_in_by(found[1])


def signed_in_by(link: str) -> str:
    """The cookie of a browser that has signed in to a running Parlor with a link."""
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', browser.open(link, timeout=PATIENCE).read().decode())
    assert token
    form = urllib.parse.urlencode({"csrf_token": token[1]}).encode()
    with browser.open(link, form, timeout=PATIENCE) as page:
        assert page.url.endswith("/admin/")
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)


class Wire:
    """A bare connection, on which packets can be sent that no client library would send."""

    def __init__(self, parlor: Stack, match: str, *, cookie: str = "", origin: str = "") -> None:
        address = f"{parlor.url.replace('http', 'ws', 1)}/socket.io/?EIO=4&transport=websocket&match={match}"
        more = {"origin": origin} if origin else {"suppress_origin": True}
        self._socket = websocket.create_connection(address, timeout=PATIENCE, cookie=cookie or None, **more)
        assert str(self._socket.recv()).startswith("0{")

    def send(self, packet: str) -> None:
        self._socket.send(packet)

    def event(self, event: str, body: JSON) -> None:
        """An event that wants an acknowledgement."""
        self.send(f"42{NAMESPACE},7{json.dumps([event, body])}")

    def until_refused(self) -> list[str]:
        """What has come since, up to the refusal of a connection without a ticket, which marks the end."""
        self.send(f"40{NAMESPACE},")
        came = []
        while not (packet := str(self._socket.recv())).startswith("44"):
            if packet != "2":  # the server's ping
                came.append(packet)
        assert json.loads(packet.partition(",")[2])["data"]["code"] == "not_allowed"
        return came

    def until(self, beginning: str) -> str:
        """Wait for a packet."""
        while not (packet := str(self._socket.recv())).startswith(beginning):
            pass
        return packet

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def log_of(parlor: Stack, table: Table) -> list[tuple[str, int | None]]:
    """Kind and seat of each event of a match."""
    columns = select(EventRow.kind, EventRow.seat).where(EventRow.match_id == table.match).order_by(EventRow.seq)
    with database(parlor) as engine, engine.connect() as connection:
        return [(row.kind, row.seat) for row in connection.execute(columns)]


def test_every_event_has_a_line_here_and_every_line_an_event(house: House) -> None:
    handlers = socketio.server.handlers
    known = {NAMESPACE, watch.NAMESPACE}
    assert set(handlers) == known, f"write tests for what else is listened to than {' and '.join(known)}"
    assert set(handlers[watch.NAMESPACE]) == {"connect", "disconnect", "watch"}
    assert socketio.server.namespace_handlers == {}, "write tests for the events of this class"
    missing = [
        f'add to EVENTS what it does: "{event}": Act({{…the body…}}, (…the events that it adds to the log…))'
        for event in sorted(set(handlers[NAMESPACE]) - set(EVENTS))
    ]
    stale = [f'take out of EVENTS what is gone: "{event}"' for event in sorted(set(EVENTS) - set(handlers[NAMESPACE]))]
    assert not missing + stale, "\n".join(["", *missing, *stale])


@pytest.mark.parametrize("event", ACTS)
def test_an_event_acts_on_ones_own_seat_alone_whatever_its_body_names(parlor: Stack, event: str) -> None:
    mine, theirs = negotiation(parlor), negotiation(parlor)
    partner = {"ticket": tickets.issue(settings_of(parlor), theirs.match, 1)}
    names = {"match": theirs.match, "match_id": theirs.match, "seat": 1, "ticket": theirs.ticket}
    with (
        Participant(mine) as me,
        Participant(theirs) as them,
        Participant(theirs, auth=partner) as across,
    ):
        assert me.ask(event, {**ACTS[event].body, **names})["ok"]
        me.ask("sync")
        for untouched in (them, across):
            assert untouched.ask("sync")["ok"]
            untouched.wait(lambda untouched=untouched: len(untouched.all_of("view")) == 2, "the whole view")
            assert [name for name, _ in untouched.heard] == ["view", "view"]
            assert untouched.all_of("view")[0] == untouched.all_of("view")[1]
        assert json.dumps(me.heard).count(theirs.match) == 0
    assert log_of(parlor, theirs) == [("started", None)]
    assert tuple(log_of(parlor, mine)[1:]) == ACTS[event].adds


@pytest.mark.parametrize("event", ACTS)
def test_the_partners_ticket_does_not_make_ones_own_moves(parlor: Stack, event: str) -> None:
    table = negotiation(parlor)
    partner = {"ticket": tickets.issue(settings_of(parlor), table.match, 1)}
    body = {**ACTS[event].body, "seat": 0, "ticket": table.ticket}
    with Participant(table, auth=partner) as across:
        answer = across.ask(event, body)
    if event == "move":
        assert answer["error"]["code"] == "not_your_turn"
    assert [by for _, by in log_of(parlor, table) if by == 0] == []


@pytest.mark.parametrize("who", ["nobody", "admin"])
@pytest.mark.parametrize("before", ["never connected", "refused", "has left"])
def test_who_has_no_seat_is_not_heard(parlor: Stack, admin_cookie: str, who: str, before: str) -> None:
    table = negotiation(parlor)
    cookie = admin_cookie if who == "admin" else ""
    with Participant(table) as person, Wire(parlor, table.match, cookie=cookie) as wire:
        if before == "refused":
            wire.until_refused()
        elif before == "has left":
            wire.send(f"40{NAMESPACE},{json.dumps({'ticket': table.ticket})}")
            wire.until(f'42{NAMESPACE},["view"')
            wire.send(f"41{NAMESPACE},")
        for event, act in ACTS.items():
            wire.event(event, {**act.body, "match": table.match, "seat": 0, "ticket": table.ticket})
        assert wire.until_refused() == []
        assert person.ask("sync")["ok"]
        assert [name for name, _ in person.heard if name != "view"] == []
    assert log_of(parlor, table) == [("started", None)]


def test_a_connection_needs_the_ticket_of_that_match_whoever_asks(
    parlor: Stack, admin_cookie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = taboo(parlor, "defender"), taboo(parlor, "defender")
    settings = settings_of(parlor)
    foreign = tickets.issue(load_settings({"SECRET_KEY": "somebody else's"}), table.match, 1)
    with monkeypatch.context() as yesterday:
        yesterday.setattr(TimestampSigner, "get_timestamp", lambda _: int(time.time()) - 24 * 3600 - 60)
        expired = tickets.issue(settings, table.match, 1)
    tried = [
        None,
        {},
        {"ticket": other.ticket},
        {"ticket": table.ticket[:-1]},
        {"ticket": foreign},
        {"ticket": expired},
    ]
    for auth in tried:
        with contextlib.closing(Participant(table, auth=auth)) as person, pytest.raises(Refused) as refused:
            person.connect()
        assert refused.value.error["data"]["code"] == (
            "expired_ticket" if auth == {"ticket": expired} else "not_allowed"
        )
        assert person.heard == []
    with Wire(parlor, table.match, cookie=admin_cookie) as wire:
        assert wire.until_refused() == []
    assert log_of(parlor, table)[:1] == [("started", None)]


def test_other_namespaces_lead_nowhere(parlor: Stack) -> None:
    table = taboo(parlor, "defender")
    with Wire(parlor, table.match) as wire:
        for namespace in ("/elsewhere", f"{NAMESPACE}/"):
            wire.send(f"40{namespace},{json.dumps({'ticket': table.ticket})}")
            assert wire.until("4").startswith("44")
        wire.send(f"40{json.dumps({'ticket': table.ticket})}")  # the default one takes everybody, and hears nothing
        wire.until("40")
        for event, act in ACTS.items():
            wire.send(f"427{json.dumps([event, act.body])}")
        assert wire.until_refused() == []


WATCH = watch.NAMESPACE


@pytest.fixture(scope="module")
def round_id(parlor: Stack) -> int:
    """A round that nobody plays."""
    with database(parlor) as engine, writing(engine) as session:
        spec = RoundSpec(game="taboo", models=("scripted",), matches=7, seed=1)
        return lifecycle.create(session, spec, queued=False).id


def test_rounds_are_shown_to_experimenters_alone(parlor: Stack, admin_cookie: str, round_id: int) -> None:
    table = taboo(parlor, "defender")
    asks = f"42{WATCH},7{json.dumps(['watch', {'rounds': [round_id]}])}"
    for cookie in ("", "session=forged"):
        with Wire(parlor, table.match, cookie=cookie) as wire:
            wire.send(asks)  # before anything
            for auth in ({}, {"ticket": table.ticket}):
                wire.send(f"40{WATCH},{json.dumps(auth)}")
                assert json.loads(wire.until(f"44{WATCH},").partition(",")[2])["data"]["code"] == "not_allowed"
            wire.send(asks)
            assert wire.until_refused() == []
    with Wire(parlor, "", cookie=admin_cookie) as wire:
        wire.send(f"40{WATCH},")
        wire.until(f"40{WATCH},")
        wire.send(asks)
        assert json.loads(wire.until(f"43{WATCH},7").removeprefix(f"43{WATCH},7")) == [{"ok": True}]
        told = json.loads(wire.until(f"42{WATCH},").removeprefix(f"42{WATCH},"))
        assert told[0] == "round"
        assert (told[1]["round"], told[1]["matches"], told[1]["status"]) == (round_id, 7, "waiting")


def test_who_is_signed_out_hears_nothing_more(parlor: Stack, round_id: int) -> None:
    with database(parlor) as engine, writing(engine) as session:
        user = accounts.create_user(session, "guest-of-a-day", None, datetime.now(UTC))
        path, user_id = accounts.new_link(session, user, datetime.now(UTC)), user.id
    with Wire(parlor, "", cookie=signed_in_by(parlor.url + path)) as wire:
        wire.send(f"40{WATCH},")
        wire.until(f"40{WATCH},")
        wire.send(f"42{WATCH},7{json.dumps(['watch', {'rounds': [round_id]}])}")
        wire.until(f"42{WATCH},")
        with database(parlor) as engine, writing(engine) as session:
            accounts.end_sessions(session, user_id)
        wire.until(f"41{WATCH}")
        wire.send(f"40{WATCH},")
        assert json.loads(wire.until(f"44{WATCH},").partition(",")[2])["data"]["code"] == "not_allowed"


@pytest.mark.parametrize("body", [None, 7, {}, {"rounds": "all"}, {"rounds": ["1"]}, {"rounds": [True]},
                                  {"rounds": list(range(99))}, {"trainings": [1.5]}, {"trainings": [1], "rounds": None},
                                  {"campaigns": ["1"]},
                                  {"trainings": list(range(30)), "rounds": list(range(30))}], ids=str)  # fmt: skip
def test_what_cannot_be_watched_is_refused(parlor: Stack, admin_cookie: str, body: Any) -> None:
    with Wire(parlor, "", cookie=admin_cookie) as wire:
        wire.send(f"40{WATCH},")
        wire.until(f"40{WATCH},")
        wire.send(f"42{WATCH},7{json.dumps(['watch', body])}")
        answer = json.loads(wire.until(f"43{WATCH},7").removeprefix(f"43{WATCH},7"))[0]
        assert answer["error"]["code"] == "invalid"


def test_a_page_of_another_site_does_not_get_in(parlor: Stack) -> None:
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        Wire(parlor, taboo(parlor, "defender").match, origin="https://elsewhere.example")
    assert refused.value.status_code == 400
