"""Bots with good and bad habits go through a copy of a study on a running Parlor, as people would."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.core.extensions import reading, writing
from app.jobs.context import JobContext
from app.models import Enrolment, GenerationRow, LanguageModel, MatchRow, Rehearsal, SeatRow, Wave
from app.registry import add_api_model
from app.studies import store
from app.studies.bots import job
from app.studies.bots.runner import run
from app.studies.bots.spec import RehearsalSpec
from tests.enrolments import START
from tests.shell import Shell
from tests.stack import PATIENCE, ROOT, Stack, wait_until
from tests.tables import database, settings_of
from tests.waves import changed, loaded_study

STUDY = ROOT / "data/studies/two-models/two-models.yaml"
EXPECTED = {
    "plain": "completed",
    "refreshes": "completed",
    "double-clicks": "completed",
    "two browsers": "completed",
    "leaves and comes back": "completed",
    "pastes": "completed",
    "fails the quiz": "quiz_failed",
    "goes silent": "inactive",
    "withdraws": "withdrawn",
    "declines": "declined",
    "sends old forms": "completed",
}


@pytest.fixture(scope="module")
def loaded(parlor: Stack, shell: Shell) -> Stack:
    """A Parlor that knows the study, whose second model it does not ship."""
    folder = shutil.copytree(STUDY.parent, parlor.home / "two-models")
    text = (folder / STUDY.name).read_text()
    text = text.replace("model: {a: scripted, b: tiny}", "model: {a: scripted}")
    elsewhere = '    - {id: more, outside: {url: "https://survey.parlor.test/q"}, ask: Please answer these.}\n'
    (folder / STUDY.name).write_text(text.replace("  end:\n", f"  end:\n{elsewhere}"))
    done = shell.flask(("study", "load", folder / STUDY.name), env=parlor.env)
    assert done.exit_code == 0, done.stderr
    return parlor


def test_every_bot_reaches_the_ending_of_its_habit_with_its_code_and_pay(
    loaded: Stack, shell: Shell, tmp_path: Path
) -> None:
    done = shell.flask(("study", "bots", "two-models", "--n", len(EXPECTED), "--json"), env=loaded.env)
    found = json.loads(done.stdout)
    assert (found["surprises"], done.exit_code) == ([], 0)
    assert found["endings"] == {habit: {ending: 1} for habit, ending in EXPECTED.items()}
    exported = tmp_path / "data.zip"
    assert shell.flask(("study", "export-data", found["wave"], "--out", exported), env=loaded.env).exit_code == 0
    with zipfile.ZipFile(exported) as archive:
        rows = {
            name: list(csv.DictReader(io.TextIOWrapper(archive.open(name), "utf-8-sig")))
            for name in ("enrolments.csv", "payments.csv")
        }
    assert sorted(row["ending"] for row in rows["enrolments.csv"]) == sorted(EXPECTED.values())
    completed = [*EXPECTED.values()].count("completed")
    assert [row["amount"] for row in rows["payments.csv"] if row["key"] == "base"].count("5.00") == completed


@pytest.mark.parametrize(
    ("line", "named"), [(("no-such-study",), "no-such-study"), (("two-models", "--n", "0"), "--n: expected")]
)
def test_bots_that_cannot_be_sent_are_refused_with_one_line(
    loaded: Stack, shell: Shell, line: tuple[str, ...], named: str
) -> None:
    done = shell.flask(("study", "bots", *line), env=loaded.env)
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert named in done.stderr


def at_the_end(session: Session, number: int) -> bool:
    return bool(job.notes_of(session, number))


def in_a_match(session: Session, number: int) -> bool:
    playing = (
        select(SeatRow.match_id)
        .join(Enrolment, Enrolment.id == SeatRow.enrolment_id)
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .where(Enrolment.wave_id == job.REHEARSAL.get(session, number).wave_id, MatchRow.status == "playing")
    )
    return session.scalar(playing.limit(1)) is not None


@pytest.mark.parametrize("reached", [in_a_match, at_the_end])
def test_a_rehearsal_goes_on_where_its_worker_was_stopped_and_sends_nobody_twice(
    loaded: Stack, reached: Callable[[Session, int], bool]
) -> None:
    settings = settings_of(loaded).model_copy(update={"WEB_URL": loaded.url})
    with database(loaded) as engine:
        with writing(engine) as session:
            number = job.create(session, RehearsalSpec(study="two-models", bots=4)).id
        first, second = (JobContext(engine, settings, owner) for owner in ("first", "second"))
        worker = threading.Thread(target=run, args=(first, number))
        worker.start()

        def stops_here() -> bool:
            with reading(engine) as session:
                return reached(session, number)

        wait_until(stops_here, f"a bot {reached.__name__.replace('_', ' ')}")
        first.stopping.set()
        worker.join(PATIENCE)
        run(second, number)
        with reading(engine) as session:
            row = job.REHEARSAL.get(session, number)
            assert (row.status, row.error) == ("done", None)
            report = job.report_of(session, row)
            assert (report["bots"], report["surprises"]) == (4, [])
            assert report["endings"] == {habit: {EXPECTED[habit]: 1} for habit in list(EXPECTED)[:4]}
            people = session.scalars(select(Enrolment.ending).where(Enrolment.wave_id == row.wave_id)).all()
            assert people == ["completed"] * 4
            assert session.get_one(Wave, row.wave_id).status == "closed"


def test_a_rehearsal_stops_where_the_models_that_bots_meet_have_used_up_its_budget(loaded: Stack) -> None:
    settings = settings_of(loaded).model_copy(update={"WEB_URL": loaded.url})
    with database(loaded) as engine:
        with writing(engine) as session:
            spec = RehearsalSpec.read({"study": "two-models", "bots": 4, "budget": {"tokens": 9}})
            number = job.create(session, spec).id
        worker = threading.Thread(target=run, args=(JobContext(engine, settings, "worker"), number))
        worker.start()

        def met() -> str | None:
            with reading(engine) as session:
                wave = job.REHEARSAL.get(session, number).wave_id
                seats = select(SeatRow.match_id).join(Enrolment, Enrolment.id == SeatRow.enrolment_id)
                return session.scalar(seats.where(Enrolment.wave_id == wave).limit(1))

        wait_until(lambda: met() is not None, "a bot in a match")
        with writing(engine) as session:
            model = session.scalars(select(LanguageModel.id).limit(1)).one()
            session.add(
                GenerationRow(
                    match_id=met(), seat=0, ply=0, attempt=0, language_model_id=model, model="m", prompt=[], text="",
                    sampling={}, prompt_tokens=8, estimated_tokens=2, latency=0.1, retries=0, at=datetime.now(UTC),
                )
            )  # fmt: skip
        worker.join(PATIENCE)
        with reading(engine) as session:
            row = job.REHEARSAL.get(session, number)
            assert row.status == "failed"
            assert row.error == "budget of 9 tokens reached: 10 spent, 2 of them by estimate; resume with a higher one"
            assert session.get_one(Wave, row.wave_id).status == "closed"


def test_a_rehearsal_with_paid_models_stops_where_the_budget_of_the_installation_is_used_up(loaded: Stack) -> None:
    limited = settings_of(loaded).model_copy(update={"WEB_URL": loaded.url, "SPENDING_LIMIT_USD": 0.5})
    with database(loaded) as engine:
        with writing(engine) as session:
            options = {
                "model": "far",
                "base_url": "http://127.0.0.1:9/v1",
                "key_env": "",
                "price_in": 1,
                "price_out": 1,
            }
            model = add_api_model(session, "far", None, ["negotiation"], options)
            conditions = {"model": {"a": "scripted", "b": "far"}}
            store.load(session, changed(loaded_study(), study="paid", conditions=conditions))
            session.add(
                GenerationRow(
                    attempt=0, language_model_id=model.id, model="far", prompt=[], text="", sampling={},
                    prompt_tokens=600_000, completion_tokens=0, latency=0.1, retries=0, at=datetime.now(UTC),
                )
            )  # fmt: skip
            paid, free = (
                job.create(session, RehearsalSpec(study="paid", bots=1, live=live)).id for live in (True, False)
            )
        run(JobContext(engine, limited, "worker"), paid)
        with reading(engine) as session:
            row = job.REHEARSAL.get(session, paid)
            assert row.status == "failed"
            assert row.error.startswith("budget of $0.50 a month of this installation reached: $0.60 spent since ")
        run(JobContext(engine, limited, "worker"), free)  # its partners are scripted
        with reading(engine) as session:
            assert job.REHEARSAL.get(session, free).status == "done"


def test_a_rehearsal_without_a_web_process_fails_with_what_to_do(loaded: Stack) -> None:
    settings = settings_of(loaded).model_copy(update={"WEB_URL": "http://127.0.0.1:9"})
    with database(loaded) as engine:
        with writing(engine) as session:
            number = job.create(session, RehearsalSpec(study="two-models", bots=1)).id
        run(JobContext(engine, settings, "worker"), number)
        with reading(engine) as session:
            row = job.REHEARSAL.get(session, number)
            assert row.status == "failed"
            assert "127.0.0.1:9" in str(row.error)
            assert "WEB_URL" in str(row.error)
            assert session.get_one(Wave, row.wave_id).status == "closed"
        with writing(engine) as session:
            row = job.REHEARSAL.resume(session, number, queued=False)
            assert session.get_one(Wave, row.wave_id).status == "open"
            job.stop_here(session, number)


def test_bots_are_not_sent_where_no_web_process_answers_and_no_wave_is_opened(loaded: Stack, shell: Shell) -> None:
    with database(loaded) as engine:
        with reading(engine) as session:
            before = session.scalar(select(func.count()).select_from(Wave))
        done = shell.flask(("study", "bots", "two-models"), env={**loaded.env, "WEB_URL": "http://127.0.0.1:9"})
        assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
        assert "expected an answer of the web process at http://127.0.0.1:9" in done.stderr
        with reading(engine) as session:
            assert session.scalar(select(func.count()).select_from(Wave)) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_copy_is_closed_when_the_command_that_sends_bots_is_killed(loaded: Stack, number: signal.Signals) -> None:
    with database(loaded) as engine:
        with reading(engine) as session:
            last = session.scalar(select(func.max(Rehearsal.id))) or 0
        command = [sys.executable, "-m", "flask", "study", "bots", "two-models", "--n", "8"]
        environment = {**os.environ, **loaded.env}
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE)

        def bots_came() -> bool:
            assert process.poll() is None, process.communicate()
            with reading(engine) as session:
                of_bots = select(Enrolment.id).join(Rehearsal, Rehearsal.wave_id == Enrolment.wave_id)
                return session.scalar(of_bots.where(Rehearsal.id > last).limit(1)) is not None

        wait_until(bots_came, "a bot in the copied wave")
        process.send_signal(number)
        _, told = process.communicate(timeout=PATIENCE)

        def status() -> str:
            with reading(engine) as session:
                return session.scalars(select(Wave.status).join(Rehearsal).where(Rehearsal.id > last)).one()

        if number == signal.SIGKILL:
            assert status() == "open"
            with writing(engine) as session:  # as if the time of its lease had passed
                session.execute(update(Rehearsal).where(Rehearsal.id > last).values(lease_until=START))
            wait_until(lambda: status() == "closed", "upkeep closed the copied wave")
        else:
            assert (process.returncode, status()) == (130, "closed")
            assert "is closed" in told.decode()
