"""A training at OpenAI: one job there for one of ours, whatever is lost, refused or killed on the way."""

import hashlib
import itertools
import json
import os
import re
import signal
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, select, update

from app.core.config import Settings
from app.core.errors import AppError
from app.core.extensions import reading, writing
from app.core.queues import BATCH
from app.datasets import store
from app.finetuning import lifecycle as jobs
from app.finetuning import listing
from app.finetuning.event_writer import TrainingEventWriter, TrainingLeaseLost
from app.finetuning.job import TRAINING
from app.finetuning.openai import vendor as openai
from app.finetuning.vendors import runner
from app.jobs import states
from app.jobs.context import JobContext
from app.jobs.spec import JobBudget
from app.lineage import origin_of
from app.models import Dataset, LanguageModel, TrainingCharge, TrainingJob
from app.registry import add_api_model, add_local_model
from app.registry.spending import spent_since
from tests.experimenter import signed_in
from tests.fork_server import Forked
from tests.jobs import events_of, model_of, models, row_of, run
from tests.rounds import make_round, play
from tests.stack import PATIENCE, running_parlor, wait_until
from tests.stub_fine_tuning import LATE, LOST
from tests.stub_openai import GARBAGE, KEY, Reply, StubServer, negotiator, rate_limited
from tests.tables import database, settings_of
from tests.terminals import start_flask

REMOTE = "gpt-4o-mini"
pytestmark = pytest.mark.usefixtures("vendor_environment")
# For what is the same on every database.
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def settings(app: Flask) -> Settings:
    return app.config["SETTINGS"].model_copy(update={"TRAIN_POLL": 0.01})


@pytest.fixture
def dataset(engine: Engine, settings: Settings) -> Dataset:
    return write_dataset(engine, settings, "rows", [1, 0, 1, 1])


def add_base(engine: Engine, stub: StubServer, name: str = "mini", **options: Any) -> str:
    """An API model at the stub."""
    prices = {"price_in": 0.15, "price_cached": 0.05, "price_training": 3}
    given = {"model": REMOTE, "base_url": stub.url, **prices, "in_flight": 4, **options}
    with writing(engine) as session:
        return add_api_model(session, name, None, ["negotiation"], given, prompt_style="compact").name


@pytest.fixture
def base(engine: Engine, stub: StubServer) -> str:
    stub.key = KEY
    return add_base(engine, stub)


def make_job(engine: Engine, name: str = "tuned", *, queued: bool = True, base: str = "mini", **config: Any) -> int:
    with writing(engine) as session:
        spec = jobs.TrainingSpec(method="sft", dataset="rows", name=name, base=base, config=config, backend="openai")
        return jobs.create(session, spec, queued=queued).id


def look(
    engine: Engine, settings: Settings, job_id: int, until: Callable[[TrainingJob], object], most: int = 20
) -> None:
    """Have workers look at a job until the row is as it is to be."""
    for _ in range(most):
        if until(row_of(engine, job_id)):
            return
        assert run(engine, settings, job_id)
    raise AssertionError(f"expected it within {most} looks, got {row_of(engine, job_id).status}")


def is_over(row: TrainingJob) -> bool:
    return row.status not in states.LIVE


def cancel(engine: Engine, job_id: int) -> str:
    with writing(engine) as session:
        return str(TRAINING.cancel(session, job_id).status)


def resume(engine: Engine, job_id: int) -> None:
    with writing(engine) as session:
        TRAINING.resume(session, job_id, queued=True)


def due(engine: Engine) -> list[tuple[int, str]]:
    """Which jobs upkeep would call workers to, and of which queue."""
    with writing(engine) as session:
        return [(number, TRAINING.queue_of(session, number)) for number in TRAINING.take_unattended(session)]


# ---- As it should go --------------------------------------------------------------


def test_a_worker_looks_and_lets_go_until_the_model_is_registered(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    vendor = stub.fine_tuning
    job_id = make_job(engine, n_epochs="2", learning_rate_multiplier="0.5", suffix="mine", seed="5")
    assert due(engine) == [(job_id, BATCH)]
    seen = []
    while not is_over(row_of(engine, job_id)):
        assert run(engine, settings.model_copy(update={"TRAIN_POLL": 3600}), job_id)
        row = row_of(engine, job_id)
        seen.append(row.remote_status)
        assert row.lease_owner is None
        assert due(engine) == []  # not before it is time
    assert seen == ["validating_files", "queued", "running", "succeeded"]
    [sent] = vendor.bodies()
    hyperparameters = {"n_epochs": 2, "batch_size": "auto", "learning_rate_multiplier": 0.5}
    assert sent["method"] == {"type": "supervised", "supervised": {"hyperparameters": hyperparameters}}
    assert (sent["model"], sent["suffix"], sent["seed"]) == (REMOTE, "mine", 5)
    assert sent["metadata"] == {"parlor_token": row_of(engine, job_id).remote_token}
    rows = vendor.rows_of(sent["training_file"])
    move = {"role": "assistant", "content": "Yes", "weight": 1}
    assert rows == [{"messages": [{"role": "user", "content": "Hi"}, move]}] * 3  # nothing is learnt in the other one
    assert vendor.files == {}  # what was said does not stay there
    assert not [name for headers in vendor.headers for name in headers if name.startswith("x-stainless")]

    row, made = row_of(engine, job_id), model_of(engine, "tuned")
    assert made is not None
    assert (row.status, row.model_id, row.trained_tokens, row.step, row.steps) == (states.DONE, made.id, 5000, 2, 2)
    assert (made.kind, made.games, made.prompt_style) == ("api", ["negotiation"], "compact")
    assert made.options["model"] == f"ft:{REMOTE}:org::ftjob-1" == row.remote_model
    assert [made.options[name] for name in ("price_training", "in_flight")] == [3, 4]
    # What it costs to play with a tuned model is its own.
    assert [made.options.get(name) for name in ("price_in", "price_out", "price_cached")] == [None] * 3
    assert not made.offered_to_people
    with reading(engine) as session:
        assert origin_of(made, session.get_one(TrainingJob, job_id)) == "trained"
    told = [each["event"] for each in events_of(engine, job_id)]
    assert (told.count("created"), told.count("step"), told.count("status")) == (1, 2, 4)
    assert [each["loss"] for each in events_of(engine, job_id, "step")] == [2.0, 1.0]
    assert [each["message"] for each in events_of(engine, job_id, "vendor")] == ["Created fine-tuning job: ftjob-1"]
    assert "Created fine-tuning job: ftjob-1" in row.log  # as `flask training show` and the page have it
    assert "created ftjob-1 at 127.0.0.1, of the file file-1" in row.log

    stub.script(made.options["model"], negotiator)
    number = make_round(engine, "tuned", matches=2, game="negotiation")
    play(engine, settings, number)
    assert stub.requests_of(made.options["model"])


def test_a_terminal_stays_until_the_job_is_over(
    app: Flask, engine: Engine, dataset: Dataset, base: str, stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(app.config, "SETTINGS", app.config["SETTINGS"].model_copy(update={"TRAIN_POLL": 0.01}))
    flask = app.test_cli_runner()
    line = "training run sft --backend openai --dataset rows --base mini --name tuned --config n_epochs=auto"
    result = flask.invoke(args=line.split())
    assert result.exit_code == 0, result.stderr
    called = f"which 127.0.0.1 calls ft:{REMOTE}:org::ftjob-1"
    assert result.stdout == f"Job 1 made tuned, step 2 of 2, loss 1, {called}. It trained 5000 tokens, $0.01.\n"
    told = json.loads(flask.invoke(args=["training", "show", "1", "--json"]).stdout)
    assert (told["backend"], told["remote_job"], told["trained_tokens"]) == ("openai", "ftjob-1", 5000)
    assert (told["cost"], told["config"], told["checkpoint"]) == (0.015, {"n_epochs": "auto"}, None)
    assert "sft with --backend openai has these fields" in flask.invoke(args=["training", "run", "--help"]).stdout


def test_a_loss_that_is_no_number_is_left_out(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    stub.fine_tuning.steps, stub.fine_tuning.losses = 3, {2: float("nan"), 3: float("inf")}
    job_id = make_job(engine)
    look(engine, settings, job_id, is_over)
    row = row_of(engine, job_id)
    assert (row.status, row.loss, row.step) == (states.DONE, 2.0, 1)
    assert [each["loss"] for each in events_of(engine, job_id, "step")] == [2.0]
    assert "Step 3/3: training loss=inf" in row.log


# ---- What is lost on the way --------------------------------------------------------


@on_sqlite
@pytest.mark.parametrize(
    ("call", "answers"),
    [
        ("upload", [LOST]),
        ("upload", [rate_limited(0.01), Reply("down", status=503)]),
        ("create", [LOST]),
        ("create", [Reply("down", status=500), LOST]),
        ("create", [GARBAGE]),
        ("retrieve", [rate_limited(), Reply("down", status=500), LOST, GARBAGE]),
        ("events", [Reply("down", status=502)]),
        ("delete_file", [Reply("down", status=500)]),
    ],
)
def test_one_file_and_one_job_come_of_whatever_was_lost(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer, call: str, answers: list[Any]
) -> None:
    stub.fine_tuning.answer(call, *answers)
    stub.fine_tuning.most_rows = 1  # of a page
    stub.fine_tuning.answer("list_jobs", Reply("down", status=500))
    job_id = make_job(engine)
    look(engine, settings, job_id, is_over)
    row = row_of(engine, job_id)
    assert (row.status, row.error, row.remote_failures) == (states.DONE, None, 0)
    assert (len(stub.fine_tuning.contents), len(stub.fine_tuning.jobs)) == (1, 1)
    assert models(engine) == 3
    assert stub.fine_tuning.files == {}
    assert len(events_of(engine, job_id, "vendor")) == 1  # each once, whatever page it was on
    assert [each["step"] for each in events_of(engine, job_id, "step")] == [1, 2]


@on_sqlite
@pytest.mark.parametrize("seen", ["validating_files", "running"])
def test_a_job_that_was_created_by_a_late_request_as_well_is_cancelled(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer, seen: str
) -> None:
    vendor = stub.fine_tuning
    vendor.answer("create", LATE)
    job_id = make_job(engine)
    look(engine, settings, job_id, lambda row: row.remote_status == seen)
    vendor.statuses = ["running", "cancelled"]
    vendor.arrive()
    look(engine, settings, job_id, is_over)
    row = row_of(engine, job_id)
    assert (row.status, row.remote_model) == (states.DONE, f"ft:{REMOTE}:org::ftjob-1")
    assert [body["status"] for body in vendor.bodies()] == ["succeeded", "cancelled"]
    assert "ftjob-2 was created beside ftjob-1, cancelling it" in row.log


@on_sqlite
def test_a_job_that_was_created_while_another_worker_took_over_is_cancelled(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    vendor = stub.fine_tuning
    job_id = make_job(engine)
    vendor.late["create"] = threading.Event()
    first = threading.Thread(target=run, args=(engine, settings, job_id))
    first.start()
    wait_until(lambda: vendor.jobs, "a job at the vendor")
    with writing(engine) as session:
        past = datetime.now(UTC) - timedelta(seconds=1)
        values = {"lease_until": past, "lease_owner": "another", "remote_job_id": "ftjob-7"}
        session.execute(update(TrainingJob).where(TrainingJob.id == job_id).values(**values))
    vendor.late.pop("create").set()
    first.join(PATIENCE)
    assert vendor.calls[-1] == "cancel"
    assert row_of(engine, job_id).remote_job_id == "ftjob-7"


@on_sqlite
def test_a_file_that_has_expired_is_uploaded_again(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    stub.fine_tuning.answer("create", Reply("down", status=500))
    job_id = make_job(engine)
    look(engine, settings, job_id, lambda row: row.remote_file_id)
    stub.fine_tuning.files.clear()
    look(engine, settings, job_id, is_over)
    assert row_of(engine, job_id).status == states.DONE
    assert [body["training_file"] for body in stub.fine_tuning.bodies()] == ["file-2"]


@on_sqlite
def test_a_vendor_that_never_answers_ends_the_job_which_can_be_resumed(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "MOST_FAILURES", 3)
    stub.fine_tuning.answer("retrieve", *[Reply(f"down {KEY}", status=500)] * 3)
    job_id = make_job(engine)
    look(engine, settings, job_id, is_over)
    row = row_of(engine, job_id)
    assert row.status == states.FAILED
    assert (row.error or "").startswith("127.0.0.1: expected an answer, got HTTP 500: down [key]; 3 calls in a row")
    resume(engine, job_id)
    look(engine, settings, job_id, is_over)
    assert (row_of(engine, job_id).status, len(stub.fine_tuning.jobs)) == (states.DONE, 1)


@on_sqlite
def test_a_job_is_given_up_after_30_calls_in_a_row_without_an_answer(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    stub.fine_tuning.answer("retrieve", *[Reply("down", status=500)] * 40)
    job_id, longest = make_job(engine), 0.0
    for _ in range(40):
        with writing(engine) as session:
            session.execute(update(TrainingJob).values(poll_at=None))
        run(engine, settings, job_id)
        if is_over(row := row_of(engine, job_id)):
            break
        if row.poll_at is not None:
            longest = max(longest, (row.poll_at - datetime.now(UTC)).total_seconds())
    assert 540 < longest <= 600  # the pauses grow up to ten minutes
    assert "got HTTP 500: down; 30 calls in a row brought no answer" in (row_of(engine, job_id).error or "")
    assert stub.fine_tuning.calls.count("retrieve") == 30


# ---- What the vendor refuses --------------------------------------------------------


QUOTA = {"code": "insufficient_quota", "message": "You exceeded your current quota.", "param": None}
FORMAT = {"code": "invalid_training_file", "message": "The file has 8 examples, at least 10 are needed.", "param": None}


@on_sqlite
@pytest.mark.parametrize(
    ("statuses", "error", "says"),
    [
        (["validating_files", "failed"], FORMAT, "127.0.0.1 has ended ftjob-1: The file has 8 examples"),
        (["validating_files", "running", "failed"], QUOTA, "127.0.0.1 has ended ftjob-1: You exceeded your current"),
        (["running", "cancelled"], None, "ftjob-1 was cancelled at 127.0.0.1; resume it to train again"),
    ],
)
def test_a_job_that_fails_there_fails_here_with_its_reason_and_begins_anew_when_it_is_resumed(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer,
    statuses: list[str], error: Any, says: str,
) -> None:  # fmt: skip
    vendor = stub.fine_tuning
    vendor.statuses, vendor.error = statuses, error
    job_id = make_job(engine)
    look(engine, settings, job_id, is_over)
    first = row_of(engine, job_id)
    assert (first.status, (first.error or "").startswith(says)) == (states.FAILED, True), first.error
    assert models(engine) == 2
    vendor.statuses = ["running", "succeeded"]
    resume(engine, job_id)
    look(engine, settings, job_id, is_over)
    assert row_of(engine, job_id).status == states.DONE
    assert [body["status"] for body in vendor.bodies()] == [statuses[-1], "succeeded"]
    assert len({body["metadata"]["parlor_token"] for body in vendor.bodies()}) == 2


@on_sqlite
@pytest.mark.parametrize(
    ("call", "answer", "says"),
    [
        ("upload", Reply("Line 3 is no example.", status=400), "127.0.0.1: expected an answer, got HTTP 400: Line 3"),
        ("create", Reply("No quota.", status=429, headers={"x-code": "insufficient_quota"}), "got HTTP 429: No quota."),
        ("create", Reply("This model cannot be tuned.", status=400), "got HTTP 400: This model cannot be tuned."),
        ("create", Reply("moved", status=302, headers={"Location": "http://elsewhere/"}), "got a redirect (HTTP 302)"),
        ("retrieve", Reply(f"Incorrect key {KEY}.", status=401), "got HTTP 401: Incorrect key [key]"),
    ],
)
def test_what_is_refused_is_one_line_and_can_be_tried_again(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer, call: str, answer: Any, says: str
) -> None:
    stub.fine_tuning.answer(call, answer)
    job_id = make_job(engine)
    look(engine, settings, job_id, is_over)
    row = row_of(engine, job_id)
    assert (row.status, says in (row.error or ""), "\n" in (row.error or "")) == (states.FAILED, True, False), row.error
    assert len(stub.fine_tuning.files) == (call == "retrieve")  # a file that nobody trains on is deleted
    resume(engine, job_id)
    look(engine, settings, job_id, is_over)
    assert (row_of(engine, job_id).status, len(stub.fine_tuning.jobs)) == (states.DONE, 1)


@on_sqlite
@pytest.mark.parametrize("host", ["api.openai.com", "127.0.0.1"])
def test_whoever_openai_lets_train_no_more_is_told_so(
    engine: Engine, settings: Settings, dataset: Dataset, stub: StubServer, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    if host != "127.0.0.1":
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{stub.port}")  # which answers in its place
    add_base(engine, stub, base_url=f"http://{host}:{stub.port}/v1")
    stub.fine_tuning.answer("create", Reply("You do not have permission to train.", status=403))
    job_id = make_job(engine)
    look(engine, settings, job_id, is_over)
    error = row_of(engine, job_id).error or ""
    assert error.startswith(f"{host}: expected an answer, got HTTP 403: You do not have permission to train.")
    assert ("no new customers" in error, "backend: tinker" in error) == (
        (True, True) if host != "127.0.0.1" else (False, False)
    )
    assert stub.fine_tuning.files == {}


@on_sqlite
@pytest.mark.parametrize("cancelled", [False, True])
def test_a_job_that_the_vendor_does_not_know_is_the_same_job_when_it_is_resumed(
    engine: Engine, settings: Settings, dataset: Dataset, stub: StubServer, cancelled: bool
) -> None:
    stub.key = KEY
    add_base(engine, stub, organisation="org-other")
    missing = Reply("Could not find fine tune: ftjob-1", status=404)
    job_id = make_job(engine)
    look(engine, settings, job_id, lambda row: row.remote_job_id)
    stub.fine_tuning.answer("retrieve", missing)
    if cancelled:
        stub.fine_tuning.answer("cancel", missing)
        cancel(engine, job_id)
    look(engine, settings, job_id, is_over)
    row = row_of(engine, job_id)
    account = "ftjob-1 is not known with the key in OPENAI_API_KEY and the organisation org-other, it may go on"
    assert (row.status, (row.error or "").startswith(account)) == (states.FAILED, True), row.error
    assert row.remote_status != "cancelled"
    resume(engine, job_id)
    look(engine, settings, job_id, is_over)
    assert (row_of(engine, job_id).status, len(stub.fine_tuning.jobs)) == (states.DONE, 1)


@on_sqlite
def test_a_key_that_is_missing_or_a_host_that_is_not_allowed_is_one_line_and_nothing_is_sent(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = make_job(engine)
    with monkeypatch.context() as without:
        without.delenv("OPENAI_API_KEY")
        look(engine, settings, job_id, is_over)
    assert (row_of(engine, job_id).error or "").startswith(
        "expected a key in the environment variable OPENAI_API_KEY, got none; set it where the workers run"
    )
    resume(engine, job_id)
    look(engine, settings.model_copy(update={"API_HOSTS": "api.openai.com"}), job_id, is_over)
    assert (row_of(engine, job_id).error or "").startswith("base_url: expected a host that API_HOSTS allows")
    assert stub.fine_tuning.calls == []


@on_sqlite
def test_a_name_that_leads_to_an_address_of_a_link_is_not_called(
    engine: Engine, settings: Settings, dataset: Dataset, stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_base(engine, stub, "away", base_url="http://api.example/v1", key_env="AWAY_API_KEY")
    monkeypatch.setenv("AWAY_API_KEY", KEY)
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("169.254.169.254", 80))])
    job_id = make_job(engine, base="away")
    look(engine, settings, job_id, is_over)
    assert "got 169.254.169.254, a link-local or cloud metadata" in (row_of(engine, job_id).error or "")


@on_sqlite
def test_a_status_that_is_not_known_is_kept_and_looked_at_again(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    stub.fine_tuning.statuses = ["validating_files", "paused", "paused", "running", "succeeded"]
    job_id = make_job(engine)
    look(engine, settings, job_id, lambda row: row.remote_status == "paused")
    look(engine, settings, job_id, is_over)
    row = row_of(engine, job_id)
    assert row.status == states.DONE
    assert row.log.count("paused is no status that is known here; looking on") == 1


# ---- Cancelling ---------------------------------------------------------------------


def test_a_job_is_cancelled_when_the_vendor_says_so(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    stub.fine_tuning.statuses = ["running", "running", "running", "succeeded"]
    job_id = make_job(engine)
    look(engine, settings, job_id, lambda row: row.remote_status == "running")
    assert cancel(engine, job_id) == states.CANCELLING
    with writing(engine) as session:
        TRAINING.settle_cancelled(session)
    assert row_of(engine, job_id).status == states.CANCELLING
    assert due(engine) == [(job_id, BATCH)]  # at once
    look(engine, settings, job_id, lambda row: row.status != states.CANCELLING)
    row = row_of(engine, job_id)
    assert (row.status, row.remote_status, row.error) == (states.CANCELLED, "cancelled", None)
    assert "cancel" in stub.fine_tuning.calls
    assert models(engine) == 2


@on_sqlite
def test_a_job_that_was_not_sent_yet_is_cancelled_at_once_and_one_whose_answer_was_lost_is_looked_for(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    waits = make_job(engine, "waits")
    assert cancel(engine, waits) == states.CANCELLED
    assert stub.fine_tuning.calls == []
    stub.fine_tuning.answer("create", LOST)
    lost = make_job(engine, "lost")
    look(engine, settings, lost, lambda row: row.remote_failures)
    assert cancel(engine, lost) == states.CANCELLING
    look(engine, settings, lost, is_over)
    assert row_of(engine, lost).status == states.CANCELLED
    assert [body["status"] for body in stub.fine_tuning.bodies()] == ["cancelled"]
    stub.fine_tuning.answer("create", Reply("down", status=500))
    uploaded = make_job(engine, "uploaded")
    look(engine, settings, uploaded, lambda row: row.remote_failures)
    assert len(stub.fine_tuning.files) == 1
    cancel(engine, uploaded)
    look(engine, settings, uploaded, is_over)
    assert (row_of(engine, uploaded).status, stub.fine_tuning.files) == (states.CANCELLED, {})


@on_sqlite
@pytest.mark.parametrize("status", [400, 409, 500])
def test_a_job_that_was_over_before_it_could_be_cancelled_has_its_model(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer, status: int
) -> None:
    stub.fine_tuning.answer("cancel", *[Reply("Nothing to cancel.", status=status)] * 40)
    job_id = make_job(engine)
    look(engine, settings, job_id, lambda row: row.remote_job_id)
    [job] = stub.fine_tuning.jobs
    while job.left:
        stub.fine_tuning.handle("GET", "/fine_tuning/jobs/ftjob-1", {}, b"")
    assert cancel(engine, job_id) == states.CANCELLING
    look(engine, settings, job_id, is_over)
    assert row_of(engine, job_id).status == states.DONE
    assert model_of(engine, "tuned") is not None


@on_sqlite
def test_a_job_whose_terminal_is_gone_is_cancelled_by_the_command(
    app: Flask, client: FlaskClient, engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setitem(app.config, "SETTINGS", settings)
    stub.fine_tuning.statuses = ["running"] * 50 + ["succeeded"]
    job_id, stop = make_job(engine, queued=False), threading.Event()
    run(engine, settings, job_id, stop, notify=lambda _events: stop.set())
    with reading(engine) as session:
        assert TRAINING.state_of(session, TRAINING.get(session, job_id)) == states.INTERRUPTED
    page = client.get(f"/admin/jobs/{job_id}").text
    assert "It may still run at OpenAI: Resume lets a worker follow it." in page
    assert "from its last checkpoint" not in page
    said = app.test_cli_runner().invoke(args=["training", "cancel", str(job_id)])
    assert said.stdout.startswith("Job 1 is cancelled at no step yet; "), said.stderr
    assert [body["status"] for body in stub.fine_tuning.bodies()] == ["cancelled"]


def test_a_job_that_the_vendor_refused_to_cancel_can_be_cancelled_again(
    client: FlaskClient, engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    vendor, button = stub.fine_tuning, 'name="action" value="cancel"'
    vendor.statuses = ["running"] * 50 + ["succeeded"]
    vendor.answer("cancel", Reply("This key may not cancel.", status=403))
    job_id = make_job(engine)
    look(engine, settings, job_id, lambda row: row.remote_status)
    cancel(engine, job_id)
    look(engine, settings, job_id, is_over)
    row = row_of(engine, job_id)
    assert (row.status, "This key may not cancel." in (row.error or "")) == (states.FAILED, True)
    assert button in client.get(f"/admin/jobs/{job_id}").text
    assert cancel(engine, job_id) == states.CANCELLING
    assert due(engine) == [(job_id, BATCH)]
    look(engine, settings, job_id, is_over)
    assert (row_of(engine, job_id).status, row_of(engine, job_id).error) == (states.CANCELLED, None)
    assert [body["status"] for body in vendor.bodies()] == ["cancelled"]
    assert button not in client.get(f"/admin/jobs/{job_id}").text


@on_sqlite
def test_a_terminal_does_not_wait_for_the_next_look_when_it_is_to_cancel(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    stub.fine_tuning.statuses = ["running", "cancelled"]
    job_id, asked = make_job(engine, queued=False), threading.Event()

    def ask(events: list[Any]) -> None:
        created = any(each["event"] == "created" for each in events)
        if created and not asked.is_set():  # the look goes on
            asked.set()
            cancel(engine, job_id)

    seldom = settings.model_copy(update={"TRAIN_POLL": 3600})
    terminal = threading.Thread(target=run, args=(engine, seldom, job_id), kwargs={"notify": ask}, daemon=True)
    terminal.start()
    terminal.join(PATIENCE)
    assert row_of(engine, job_id).status == states.CANCELLED
    assert [body["status"] for body in stub.fine_tuning.bodies()] == ["cancelled"]


# ---- Uploads that arrive when nobody expects them any more -------------------------------


def cancel_with_upload_on_the_way(engine: Engine, settings: Settings, stub: StubServer) -> tuple[int, Settings]:
    """A job that is cancelled while its upload is on the way, and settings with which that is waited for long."""
    seldom = settings.model_copy(update={"TRAIN_POLL": 3600})
    stub.fine_tuning.answer("upload", LATE)
    job_id = make_job(engine)
    assert run(engine, seldom, job_id)
    assert row_of(engine, job_id).remote_failures == 1
    assert cancel(engine, job_id) == states.CANCELLING
    return job_id, seldom


@on_sqlite
def test_an_upload_that_arrives_after_the_job_was_cancelled_is_deleted(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    job_id, seldom = cancel_with_upload_on_the_way(engine, settings, stub)
    for _ in range(3):
        assert run(engine, seldom, job_id)
        assert row_of(engine, job_id).status == states.CANCELLING
    assert "an upload may still arrive there, looking for it for 21600 seconds" in row_of(engine, job_id).log
    stub.fine_tuning.arrive()
    assert len(stub.fine_tuning.files) == 1
    look(engine, seldom, job_id, is_over)
    assert (row_of(engine, job_id).status, row_of(engine, job_id).error) == (states.CANCELLED, None)
    assert (stub.fine_tuning.files, len(stub.fine_tuning.contents)) == ({}, 1)


@on_sqlite
def test_an_upload_that_never_arrives_is_not_waited_for_without_end(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    job_id, _ = cancel_with_upload_on_the_way(engine, settings, stub)
    look(engine, settings, job_id, is_over, most=10_000)
    assert row_of(engine, job_id).status == states.CANCELLED
    resume(engine, job_id)
    look(engine, settings, job_id, is_over)
    assert (row_of(engine, job_id).status, stub.fine_tuning.files) == (states.DONE, {})


@on_sqlite
def test_an_upload_that_was_made_again_and_arrives_twice_leaves_no_file(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    stub.fine_tuning.answer("upload", LATE)
    job_id = make_job(engine)
    look(engine, settings, job_id, lambda row: row.remote_status)
    stub.fine_tuning.arrive()
    assert len(stub.fine_tuning.files) == 2
    look(engine, settings, job_id, is_over)
    assert (row_of(engine, job_id).status, stub.fine_tuning.files) == (states.DONE, {})


@on_sqlite
def test_an_upload_during_which_another_worker_has_cancelled_the_job_is_deleted(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    vendor = stub.fine_tuning
    vendor.late["upload"] = threading.Event()
    job_id = make_job(engine)
    first = threading.Thread(target=run, args=(engine, settings, job_id))
    first.start()
    wait_until(lambda: vendor.files, "a file at the vendor")
    with writing(engine) as session:
        values = {"lease_owner": "another", "status": states.CANCELLED}
        session.execute(update(TrainingJob).where(TrainingJob.id == job_id).values(**values))
    vendor.late.pop("upload").set()
    first.join(PATIENCE)
    assert (vendor.files, len(vendor.contents), vendor.jobs) == ({}, 1, [])


@on_sqlite
def test_a_worker_that_stood_still_while_its_job_was_cancelled_sends_nothing(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    job_id = make_job(engine)
    with writing(engine) as session:
        assert TRAINING.take(session, job_id, "slow", 60)
    record = TrainingEventWriter(engine, job_id, "slow", 60, lambda _events: None)
    with writing(engine) as session:
        past = datetime.now(UTC) - timedelta(seconds=1)
        session.execute(update(TrainingJob).where(TrainingJob.id == job_id).values(lease_until=past))
    assert cancel(engine, job_id) == states.CANCELLED
    with pytest.raises(TrainingLeaseLost):
        openai.follow(JobContext(engine, settings, "slow"), job_id, record)
    assert (row_of(engine, job_id).status, stub.fine_tuning.calls) == (states.CANCELLED, [])


@on_sqlite
def test_an_upload_of_a_terminal_that_was_killed_is_deleted_when_it_arrives(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    vendor = stub.fine_tuning
    vendor.answer("upload", LATE)
    job_id = make_job(engine, queued=False)
    terminal = resumed_in_terminal(engine, settings, job_id, TRAIN_POLL="3600")
    wait_until(lambda: "upload" in vendor.calls, "an upload")
    terminal.kill()
    terminal.wait()
    cancel(engine, job_id)
    wait_for_end_of_lease(engine, job_id)
    slow = settings.model_copy(update={"TRAIN_POLL": 2})
    other = threading.Thread(target=run, args=(engine, slow, job_id), daemon=True)
    other.start()
    wait_until(lambda: events_of(engine, job_id, "awaited"), "another terminal that waits for the upload")
    assert row_of(engine, job_id).status == states.CANCELLING
    vendor.arrive()
    other.join(PATIENCE)
    assert (row_of(engine, job_id).status, vendor.files, len(vendor.contents)) == (states.CANCELLED, {}, 1)


# ---- What it costs --------------------------------------------------------------------

ROWS = 3  # of `dataset`, in which something is learnt: two messages, "Hi" and "Yes"
TOKENS = ROWS * (1 + 2 * 4 + 3)  # as they are estimated, for each epoch
COST = 3 * 2 * TOKENS / 1e6  # at the base's price, in two epochs


def make_budgeted(engine: Engine, base: str = "mini", *, n_epochs: int = 2, **budget: Any) -> int:
    config = {"n_epochs": n_epochs}
    given = {"method": "sft", "dataset": "rows", "name": "tuned", "base": base, "backend": "openai", "config": config}
    with writing(engine) as session:
        return jobs.create(session, jobs.TrainingSpec.read({**given, "budget": budget}), queued=True).id


def charges_of(engine: Engine, job_id: int) -> list[tuple[int, bool]]:
    """Tokens of each training at the vendor, and whether they are estimated."""
    with reading(engine) as session:
        found = session.scalars(select(TrainingCharge).where(TrainingCharge.job_id == job_id).order_by("at"))
        return [(each.tokens, each.is_estimate) for each in found]


@on_sqlite
def test_a_training_that_would_exceed_its_budget_stops_before_anything_is_sent(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    job_id = make_budgeted(engine, usd=0.0001)
    look(engine, settings, job_id, is_over)
    row = row_of(engine, job_id)
    assert row.status == states.FAILED
    assert row.error == (
        f"budget of $0.0001 would be exceeded: the training would take about {2 * TOKENS} trained tokens in 2 epochs,"
        " $0.000216 at $3.00 a million; resume with a higher budget"
    )
    assert (stub.fine_tuning.calls, row.remote_token, charges_of(engine, job_id)) == ([], None, [])
    assert not TRAINING.may_cancel(row)
    with writing(engine) as session:
        TRAINING.resume(session, job_id, queued=True, budget=JobBudget(usd=1))
    look(engine, settings, job_id, lambda row: row.remote_status == "running")
    assert charges_of(engine, job_id) == [(2 * TOKENS, True)]
    look(engine, settings, job_id, is_over)
    assert (row_of(engine, job_id).status, charges_of(engine, job_id)) == (states.DONE, [(5000, False)])
    assert f"estimate: about {2 * TOKENS} trained tokens in 2 epochs, $0.000216" in row_of(engine, job_id).log


@on_sqlite
def test_trained_tokens_have_a_budget_whatever_they_cost(
    engine: Engine, settings: Settings, dataset: Dataset, stub: StubServer
) -> None:
    stub.key = KEY
    add_base(engine, stub, price_training=None)
    job_id = make_budgeted(engine, tokens=TOKENS)
    look(engine, settings, job_id, is_over)
    assert (row_of(engine, job_id).error or "").startswith(
        f"budget of {TOKENS} tokens would be exceeded: the training would take about {2 * TOKENS} trained tokens in 2"
        " epochs; resume"
    )
    assert stub.fine_tuning.calls == []


@on_sqlite
def test_tries_that_were_charged_count_to_the_budget(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    vendor = stub.fine_tuning
    vendor.statuses = ["running", "failed"]
    vendor.alter = lambda call, body: {**body, "trained_tokens": 4000} if body.get("status") == "failed" else body
    job_id = make_budgeted(engine, usd=0.0121)
    look(engine, settings, job_id, is_over)
    assert charges_of(engine, job_id) == [(4000, False)]
    resume(engine, job_id)
    look(engine, settings, job_id, is_over)
    row = row_of(engine, job_id)
    assert (row.error or "").startswith("budget of $0.0121 would be exceeded: the training would take about ")
    assert (row.error or "").endswith("a million, after $0.012 of earlier tries; resume with a higher budget")
    assert len(vendor.jobs) == 1
    vendor.statuses = ["running", "succeeded"]
    with writing(engine) as session:
        TRAINING.resume(session, job_id, queued=True, budget=JobBudget(usd=1))
    look(engine, settings, job_id, is_over)
    with reading(engine) as session:
        [figures] = listing.figures_of(session, [TRAINING.get(session, job_id)]).values()
    assert figures["cost"] == pytest.approx(0.027)  # of both tries


@on_sqlite
def test_a_training_that_cost_nothing_is_not_counted(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    stub.fine_tuning.answer("create", Reply("This model cannot be tuned.", status=400))
    refused = make_job(engine, "refused")
    look(engine, settings, refused, is_over)
    assert charges_of(engine, refused) == []
    stub.fine_tuning.statuses = ["running"] * 50
    cancelled = make_job(engine, "cancelled")
    look(engine, settings, cancelled, lambda row: row.remote_status)
    assert len(charges_of(engine, cancelled)) == 1
    cancel(engine, cancelled)
    look(engine, settings, cancelled, is_over)
    assert (row_of(engine, cancelled).status, charges_of(engine, cancelled)) == (states.CANCELLED, [])


@on_sqlite
def test_the_budgets_of_the_settings_count_trainings(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    usual = make_job(engine, "usual", n_epochs=2)
    look(engine, settings.model_copy(update={"JOB_BUDGET_USD": 0.0001}), usual, is_over)
    assert (row_of(engine, usual).error or "").startswith("budget of $0.0001 would be exceeded: ")
    limited = settings.model_copy(update={"SPENDING_LIMIT_USD": 0.016})
    first, second, third = (make_job(engine, name, n_epochs=2) for name in ("first", "second", "third"))
    look(engine, limited, first, is_over)
    assert row_of(engine, first).status == states.DONE
    with reading(engine) as session:
        assert spent_since(session, datetime.now(UTC) - timedelta(days=1)) == pytest.approx(0.015)
        assert spent_since(session, datetime.now(UTC) + timedelta(days=1)) == 0
    for job_id in (second, third):  # what goes on counts as well: the limit has room for four times this
        look(engine, settings, job_id, lambda row: row.remote_status)
    fourth = make_job(engine, "fourth", n_epochs=100)
    look(engine, limited, fourth, is_over)
    assert (row_of(engine, fourth).error or "").startswith(
        f"budget of $0.016 a month of this installation has ${0.001 - 2 * COST:.6f} left, and the training would take"
        f" about {100 * TOKENS} trained tokens in 100 epochs, $0.0108 at $3.00 a million; raise SPENDING_LIMIT_USD or"
        " wait for the next month, and resume"
    )
    reached = make_job(engine, "reached", n_epochs=1)
    look(engine, settings.model_copy(update={"SPENDING_LIMIT_USD": 0.01}), reached, is_over)
    assert (row_of(engine, reached).error or "").startswith("budget of $0.01 a month of this installation reached: ")
    assert len(stub.fine_tuning.jobs) == 3


@on_sqlite
def test_where_the_price_is_unknown_that_is_said(
    engine: Engine, settings: Settings, dataset: Dataset, stub: StubServer
) -> None:
    stub.key = KEY
    add_base(engine, stub, price_training=None)
    with pytest.raises(AppError) as refused:
        make_budgeted(engine, usd=5)
    assert refused.value.message == (
        "budget.usd: expected a base whose price of trained tokens is known, got mini without price_training; give it"
        " one, or set a budget of tokens"
    )
    job_id = make_job(engine)
    limited = settings.model_copy(update={"SPENDING_LIMIT_USD": 5})
    look(engine, limited, job_id, is_over)
    row = row_of(engine, job_id)
    assert row.status == states.DONE
    assert (
        "SPENDING_LIMIT_USD cannot count this training: the price of trained tokens of mini is unknown; `flask model"
        " edit mini --price-training USD` says it"
    ) in row.log
    with writing(engine) as session:
        model = session.get_one(LanguageModel, row.base_id)
        model.options = {**model.options, "price_training": 3}
    with reading(engine) as session:
        assert spent_since(session, datetime.now(UTC) - timedelta(days=1)) == pytest.approx(0.015)


@on_sqlite
def test_a_training_here_takes_no_budget(engine: Engine) -> None:
    with pytest.raises(AppError) as refused:
        jobs.TrainingSpec.read({"method": "tiny", "dataset": "rows", "name": "small", "budget": {"usd": "5"}})
    assert refused.value.message == "budget: expected none for a training here, which costs nothing, got 'usd=5.0'"


@on_sqlite
def test_the_command_and_the_page_raise_the_budget_of_a_training(
    app: Flask, client: FlaskClient, engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setitem(app.config, "SETTINGS", settings)
    flask = app.test_cli_runner()
    line = "training run sft --backend openai --dataset rows --base mini --name tuned --budget 0.00001"
    ran = flask.invoke(args=line.split())
    assert ran.exit_code == 1
    assert ran.stderr.startswith("Error: job 1 stopped: budget of $0.00001 would be exceeded: ")
    page = client.get("/admin/jobs/1").text
    assert re.search(r'name="budget_usd"[^>]* value="0\.00001"', page)
    assert "budget of $0.00001 would be exceeded" in page
    assert flask.invoke(args=["training", "resume", "1", "--budget", "2"]).exit_code == 0
    shown = json.loads(flask.invoke(args=["training", "show", "1", "--json"]).stdout)
    assert (shown["status"], shown["budget_usd"], shown["cost"]) == ("done", 2.0, 0.015)
    form = {"dataset": "1", "method": "sft", "backend": "openai", "base": "mini", "name": "other"}
    assert client.post("/admin/jobs/new", data=form | {"budget_usd": "7", "budget_tokens": ""}).status_code == 303
    assert row_of(engine, 2).budget_usd == 7
    assert 'name="budget_usd" type="text"' in client.get("/admin/jobs/new?like=2").text


# ---- What cannot be trained ---------------------------------------------------------


@on_sqlite
@pytest.mark.parametrize(
    ("wish", "line"),
    [
        ({"method": "sft-kl"}, "method: expected sft, which is all that OpenAI trains with, got 'sft-kl'"),
        ({"method": "tiny", "base": None}, "method: expected sft, which is all that OpenAI trains with, got 'tiny'"),
        ({"base": None}, "base: expected the API model that sft starts from, got none"),
        ({"base": "nobody"}, "base: expected one of scripted, scripted-agent, "),
        ({"base": "small"}, "base: expected an API model, which OpenAI can start from, got small, which is local"),
        ({"base": "open"}, "base: expected an API model with a key, as OpenAI's have, got open, whose server"),
        ({"config": {"epochs": 3}}, "config.epochs: expected a field of openai (n_epochs, learning_rate_multi"),
        ({"config": {"n_epochs": "0"}}, "config.n_epochs: expected auto or a whole number from 1 to 100, got '0'"),
        (
            {"config": {"learning_rate_multiplier": "fast"}},
            "config.learning_rate_multiplier: expected auto or a number above",
        ),
        ({"config": {"suffix": "x" * 65}}, "config.suffix: expected 1 to 64 characters without line breaks, got 65 ch"),
        ({"dataset": "weighted"}, "row 1 of weighted@1: weight: expected 0 or 1, the only weights that OpenAI"),
        ({"dataset": "rewarded"}, "row 1 of rewarded@1: reward: expected none below 0 in a format whose moves all"),
    ],
)  # fmt: skip
def test_a_wish_that_cannot_be_is_refused_in_one_line(
    engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer, wish: dict[str, Any], line: str
) -> None:
    write_dataset(engine, settings, "weighted", [0.5, 1])
    write_dataset(engine, settings, "rewarded", [1, 1], reward=-0.5)
    add_base(engine, stub, "open", key_env="")
    with writing(engine) as session:
        add_local_model(session, "small", None, ["taboo"], {"path": "checkpoints/small", "sha256": "0" * 64})
    usual = {"method": "sft", "dataset": "rows", "name": "tuned", "base": "mini", "backend": "openai"}
    with pytest.raises(AppError) as refused, writing(engine) as session:
        jobs.create(session, jobs.TrainingSpec.read(usual | wish), queued=False, home=settings.home)
    assert refused.value.message.startswith(line)
    assert "\n" not in refused.value.message


def write_dataset(
    engine: Engine,
    settings: Settings,
    name: str,
    weights: list[float],
    before: Sequence[Any] = ({"role": "user", "content": "Hi"},),
    **more: float,
) -> Dataset:
    """A dataset of one row for each weight, which that row's last move has, with what `more` there is."""
    moves = [{"role": "assistant", "content": "Yes", "weight": weight, **more} for weight in weights]
    rows = [{"messages": [*before, move]} for move in moves]
    content = "".join(json.dumps({**row, "group": f"match:{at}"}) + "\n" for at, row in enumerate(rows)).encode()
    row = Dataset(
        name=name, version=1, spec={"prompts": {}, "style": "compact", "rounds": []}, size=len(content),
        sha256=hashlib.sha256(content).hexdigest(), rows=len(rows), words=0, own_words=0, figures={},
        created_at=datetime.now(UTC),
    )  # fmt: skip
    (settings.home / store.FOLDER).mkdir(exist_ok=True)
    (settings.home / store.FOLDER / f"{row.sha256}.jsonl").write_bytes(content)
    with writing(engine) as session:
        session.add(row)
    return row


@on_sqlite
@pytest.mark.parametrize(
    ("weights", "line"),
    [
        ([1, 0.5], "row 2 of odd@1: weight: expected 0 or 1, the only weights that OpenAI accepts, got 0.5; build the"),
        ([0, 0], "dataset: expected rows in which something is learnt, got odd@1, which has none"),
    ],
)
def test_rows_that_the_vendor_would_not_take_are_not_sent(
    engine: Engine, settings: Settings, base: str, stub: StubServer, weights: list[float], line: str
) -> None:
    write_dataset(engine, settings, "odd", weights)
    with writing(engine) as session:
        spec = jobs.TrainingSpec(method="sft", dataset="odd", name="tuned", base="mini", backend="openai")
        job_id = jobs.create(session, spec, queued=True).id
    look(engine, settings, job_id, is_over)
    assert (row_of(engine, job_id).error or "").startswith(line)
    assert stub.fine_tuning.calls == []


# ---- The pages ----------------------------------------------------------------------


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@on_sqlite
def test_the_form_offers_openai_and_the_page_shows_what_became_of_it(
    client: FlaskClient, engine: Engine, settings: Settings, dataset: Dataset, base: str, stub: StubServer
) -> None:
    page = client.get("/admin/jobs/new?base=mini").text
    for part in (
        'value="openai" checked',
        '<option value="mini" selected>mini (At OpenAI)</option>',
        "openai-n_epochs",
    ):
        assert part in page, part
    form = {"dataset": "1", "method": "sft", "backend": "openai", "base": "mini", "name": "tuned", "epochs": "3"}
    refused = client.post("/admin/jobs/new", data=form | {"openai-batch_size": "none"})
    assert refused.status_code == 400
    assert "Batch: expected auto or a whole number from 1 to 10000" in refused.text
    assert client.post("/admin/jobs/new", data=form | {"openai-n_epochs": "2"}).status_code == 303
    row = row_of(engine, 1)
    assert (row.backend, row.config, row.queued) == ("openai", {"n_epochs": 2}, True)
    assert 'name="openai-n_epochs" type="text" value="2"' in client.get("/admin/jobs/new?like=1").text
    look(engine, settings, 1, lambda row: row.remote_status == "queued")
    assert "OpenAI checks the dataset, and then trains" in client.get("/admin/jobs/1").text
    client.post("/admin/jobs/1", data={"action": "cancel"})
    assert "It counts as cancelled once OpenAI confirms." in client.get("/admin/jobs/1").text
    look(engine, settings, 1, is_over)
    client.post("/admin/jobs/1", data={"action": "resume"})
    look(engine, settings, 1, is_over)
    page = client.get("/admin/jobs/1").text
    for name, text in {"remote_status": "succeeded", "trained_tokens": "5,000", "cost": "$0.0150"}.items():
        assert f'<span data-figure="{name}">{text}</span>' in page, name
    assert f"ft:{REMOTE}:org::ftjob-2" in page
    [lineage] = re.findall(r'href="([^"]+)">Lineage<', page)
    assert 'href="/admin/jobs/1"' in client.get(lineage).text


# ---- Killed -------------------------------------------------------------------------


def resumed_in_terminal(engine: Engine, settings: Settings, job_id: int, **environment: str) -> Forked:
    """A terminal in which a job is resumed."""
    given = {"PARLOR_HOME": str(settings.home), "DATABASE_URL": engine.url.render_as_string(hide_password=False)}
    line = ("--app", "wsgi", "training", "resume", job_id)
    return start_flask(*line, env={**given, "TRAIN_LEASE": "1.5", **environment})


def wait_for_end_of_lease(engine: Engine, job_id: int) -> None:
    """Wait until the lease of whoever was killed has run out."""

    def is_free() -> bool:
        with reading(engine) as session:
            return not TRAINING.has_worker(session, TRAINING.get(session, job_id))

    wait_until(is_free, "the end of the lease")


def test_a_worker_that_is_killed_while_the_job_is_created_leaves_one_job_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = {"TRAIN_LEASE": "2", "TRAIN_POLL": "0.3", "UPKEEP_EVERY": "0.4", "WORKER_QUEUES": "batch"}
    with StubServer(key=KEY) as stub, running_parlor(**environment) as parlor, database(parlor) as engine:
        vendor = stub.fine_tuning
        vendor.late["create"] = threading.Event()
        write_dataset(engine, settings_of(parlor), "rows", [1, 1])
        add_base(engine, stub)
        job_id = make_job(engine)
        wait_until(lambda: vendor.jobs, "a job at the vendor")
        assert row_of(engine, job_id).remote_job_id is None
        parlor.kill("batch")
        vendor.late.pop("create").set()
        wait_until(lambda: is_over(row_of(engine, job_id)), "the end of the job")
        row = row_of(engine, job_id)
        assert (row.status, row.error, row.remote_job_id) == (states.DONE, None, "ftjob-1")
        assert (len(vendor.jobs), len(vendor.contents), models(engine)) == (1, 1, 3)


@pytest.mark.parametrize(("arrives", "queue"), [(True, False), (False, True)])
@pytest.mark.parametrize("call", ["upload", "create", "retrieve", "cancel", "delete_file"])
def test_a_job_whose_terminal_is_killed_while_it_is_cancelled_is_cancelled_by_resume(
    app: Flask,
    engine: Engine,
    settings: Settings,
    dataset: Dataset,
    base: str,
    stub: StubServer,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    queue: bool,
    arrives: bool,
) -> None:
    """The terminal is killed in a call that reaches the vendor, or does not; in `retrieve` before it asks to cancel."""
    monkeypatch.setitem(app.config, "SETTINGS", settings)
    vendor, is_last = stub.fine_tuning, call in ("cancel", "delete_file")
    vendor.statuses = ["running"] * 500
    unanswered = vendor.late if arrives else vendor.held
    unanswered[call] = threading.Event()
    job_id = make_job(engine, queued=False)
    terminal = resumed_in_terminal(engine, settings, job_id, TRAIN_POLL="0.1")
    wait_until(lambda: row_of(engine, job_id).remote_status if is_last else call in vendor.calls, "a job there")
    assert cancel(engine, job_id) == states.CANCELLING
    wait_until(lambda: call in vendor.calls, "the call that is not answered")
    terminal.kill()
    terminal.wait()
    assert ("cancel" in vendor.calls) == is_last
    unanswered.pop(call).set()

    wait_for_end_of_lease(engine, job_id)
    line = ["training", "resume", str(job_id), *(["--queue"] if queue else [])]
    resumed = app.test_cli_runner().invoke(args=line)
    assert resumed.exit_code == 0, resumed.stderr
    if queue:
        assert resumed.stdout.startswith("Job 1 waits for a worker")
        look(engine, settings, job_id, is_over, most=1000)
    else:
        assert resumed.stdout.startswith("Job 1 is cancelled at ")
    assert (row_of(engine, job_id).status, row_of(engine, job_id).error) == (states.CANCELLED, None)
    is_created = call != "upload" and (call != "create" or arrives)
    assert [body["status"] for body in vendor.bodies()] == ["cancelled"] * is_created
    assert vendor.files == {}
    assert len(vendor.contents) == (call != "upload" or arrives)
    assert charges_of(engine, job_id) == []


@pytest.mark.parametrize("is_written", [False, True])
def test_a_job_that_is_killed_at_any_write_while_it_is_cancelled_is_cancelled_by_resume(
    app: Flask,
    engine: Engine,
    settings: Settings,
    dataset: Dataset,
    base: str,
    stub: StubServer,
    monkeypatch: pytest.MonkeyPatch,
    is_written: bool,
) -> None:
    """Process after process is killed right before its next write, or right after it, until one comes to the end."""
    monkeypatch.setitem(app.config, "SETTINGS", settings)
    vendor, killed = stub.fine_tuning, 0
    while True:
        vendor.statuses = ["running"] * 500
        job_id = make_job(engine, f"tuned-{killed}", queued=False)
        stop = threading.Event()
        run(engine, settings, job_id, stop, notify=lambda _events, stop=stop: stop.set())
        assert cancel(engine, job_id) == states.CANCELLING
        worker = os.fork()
        if worker == 0:
            engine.dispose(close=False)
            die_at_write(killed, is_written=is_written)
            run(engine, settings, job_id)
            os._exit(0)
        [_, status] = os.waitpid(worker, 0)
        if os.waitstatus_to_exitcode(status) == 0:
            break
        killed += 1
        with writing(engine) as session:
            TRAINING.get(session, job_id).lease_until = None
        if row_of(engine, job_id).status == states.CANCELLING:  # else that was the last write
            resumed = app.test_cli_runner().invoke(args=["training", "resume", str(job_id)])
            assert resumed.exit_code == 0, resumed.stderr
        assert (row_of(engine, job_id).status, row_of(engine, job_id).error) == (states.CANCELLED, None)
        assert {body["status"] for body in vendor.bodies()} == {"cancelled"}
        assert (vendor.files, len(vendor.contents), charges_of(engine, job_id)) == ({}, killed, [])
    assert killed > 3


def die_at_write(number: int, *, is_written: bool) -> None:
    """Have this process be killed at one of the transactions in which a job is stored, before it or after it."""
    usual, left = TrainingEventWriter.settle, itertools.count(number, -1)

    def settle(record: TrainingEventWriter, also: Callable[[Any], Any]) -> Any:
        is_last = next(left) == 0
        if is_last and not is_written:
            os.kill(os.getpid(), signal.SIGKILL)
        found = usual(record, also)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    TrainingEventWriter.settle = settle  # type: ignore[method-assign, assignment]
