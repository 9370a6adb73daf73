"""Beside jobs that write without a pause people's forms and moves come first, and a form that fails keeps its words."""

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import gevent
import pytest
from flask import Flask
from sqlalchemy import Engine, create_engine, text, update

from app.core import write_priority
from app.core.config import ROOT
from app.models import LanguageModel
from app.web import form_writes
from tests.experimenter import signed_in
from tests.stack import PATIENCE, wait_until

_JOB = """
import sys, time
from sqlalchemy import create_engine, text
from app.core import write_priority
from app.core.extensions import writing
write_priority.LONGEST_WAIT = float(sys.argv[3])
if sys.argv[2] == "job":
    write_priority.give_way()
database = create_engine("sqlite:///" + sys.argv[1])
while True:
    with writing(database) as session:
        session.execute(text("UPDATE counter SET n = n + 1"))
        time.sleep(0.02)
"""


@contextlib.contextmanager
def writing_process(path: Path, kind: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A process that writes one transaction after the other; `kind`: job or person."""
    with subprocess.Popen([sys.executable, "-c", _JOB, str(path), kind, str(PATIENCE)], cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def count(connection: sqlite3.Connection) -> int:
    number: int = connection.execute("SELECT n FROM counter").fetchone()[0]
    return number


@pytest.fixture
def database(tmp_path: Path) -> Iterator[tuple[Path, sqlite3.Connection]]:
    path = tmp_path / "parlor.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=PATIENCE)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE counter (n INTEGER)")
        connection.execute("INSERT INTO counter VALUES (0)")
        yield path, connection


def test_two_jobs_that_write_without_a_pause_let_a_person_write_after_the_transaction_that_is_under_way(
    database: tuple[Path, sqlite3.Connection],
) -> None:
    path, connection = database
    with writing_process(path, "job"), writing_process(path, "job"):
        wait_until(lambda: count(connection) > 5, "jobs at work")
        written = []
        for _ in range(10):
            with write_priority.waiting(str(path)):
                before = count(connection)
                connection.execute("BEGIN IMMEDIATE")
            written.append(count(connection) - before)
            connection.execute("COMMIT")
        # Each may have been beyond its look when the person came, and the one that held the lock has ended. Where the
        # machine does not let the person run for seconds, the jobs go on.
        assert sorted(written)[len(written) // 2] <= 3, written


def test_a_person_who_is_killed_while_waiting_holds_no_job_up(database: tuple[Path, sqlite3.Connection]) -> None:
    path, connection = database
    connection.execute("BEGIN IMMEDIATE")
    with writing_process(path, "person") as person:
        waits = lambda: write_priority._somebody_waits(f"{path}-waiting")  # noqa: E731
        wait_until(waits, "somebody who waits")
        os.kill(person.pid, signal.SIGKILL)
        person.wait(PATIENCE)
        assert not waits()
    connection.execute("COMMIT")


def test_a_job_goes_on_when_people_wait_without_end(
    database: tuple[Path, sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, connection = database
    monkeypatch.setattr(write_priority, "LONGEST_WAIT", 0.05)
    with write_priority.waiting(str(path)):
        monkeypatch.setattr(write_priority, "_gives_way", True)
        with write_priority.waiting(str(path)):
            connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE counter SET n = 1")
        connection.execute("COMMIT")
    assert count(connection) == 1


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_workers_of_jobs_give_way_and_those_of_turns_do_not(app: Flask, home: Path) -> None:
    """As the supervisor starts them: by their queues."""
    ask = (
        "import sys; from workers import celery_app as c; from app.core import write_priority as w;"
        "c.celery.amqp.queues.select(sys.argv[1].split(',')); c._open_context(); print(w._gives_way)"
    )
    env = {**os.environ, "PARLOR_HOME": str(home), "DATABASE_URL": "", "REDIS_URL": ""}
    said = {}
    for queue in ("turns", "batch", "train"):
        command = [sys.executable, "-c", ask, queue]
        said[queue] = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, encoding="utf-8", check=True
        ).stdout
    assert {queue: each.split()[-1] for queue, each in said.items()} == {
        "turns": "False", "batch": "True", "train": "True"
    }  # fmt: skip


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_form_that_waits_for_a_row_keeps_no_other_form_waiting(app: Flask, engine: Engine) -> None:
    own = create_engine(engine.url)

    def rename(label: str) -> str:
        with app.app_context():
            change = update(LanguageModel).where(LanguageModel.id == 1).values(label=label)
            form_writes.write(lambda session: session.execute(change))
        return label

    with own.connect() as other:
        other.execute(text("SELECT id FROM language_model WHERE id = 1 FOR UPDATE"))
        first = gevent.spawn(rename, "First")
        gevent.sleep(0.05)
        form_writes.write(lambda session: session.execute(text("UPDATE lease SET owner = owner")))
        assert not first.ready()
        other.rollback()
    assert first.get(timeout=PATIENCE) == "First"
    own.dispose()


# ---- What was typed -----------------------------------------------------------------


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_form_that_could_not_be_saved_comes_back_with_what_was_typed_and_can_be_sent_again(
    app: Flask, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = signed_in(app)
    typed = {"action": "edit", "label": 'A "quoted" <label> & more'}
    with engine.connect() as other, monkeypatch.context() as sooner:
        other.execute(text("DELETE FROM lease"))  # takes the lock
        sooner.setattr(form_writes, "PATIENCE", 0.1)
        page = admin.post("/admin/models/1?from=list", data=typed)
        other.rollback()
    assert page.status_code == 503
    assert 'action="/admin/models/1?from=list"' in page.text
    assert "Send it again" in page.text
    kept = _hidden_fields(page.text)
    assert {name: value for name, value in kept.items() if name != "csrf_token"} == typed
    assert admin.post("/admin/models/1?from=list", data=kept).status_code == 303
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT label FROM language_model WHERE id = 1")) == typed["label"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_no_page_holds_a_password_that_could_not_be_saved(
    app: Flask, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = signed_in(app)
    word = "correct horse battery"
    with engine.connect() as other, monkeypatch.context() as sooner:
        other.execute(text("DELETE FROM lease"))
        sooner.setattr(form_writes, "PATIENCE", 0.1)
        page = admin.post("/account", data={"new": word, "again": word})
        other.rollback()
    assert page.status_code == 503
    assert word not in page.text


def _hidden_fields(page: str) -> dict[str, str]:
    form = re.search(r'<form method="post" action="/admin/models/1.*?</form>', page, re.DOTALL)
    assert form is not None
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form[0])
    return {name: unescape(value) for name, value in found}
