"""docs/adding-a-job.md is taken at its word: its one block makes a kind of job with commands, pages and upkeep."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, event

from app.core.config import ROOT, load_settings
from app.core.extensions import Model, reading, writing
from app.job_kinds import JOB_KINDS, kinds_below
from app.jobs import states
from app.jobs.kind import JobKind, fail
from app.jobs.listing import list_of
from app.studies.bots import job as rehearsals
from app.studies.bots.spec import RehearsalSpec
from app.web.watched import watched_kinds
from tests.assessments import make_alignment, make_assessment
from tests.benchmarks import make_benchmark, score
from tests.campaigns import add_local, campaign_of
from tests.experimenter import signed_in
from tests.jobs import make_dataset, make_job, make_publication, tell
from tests.recipes import make_run
from tests.rounds import make_round
from tests.societies import make_society
from tests.stack import PATIENCE, wait_until
from tests.waves import loaded_study, store_study
from workers.upkeep import look_after

BLOCK = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "adding-a-job.md").read_text(encoding="utf-8"), re.DOTALL)
WORKER = "import tally\nfrom app.job_kinds import JOB_KINDS\nJOB_KINDS.append(tally.TALLY)\n"
WORKER += "from workers.celery_app import celery\n"


@pytest.fixture(scope="module")
def tally(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module of the page, in a folder with what a worker loads."""
    assert BLOCK
    folder = tmp_path_factory.mktemp("tally")
    (folder / "tally.py").write_text(BLOCK[1], encoding="utf-8")
    (folder / "tally_worker.py").write_text(WORKER, encoding="utf-8")
    sys.path.insert(0, str(folder))
    module = importlib.import_module("tally")
    yield module
    sys.path.remove(str(folder))
    del sys.modules["tally"]
    Model.metadata.remove(module.Tally.__table__)


@pytest.fixture
def kind(tally: Any) -> Iterator[JobKind[Any]]:
    """The kind of the page, one of all kinds."""
    JOB_KINDS.append(tally.TALLY)
    yield tally.TALLY
    JOB_KINDS.remove(tally.TALLY)


@pytest.fixture
def tallies(kind: JobKind[Any], app: Flask, engine: Engine) -> Iterator[JobKind[Any]]:
    """The same, with its table."""
    kind.table.__table__.create(engine)
    yield kind
    kind.table.__table__.drop(engine)


def create(engine: Engine, kind: JobKind[Any], target: int, *, queued: bool = True) -> int:
    with writing(engine) as session:
        row = kind.new_row(queued=queued, name=f"to {target}", target=target)
        session.add(row)
        session.flush()
        return int(row.id)


def row_of(engine: Engine, kind: JobKind[Any], number: int) -> Any:
    with reading(engine) as session:
        return kind.get(session, number)


def test_a_kind_is_found_in_its_package_and_stands_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, place in (("late", 7), ("early", 3)):
        (tmp_path / "some_app" / name).mkdir(parents=True)
        made = f"KIND = replace(ROUND, name='{name}', place={place})"
        text = f"from dataclasses import replace\nfrom app.rounds.job import ROUND\n{made}\n"
        (tmp_path / "some_app" / name / "job.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert [kind.name for kind in kinds_below(tmp_path / "some_app", "some_app")] == ["round", "early", "late"]


def test_a_kind_takes_less_than_sixty_lines() -> None:
    assert BLOCK
    assert sum(bool(line.strip()) for line in BLOCK[1].splitlines()) < 60


def test_a_kind_has_its_commands(tallies: JobKind[Any], app: Flask, engine: Engine) -> None:
    def flask(*line: str) -> Any:
        return app.test_cli_runner().invoke(args=["tally", *line])

    assert flask("list").stdout == "None yet.\n"
    first, second = create(engine, tallies, 3), create(engine, tallies, 1000)
    assert [each["tally_id"] for each in json.loads(flask("list", "--json").stdout)] == [second, first]
    told = json.loads(flask("show", str(first), "--json").stdout)
    assert (told["name"], told["status"], told["done"], told["of"]) == ("to 3", "waiting", 0, 3)
    assert re.search(r"^status +waiting$", flask("show", str(first)).stdout, re.MULTILINE)
    assert flask("cancel", str(first)).stdout == "Tally 1 is cancelled; `flask tally resume 1` goes on.\n"
    assert flask("resume", str(first)).stdout == "Tally 1 is done.\n"
    assert row_of(engine, tallies, first).count == 3
    again = flask("resume", str(first))
    assert (again.exit_code, again.stderr) == (
        2,
        "Error: tally 1: expected one with something left to do, got one that is done\n",
    )
    missing = "Error: tally: expected the number of one that exists, got 9; `flask tally list` shows them\n"
    assert (flask("show", "9").exit_code, flask("show", "9").stderr) == (2, missing)


def test_a_kind_has_its_pages(tallies: JobKind[Any], app: Flask, engine: Engine) -> None:
    client = signed_in(app)
    assert "There are none yet." in client.get("/admin/other-jobs/tallies").text
    number = create(engine, tallies, 8)
    listed = client.get("/admin/other-jobs/tallies").text
    address = re.findall(r'href="(/admin/other-jobs/tallies/\d+)"', listed)
    assert address == [f"/admin/other-jobs/tallies/{number}"]
    assert '<a href="/admin/other-jobs/tallies">Tallies</a>' in client.get("/admin/").text
    page = client.get(address[0])
    assert page.status_code == 200
    assert f'data-jobs="tallies" data-number="{number}" data-status="waiting"' in page.text
    assert "command line, or not recorded" in page.text
    with reading(engine) as session:
        [watched] = [each for each in watched_kinds() if each.kind is tallies]
        figures = watched.read(session, [number], 0.0)[number]
    assert figures == {"status": "waiting", "done": 0, "of": 8, "percent": 0, "error": None, "at": "waiting 0"}
    assert client.post(address[0], data={"action": "cancel"}).status_code == 303
    page = client.get(address[0])
    assert "cancelled" in page.text
    assert 'value="resume"' in page.text
    assert client.post(address[0], data={"action": "resume"}).status_code == 303
    assert row_of(engine, tallies, number).status == states.WAITING
    with writing(engine) as session:
        fail(tallies.get(session, number), "the fingers ran out")
    overview = client.get("/admin/").text
    assert ("to 8 (tally 1) stopped" in overview, "the fingers ran out" in overview) == (True, True)
    with writing(engine) as session:
        tallies.get(session, number).status = states.DONE
    refused = client.post(address[0], data={"action": "resume"})
    assert (refused.status_code, "expected one with something left to do" in refused.text) == (409, True)
    assert client.get("/admin/other-jobs/tallies/99").status_code == 404
    assert client.get("/admin/other-jobs/quarrels").status_code == 404


@contextmanager
def worker(tally: Any, env: dict[str, str]) -> "Iterator[subprocess.Popen[bytes]]":
    """A worker that knows the kind."""
    paths = os.pathsep.join([str(Path(tally.__file__).parent), str(ROOT)])
    command = [
        sys.executable,
        "-m",
        "celery",
        "--quiet",
        "-A",
        "tally_worker",
        "worker",
        "-n",
        f"{uuid.uuid4().hex}@%h",
    ]
    command += ["-Q", tally.TALLY.queue, "-P", "threads", "-c", "2", "--without-gossip", "--without-mingle"]
    with (Path(env["PARLOR_HOME"]) / "worker.log").open("ab") as log:
        started = subprocess.Popen(
            command, cwd=ROOT, env={**env, "PYTHONPATH": paths}, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield started
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
        started.wait(PATIENCE)


def test_a_job_whose_worker_is_killed_goes_on_where_it_was(
    tallies: JobKind[Any], tally: Any, app: Flask, engine: Engine, home: Path, broker: str, database_url: str
) -> None:
    env = {**os.environ, "PARLOR_HOME": str(home), "DATABASE_URL": database_url, "REDIS_URL": broker}
    settings = load_settings({"PARLOR_HOME": home, "DATABASE_URL": database_url, "REDIS_URL": broker})
    number, client = create(engine, tallies, 30), signed_in(app)
    address = f"/admin/other-jobs/tallies/{number}"
    owner = uuid.uuid4().hex

    def until(status: str, least: int = 0) -> None:
        """Let upkeep do its rounds until the job has that status and so much of it is done."""

        def there() -> bool:
            look_after(engine, settings, owner, lambda _match, _typing: None)
            row = row_of(engine, tallies, number)
            time.sleep(0.2)
            return bool(row.status == status and row.count >= least)

        wait_until(there, f"a tally that is {status}")

    with worker(tally, env) as first:
        until(states.RUNNING, least=3)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait(PATIENCE)
    killed_at, killed = row_of(engine, tallies, number).count, row_of(engine, tallies, number)
    assert killed.status == states.RUNNING
    with worker(tally, env):
        until(states.RUNNING, least=killed_at + 2)
        assert row_of(engine, tallies, number).lease_owner != killed.lease_owner
        client.post(address, data={"action": "cancel"})
        until(states.CANCELLED)
        client.post(address, data={"action": "resume"})
        until(states.DONE)
    row = row_of(engine, tallies, number)
    assert (row.count, row.error, row.lease_owner) == (30, None, None)


# ---- Lists -----------------------------------------------------------------------


@contextmanager
def statements(engine: Engine) -> Iterator[list[str]]:
    """What the database is asked."""
    seen: list[str] = []

    def see(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", see)
    yield seen
    event.remove(engine, "before_cursor_execute", see)


def test_lists_of_all_kinds_have_pages_and_ask_as_often_for_ten_jobs_as_for_two(app: Flask, engine: Engine) -> None:
    dataset = make_dataset(engine, app.config["SETTINGS"])  # and a round
    add_local(engine, "base")
    with writing(engine) as session:
        store_study(session, loaded_study())

    def some(count: int) -> None:
        for _ in range(count):
            running = make_round(engine, "scripted", matches=4)
            with writing(engine) as session:
                for kind in JOB_KINDS:
                    if kind.name == "round":
                        kind.get(session, running).status = states.RUNNING  # in a terminal that is gone
            number = make_job(engine, dataset, f"small-{uuid.uuid4().hex[:6]}", queued=True)
            tell(engine, number, 20, 40)
            campaign_of(engine, "base", name=f"loop-{uuid.uuid4().hex[:6]}")
            score(engine, make_benchmark(engine, "base", "a,b"), {"a": 0.25, "b": 0.36})
            make_society(engine, "scripted-agent", observers=["scripted-observer"])
            make_assessment(engine, "scripted-agent", "scripted-observer", "scripted-observer")
            make_alignment(engine, "base", f"chain-{uuid.uuid4().hex[:6]}")
            make_run(engine)
            make_publication(engine, dataset)
            with writing(engine) as session:
                rehearsals.create(session, RehearsalSpec(study="two-models", bots=1))

    def asked(*line: str) -> tuple[int, str]:
        with statements(engine) as seen:
            result = app.test_cli_runner().invoke(args=list(line))
        assert result.exit_code == 0, result.output
        return len(seen), result.stdout

    lines = [(kind.name, "list", *more) for kind in JOB_KINDS for more in ([], ["--json"])]
    some(2)
    before = [asked(*line)[0] for line in lines]
    some(8)
    assert [asked(*line)[0] for line in lines] == before
    for kind in JOB_KINDS:
        told = [json.loads(asked(kind.name, "list", "--json", *page)[1]) for page in ([], ["--limit", "3"])]
        numbers = [next(iter(each.values())) for each in told[0]]
        assert numbers == sorted(numbers, reverse=True)
        assert len(numbers) >= 10
        assert told[1] == told[0][:3]
        number = list_of(kind).columns[1].name
        second = asked(kind.name, "list", "--limit", "3", "--offset", "3", "--columns", number)[1].splitlines()[1:]
        assert [int(line.split()[0]) for line in second] == numbers[3:6]
    client = signed_in(app)
    for path in ("jobs", "campaigns", "benchmarks"):
        client.get(f"/admin/{path}")
        with statements(engine) as seen:
            client.get(f"/admin/{path}")
        assert len(seen) < 20, path


def test_upkeep_writes_for_kinds_alone_of_which_a_job_is_not_over(app: Flask, engine: Engine) -> None:
    settings = app.config["SETTINGS"]
    dataset = make_dataset(engine, settings)  # and a round, which is over
    make_job(engine, dataset, "small", queued=False)
    with statements(engine) as seen:
        look_after(engine, settings, "me", lambda *_: None)
    written = {kind.name for kind in JOB_KINDS if any(f"UPDATE {kind.table.__tablename__} " in each for each in seen)}
    assert written == {"training"}
    assert sum(all(kind.table.__tablename__ in each for kind in JOB_KINDS) for each in seen) == 1
