"""A wave that recruited at Amazon Mechanical Turk before it closed: everything of it can still be read."""

import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import Engine

from app.core.extensions import writing
from app.models import Payment, PaymentBatch, Submission, Wave
from app.studies import assignment
from app.studies.answers import finish
from app.studies.participant_steps import DONE
from app.studies.payments import record_owed
from tests.enrolments import enrol, load_example, open_wave, play
from tests.experimenter import signed_in
from tests.shell import Finished
from tests.study_pages import text_of

WAVE = "two-models:main"


@pytest.fixture
def archived(engine: Engine, tmp_path: Path) -> int:
    """A wave as version 0.2 left it: a worker who completed it and was paid by a confirmed batch."""
    with writing(engine) as session:
        version = load_example(session, tmp_path)
        wave = open_wave(session, version, "mturk")
        wave.settings = {
            **wave.settings,
            "of": "two-models@1",
            "provider": {"mturk": {"hit_id": "3HIT", "sandbox": True}},
        }
        progress = enrol(session, wave, "W1", version, arm=None)
        assignment.assign(session, progress)
        play(session, progress, 0)
        finish(session, progress, "completed")
        progress.enrolment.step, progress.enrolment.stage = len(progress.steps) - 1, DONE
        session.add(
            Submission(
                wave_id=wave.id, enrolment_id=progress.enrolment.id, recruiter="mturk", external_id="3ASSIGNMENT",
                status="approved", created_at=datetime.now(UTC), changed_at=datetime.now(UTC),
            )
        )  # fmt: skip
        record_owed(session, progress)
        batch = PaymentBatch(
            wave_id=wave.id, number=1, format="mturk", status="confirmed", created_at=datetime.now(UTC)
        )
        session.add(batch)
        session.flush()
        session.query(Payment).filter_by(key="bonus").one().batch_id = batch.id
        return wave.id


def test_its_pages_still_open(app: Flask, archived: int) -> None:
    client = signed_in(app)
    for page in ("", "/pay", "/people/1"):
        answer = client.get(f"/admin/studies/waves/{archived}{page}")
        assert answer.status_code == 200, page
        assert "externalSubmit" not in answer.text
    wave = text_of(client.get(f"/admin/studies/waves/{archived}"))
    assert "Amazon Mechanical Turk closed on 30 September 2026." in wave
    assert "Link for people" not in wave


def test_its_people_still_have_their_pages(app: Flask, archived: int) -> None:
    page = app.test_client().get("/s/me/W1")
    assert page.status_code == 200
    assert "That’s all. Thank you!" in text_of(page)
    assert "mturk" not in page.text.lower()


def test_nobody_comes_in_by_its_link(app: Flask, archived: int) -> None:
    client = app.test_client()
    door = "/s/two-models/main?assignmentId=A1&hitId=3HIT&workerId=W9&turkSubmitTo=https://www.mturk.com"
    for answer in (client.get(door), client.post(door)):
        assert answer.status_code == 200
        assert "Enrolment in this study is closed." in text_of(answer)
        assert "mturk" not in answer.headers["Content-Security-Policy"]


def test_its_payments_data_and_replay_are_read(
    engine: Engine, archived: int, flask: Callable[..., Finished], tmp_path: Path
) -> None:
    shown = flask("study", "pay", WAVE)
    assert (shown.exit_code, "confirmed" in shown.stdout) == (0, True), shown.stderr
    assert flask("study", "pay", WAVE, "file", "1", "--out", str(tmp_path / "b.csv")).exit_code == 0
    header, line = (tmp_path / "b.csv").read_text().splitlines()
    assert header == "participant,external_id,amount,currency"
    assert line.startswith("W1,w1id,")
    assert flask("study", "replay", WAVE).stdout.startswith("two-models:main: 1 of 1 assignments")
    assert flask("study", "close", WAVE).exit_code == flask("study", "freeze", WAVE).exit_code == 0
    assert flask("study", "export-data", WAVE, "--out", str(tmp_path / "data.zip")).exit_code == 0
    with zipfile.ZipFile(BytesIO((tmp_path / "data.zip").read_bytes())) as archive:
        rows = archive.read("submissions.csv").decode()
    assert "mturk" in rows


def test_a_new_one_is_refused_with_one_line(
    app: Flask, archived: int, flask: Callable[..., Finished], tmp_path: Path
) -> None:
    file = tmp_path / "later.yaml"
    file.write_text("wave: later\nof: two-models\nprovider: {mturk: {}}\nplaces: 5\nmost_spent: 100.00\n")
    refused = flask("study", "open", str(file))
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "later.yaml:3: provider: expected one of prolific, connect, link, as Amazon Mechanical Turk closed" in (
        refused.stderr
    )
    client = signed_in(app)
    form = {"wave": "later", "recruiter": "mturk", "places": "5", "most_spent": "100.00"}
    answer = client.post("/admin/studies/1/waves/new", data=form)
    assert answer.status_code == 400
    assert "closed on 30 September 2026" in text_of(answer)
    time = flask("study", "extra-time", WAVE, "1.5", "--id", "W2")
    assert (time.exit_code, time.stderr.count("\n")) == (2, 1)
    with writing() as session:
        assert session.query(Wave).count() == 1
