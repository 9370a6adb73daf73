"""The overview: what needs an experimenter, what runs with its buttons, and the people of today without bots."""

import re
from datetime import UTC, datetime
from pathlib import Path

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine

from app.core.extensions import writing
from app.jobs.kind import fail
from app.models import PaymentBatch, RoundRow, Wave
from app.studies.waves import pause
from tests.enrolments import KnownWave, load_example, open_wave, person
from tests.experimenter import signed_in
from tests.rounds import add_models, make_round


def part(client: FlaskClient, name: str) -> str:
    """What the overview has in a list, as words."""
    page = client.get("/admin/").text.partition(f'id="{name}-list"')[2].partition("</section>")[0]
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_an_empty_parlor_needs_nobody_and_runs_nothing(app: Flask) -> None:
    browser = signed_in(app)
    assert "Nothing needs attention." in part(browser, "needs")
    assert "Nothing is running." in part(browser, "runs")
    assert "Nobody has come today." in part(browser, "people")


def test_a_failed_job_a_paused_wave_and_an_unconfirmed_batch_need_somebody_and_one_press_settles_each(
    app: Flask, engine: Engine, tmp_path: Path
) -> None:
    add_models(engine, "http://127.0.0.1:9/v1", "haggler")
    number = make_round(engine, "haggler", queued=True)
    with writing(engine) as session:
        fail(session.get_one(RoundRow, number), "the server is away")
        wave = open_wave(session, load_example(session, tmp_path), "link")
        pause(session, wave, "ada")
        now = datetime.now(UTC)
        session.add(PaymentBatch(wave_id=wave.id, number=1, format="csv", status="uploaded", created_at=now))
        wave_id = wave.id
    browser = signed_in(app)
    needs = part(browser, "needs")
    assert "failed haggler and haggler (round 1) the server is away" in needs
    assert "paused two-models:main Nobody new gets in until it is reopened." in needs
    assert "pay Batch 1 of two-models:main is uploaded and not confirmed" in needs
    assert browser.post(f"/admin/rounds/{number}", data={"action": "resume"}).status_code == 303
    assert browser.post(f"/admin/studies/waves/{wave_id}", data={"action": "reopen"}).status_code == 303
    after = part(browser, "needs")
    assert "round 1" not in after
    assert "paused" not in after
    runs = part(browser, "runs")
    assert "two-models:main wave of a study open 0 of 10" in runs
    assert "Pause two-models:main Close two-models:main" in runs
    assert "Cancel Round 1" in runs


def test_bots_of_rehearsals_are_a_line_of_their_own_among_the_people_of_today(
    app: Flask, engine: Engine, tmp_path: Path
) -> None:
    with writing(engine) as session:
        version = load_example(session, tmp_path)
        waves = [open_wave(session, version, "link", name) for name in ("spring", "bots")]
        session.get_one(Wave, waves[1].id).rehearsal = True
        for wave, people in zip(waves, (2, 3), strict=True):
            for each in range(people):
                person(session, KnownWave(wave.id, version.id), f"{wave.name}{each}", at=datetime.now(UTC))
    people = part(signed_in(app), "people")
    assert "two-models:spring 2 2 0 0 0 0" in people
    assert "two-models:bots" not in people
    assert people.endswith("rehearsal bots, in no sum 3 3 0 0 0 0")
