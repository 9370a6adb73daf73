"""The API does what its description says: requests that are made of the description, right ones and wrong ones, are
sent over HTTP, and each answer has to be one that the description knows.
"""

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS

from app.api import events
from app.api.openapi import document
from app.core.extensions import db, writing
from app.job_kinds import JOB_KINDS
from app.rounds.job import ROUND
from tests.datasets import cut
from tests.enrolments import enrol, load_example, open_wave
from tests.http_agent import served
from tests.programs import Program
from tests.rounds import make_round, play

FEW, MANY = 3, 60  # requests of each operation, right ones and as many wrong ones
OTHER_KINDS = {kind.plural for kind in JOB_KINDS} - {"rounds"}
CHECKED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "allow_header_conformance",
)


@pytest.fixture
def filled(make_app: Any, monkeypatch: pytest.MonkeyPatch, enqueued_jobs: list[Any], tmp_path: Path) -> Iterator[Flask]:
    """An app in which something was played, with a dataset and a study that a person is in."""
    monkeypatch.setattr(events, "LONGEST", 0.0)
    app = make_app(API_REQUESTS_PER_MINUTE=0)
    with app.app_context():
        for game in ("negotiation", "taboo"):
            number = make_round(db.engine, "scripted", matches=3, game=game)
            play(db.engine, app.config["SETTINGS"], number)
        cut(db.engine, app.config["SETTINGS"].home, rounds=[number], filter="all")
        with writing() as session:
            version = load_example(session, tmp_path)
            enrol(session, open_wave(session, version), "P1", version, arm=None)
        yield app


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_every_answer_is_one_that_the_description_knows(filled: Flask, examples: int) -> None:
    program = Program(filled, "read", "run", "people")
    headers = {"Authorization": f"Bearer {program.secret}"}
    schema = schemathesis.openapi.from_dict(document())
    checks = CHECKS.get_by_names([*CHECKED])
    tried = 0
    with served(filled) as url:
        for found in schema.get_all_operations():
            operation = found.ok()
            tags, is_create = operation.tags or (), operation.method == "post" and "{" not in operation.path
            if examples == FEW and not (is_create or OTHER_KINDS.isdisjoint(tags)):
                continue  # which is done for these kinds as for rounds
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

                @settings(
                    max_examples=examples, derandomize=True, database=None, deadline=None,
                    phases=[Phase.generate], suppress_health_check=[*HealthCheck],
                )  # fmt: skip
                @given(case=operation.as_strategy(generation_mode=mode))
                def ask(case: Any) -> None:
                    nonlocal tried
                    tried += 1
                    case.call_and_validate(base_url=f"{url}/api/v1", headers=headers, checks=checks)

                # Of an operation that takes nothing there is nothing wrong to ask.
                with suppress(Unsatisfiable) if mode is GenerationMode.NEGATIVE else nullcontext():
                    ask()
    assert tried > 50


def test_the_description_has_every_kind_of_jobs(app: Flask) -> None:
    paths = document()["paths"]
    assert {"/rounds", "/rounds/{number}/events", "/trainings/{number}/resume", "/exports/{name}.csv"} <= set(paths)
    body = paths["/rounds"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["game", "models"]
    assert (body["properties"]["matches"]["title"], body["additionalProperties"]) == ("Matches", False)
    assert app.test_client().get("/api/v1/openapi.json").json == document()


def test_the_description_has_the_published_settings_that_can_be_named() -> None:
    described = document()
    parts = described["components"]["schemas"]
    for name, preset in (("SocietySettings", "published-single-thread"), ("AnswerSampling", "published")):
        assert preset in parts[name]["properties"]["preset"]["enum"]
    body = described["paths"]["/campaigns"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert "spag" in body["properties"]["preset"]["enum"]


def test_the_description_is_sent_anew_only_when_it_has_changed(app: Flask) -> None:
    first = app.test_client().get("/api/v1/openapi.json")
    known = {"If-None-Match": first.headers["ETag"]}
    again = app.test_client().get("/api/v1/openapi.json", headers=known)
    assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert first.headers["Cache-Control"] == "no-cache"
    JOB_KINDS.append(replace(ROUND, name="copy", plural="copies", creation=""))
    changed = app.test_client().get("/api/v1/openapi.json", headers=known)
    JOB_KINDS.pop()
    assert (changed.status_code, "/copies" in (changed.json or {})["paths"]) == (200, True)
    assert app.test_client().get("/api/v1/openapi.json", headers=known).status_code == 304
