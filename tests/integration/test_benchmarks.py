"""Benchmarks: scored in a process that may be killed, by answers of a model behind an API, and side by side."""

import json
import math
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine, func, select

from app.benchmarks import runner, tasks
from app.benchmarks.job import BENCHMARK
from app.benchmarks.lifecycle import create, create_missing
from app.benchmarks.listing import compare, usage_of
from app.benchmarks.spec import BenchmarkSpec
from app.cli.benchmark import list_tasks
from app.core.config import Settings
from app.core.errors import AppError
from app.core.extensions import db, reading, writing
from app.jobs import states
from app.jobs.spec import JobBudget
from app.jobs.spending import dollars
from app.matches.turns import WorkerContext
from app.models import BenchmarkJob, BenchmarkResult, GenerationRow, LanguageModel, ModelRequest
from app.registry import add_api_model, get_model
from tests.benchmarks import SlowTask, make_benchmark, results_of, row_of, score
from tests.campaigns import add_local, campaign_of, change
from tests.checkpoints import register, word_model
from tests.experimenter import signed_in
from tests.jobs import is_internal_error
from tests.shell import Finished
from tests.stack import PATIENCE, wait_until
from tests.stub_openai import Reply, StubServer
from tests.study_pages import text_of

Desk = Callable[..., WorkerContext]
# For what takes long, or is the same on every database.
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "TICK", 0.05)


@pytest.fixture
def words(engine: Engine, tmp_path: Path) -> str:
    """A registered model of a few thousand weights."""
    register(engine, "words", tmp_path / "words", word_model(tmp_path / "words"))
    return "words"


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return signed_in(app)


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlowTask:
    return SlowTask(tmp_path, monkeypatch)


def begun(context: WorkerContext, number: int) -> threading.Thread:
    """A worker at a benchmark that has scored its first task and waits for the questions of the second one."""
    thread = threading.Thread(target=runner.run, args=(context, number), daemon=True)
    thread.start()

    def waits() -> bool:
        held = row_of(context.database, number).lease_owner == context.owner
        return (held and bool(results_of(context.database, number))) or not thread.is_alive()

    wait_until(waits, "the first task")
    assert row_of(context.database, number).status == states.RUNNING, row_of(context.database, number).error
    return thread


def folder_of(engine: Engine, settings: Settings, number: int) -> Path:
    return runner.folder_of(settings.home, row_of(engine, number))


def told(engine: Engine, settings: Settings, number: int) -> list[str]:
    """The tasks that all processes of a benchmark have told of."""
    lines = (folder_of(engine, settings, number) / "progress.jsonl").read_text().splitlines()
    return [each["task"] for each in map(json.loads, lines) if each["event"] == "task"]


# ---- A checkpoint -----------------------------------------------------------------


@on_sqlite
def test_a_killed_process_loses_the_task_that_it_was_at_alone(
    engine: Engine, desk: Desk, words: str, slow: SlowTask
) -> None:
    number, context = make_benchmark(engine, words, f"everyday-reasoning,{slow.name}"), desk()
    thread = begun(context, number)
    first = results_of(engine, number)["everyday-reasoning"]
    slow.release()
    os.killpg(int((folder_of(engine, context.settings, number) / "lock").read_text()), signal.SIGKILL)
    thread.join(PATIENCE)
    row, results = row_of(engine, number), results_of(engine, number)
    assert (row.status, row.error, row.lease_owner, row.step) == (states.DONE, None, None, None)
    assert told(engine, context.settings, number) == ["everyday-reasoning", slow.name]
    assert results[slow.name].scores == first.scores  # they are the same questions
    assert (first.metric, first.n, first.source) == ("acc", 40, "parlor")
    assert 0 < first.value < 1


@on_sqlite
def test_a_worker_that_is_to_end_leaves_the_rest_to_the_next_one_and_a_cancelled_benchmark_can_be_resumed(
    engine: Engine, desk: Desk, words: str, slow: SlowTask
) -> None:
    number = make_benchmark(engine, words, f"everyday-reasoning,{slow.name}", item_limit=5)
    one = desk("one")
    thread = begun(one, number)
    one.stopping.set()
    thread.join(PATIENCE)
    assert (row_of(engine, number).status, row_of(engine, number).lease_owner) == (states.RUNNING, None)
    two = desk("two")
    thread = begun(two, number)
    with writing(engine) as session:
        assert BENCHMARK.cancel(session, number).status == states.CANCELLING
    thread.join(PATIENCE)
    assert row_of(engine, number).status == states.CANCELLED
    slow.release()
    with writing(engine) as session:
        BENCHMARK.resume(session, number, queued=False)
    runner.run(desk("three"), number)
    assert row_of(engine, number).status == states.DONE
    assert told(engine, two.settings, number) == ["everyday-reasoning", slow.name]


@on_sqlite
def test_what_cannot_be_scored_stops_the_benchmark_with_one_line(
    engine: Engine, desk: Desk, words: str, tmp_path: Path
) -> None:
    (tmp_path / "words" / "config.json").write_text("{}")
    number = make_benchmark(engine, words)
    runner.run(desk(), number)
    row = row_of(engine, number)
    assert row.status == states.FAILED
    assert "expected the checkpoint with hash" in row.error
    assert "\n" not in row.error


@on_sqlite
def test_a_job_does_not_take_in_what_another_of_its_number_has_left(
    engine: Engine, desk: Desk, words: str, tmp_path: Path
) -> None:
    """As in a new database, or in one that was restored."""
    context, number = desk(), make_benchmark(engine, words, item_limit=4)
    runner.run(context, number)
    earlier = results_of(engine, number)["everyday-reasoning"]
    with writing(engine) as session:
        session.delete(session.get_one(BenchmarkResult, (number, "everyday-reasoning")))
        session.delete(session.get_one(BenchmarkJob, number))
    assert make_benchmark(engine, words, item_limit=8) == number
    runner.run(context, number)
    assert (earlier.n, results_of(engine, number)["everyday-reasoning"].n) == (4, 8)


@on_sqlite
def test_a_result_that_cannot_be_written_down_stops_the_benchmark_with_one_line(
    engine: Engine, desk: Desk, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"event": "task", "task": "everyday-reasoning", "n": 1, "metric": "acc", "source": "x", "version": "1"}
    told |= {"seconds": 1.0, "scores": {"acc": {"value": math.nan, "stderr": None}}}
    (tmp_path / "told.jsonl").write_text(json.dumps(told) + "\n")
    script = 'cat "$0" > "$5"; sleep 0.1'  # $5 is the file behind --progress
    monkeypatch.setattr(tasks, "PROGRAM", ("/bin/sh", "-c", script, str(tmp_path / "told.jsonl")))
    number = make_benchmark(engine, words)
    runner.run(desk(), number)
    row = row_of(engine, number)
    assert (row.status, row.lease_owner) == (states.FAILED, None)
    assert is_internal_error(row.error)


@on_sqlite
def test_a_process_that_dies_again_and_again_is_given_up(
    engine: Engine, desk: Desk, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "PROGRAM", ("/bin/sh", "-c", "kill -9 $$"))
    number = make_benchmark(engine, words)
    runner.run(desk(), number)
    row = row_of(engine, number)
    assert row.status == states.FAILED
    assert row.error == (
        "the benchmark or its worker was killed 5 times without a task scored between, probably for lack of memory;"
        " lower batch"
    )


@on_sqlite
def test_a_benchmark_in_a_terminal_prints_its_scores(
    flask: Callable[..., Finished], engine: Engine, words: str
) -> None:
    done = flask("benchmark", "run", words, "--tasks", "everyday-reasoning", "--limit", "8")
    assert done.exit_code == 0, done.stderr
    assert re.match(r"Benchmark 1 is done\.\n\ntask .+\neveryday-reasoning +acc +\d", done.stdout)
    assert results_of(engine, 1)["everyday-reasoning"].n == 8


# ---- A model behind an API --------------------------------------------------------


@pytest.fixture
def chooser(engine: Engine, stub: StubServer) -> str:
    """A model behind an API that answers A to everything."""
    stub.script("chooser", *["A. I am sure."] * 500)
    with writing(engine) as session:
        options = {"model": "chooser", "base_url": stub.url, "key_env": "", "in_flight": 4, "retries": 0}
        options |= {"price_in": 1_000_000, "price_out": 0}
        return add_api_model(session, "chooser", None, [], options).name


@on_sqlite
def test_a_model_behind_an_api_is_asked_for_letters_by_requests_that_are_kept(
    engine: Engine, desk: Desk, chooser: str, stub: StubServer
) -> None:
    number = make_benchmark(engine, chooser, "everyday-reasoning-letters", item_limit=8)
    runner.run(desk(), number)
    assert row_of(engine, number).error is None
    result = results_of(engine, number)["everyday-reasoning-letters"]
    assert (result.metric, result.value, result.n) == ("exact_match", 0.25, 8)  # a quarter of the answers are A
    asked = stub.requests_of("chooser")
    assert len(asked) == 8
    assert all(each.body["temperature"] == 0 for each in asked)
    assert "Answer with the letter of the right choice alone." in asked[0].body["messages"][-1]["content"]
    with reading(engine) as session:
        requests = session.scalars(select(ModelRequest)).all()
        assert {(each.purpose, each.status) for each in requests} == {("benchmark", "done")}
        counted = select(func.count()).select_from(GenerationRow).where(GenerationRow.request_id.is_not(None))
        assert session.scalar(counted) == len(requests) == 8
        used = usage_of(session, [row_of(engine, number)])[number]
        assert used.cost == used.prompt_tokens > 0


@on_sqlite
def test_a_benchmark_stops_at_its_budget_and_resumed_with_more_asks_for_the_rest(
    engine: Engine, desk: Desk, chooser: str, stub: StubServer
) -> None:
    before = len(stub.requests_of("chooser"))
    number = make_benchmark(engine, chooser, "everyday-reasoning-letters", item_limit=12, budget={"usd": 100})
    runner.run(desk(), number)
    row = row_of(engine, number)
    assert row.status == states.FAILED
    assert re.fullmatch(r"budget of \$100\.00 reached: \$\d+\.00 spent; resume with a higher one", row.error)
    asked = len(stub.requests_of("chooser")) - before
    assert asked < 12
    assert row.step == f"{asked} of 12 chats"
    with reading(engine) as session:
        spent = usage_of(session, [row])[number].cost
        assert spent >= 100
        assert f"{dollars(spent)} spent" in row.error  # with what was under way when it was reached
        assert session.scalar(select(func.count()).select_from(GenerationRow)) == asked
    with writing(engine) as session:
        BENCHMARK.resume(session, number, queued=False, budget=JobBudget(usd=1e6))
    runner.run(desk(), number)
    assert (row_of(engine, number).status, row_of(engine, number).error) == (states.DONE, None)
    assert len(stub.requests_of("chooser")) - before == 12


@on_sqlite
def test_a_benchmark_of_a_model_whose_tokens_nobody_counts_stops_at_its_budget_in_tokens_by_an_estimate(
    engine: Engine, desk: Desk, stub: StubServer
) -> None:
    with writing(engine) as session:
        options = {"model": "uncounted", "base_url": stub.url, "key_env": "", "in_flight": 4, "retries": 0}
        add_api_model(session, "uncounted", None, [], options)
    stub.script("uncounted", Reply("A", usage=False))
    number = make_benchmark(
        engine, "uncounted", "everyday-reasoning-letters", item_limit=12, budget={"tokens": 200, "usd": None}
    )
    runner.run(desk(), number)
    row = row_of(engine, number)
    with reading(engine) as session:
        used = usage_of(session, [row])[number]
    assert (used.prompt_tokens, used.completion_tokens, used.cost) == (0, 0, None)  # its price is not known
    assert row.error == (
        f"budget of 200 tokens reached: {used.estimated_tokens} spent, {used.estimated_tokens} of them by estimate;"
        " resume with a higher one"
    )
    asked = len(stub.requests_of("uncounted"))
    assert asked < 12
    with writing(engine) as session:
        BENCHMARK.resume(session, number, queued=False, budget=JobBudget(tokens=1_000_000))
    runner.run(desk(), number)
    assert row_of(engine, number).status == states.DONE
    assert len(stub.requests_of("uncounted")) == 12


@on_sqlite
def test_a_chat_without_an_answer_stops_the_benchmark_and_resumed_it_asks_for_the_rest(
    engine: Engine, desk: Desk, chooser: str, stub: StubServer
) -> None:
    with writing(engine) as session:
        options = {"model": "moody", "base_url": stub.url, "key_env": "", "in_flight": 1, "retries": 0}
        add_api_model(session, "moody", None, [], options)
    stub.script("moody", "A", "A", Reply("It is broken.", status=400), *["A"] * 20)
    number = make_benchmark(engine, "moody", "everyday-reasoning-letters", item_limit=6)
    runner.run(desk(), number)
    row = row_of(engine, number)
    assert row.status == states.FAILED
    assert row.error.startswith("a chat got no answer: ")
    answered = len(stub.requests_of("moody")) - 1
    with writing(engine) as session:
        BENCHMARK.resume(session, number, queued=False)
    runner.run(desk(), number)
    assert row_of(engine, number).status == states.DONE
    assert len(stub.requests_of("moody")) == answered + 1 + (6 - answered)


@on_sqlite
def test_the_lease_is_renewed_while_the_last_chats_come_to_their_end(
    engine: Engine, desk: Desk, chooser: str, stub: StubServer
) -> None:
    released = threading.Event()
    stub.script("chooser", lambda _: str(released.wait(PATIENCE)))
    context = desk(TRAIN_LEASE=1.5)
    number = make_benchmark(engine, chooser, "everyday-reasoning-letters", item_limit=8)
    thread = threading.Thread(target=runner.run, args=(context, number), daemon=True)
    thread.start()
    try:
        wait_until(lambda: len(stub.requests_of("chooser")) == 4, "as many chats as are made at once")
        context.stopping.set()
        for _ in range(2):
            until = row_of(engine, number).lease_until
            assert until is not None
            wait_until(lambda until=until: row_of(engine, number).lease_until > until, "a lease that is renewed")
    finally:
        released.set()
        thread.join(PATIENCE)
    assert (row_of(engine, number).status, row_of(engine, number).lease_owner) == (states.RUNNING, None)
    assert len(stub.requests_of("chooser")) == 4


# ---- What is refused ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "spec", "line"),
    [
        ("nobody", {}, "model: expected one of scripted, scripted-agent, scripted-observer, gone, api, got 'nobody'"),
        ("scripted", {}, "model: expected a local model, or one behind an API, got scripted, which is scripted"),
        ("gone", {}, "none there; put it back"),
        ("gone", {"item_limit": "0"}, "item_limit: expected a whole number from 1 to 1000000, got '0'"),
        ("gone", {"shots": "2"}, "shots: expected none for tasks that ship with Parlor, which take no examples, got 2"),
        ("gone", {"shots": "-1"}, "shots: expected a whole number from 0 to 1000000, got '-1'"),
        ("gone", {"batch": "x"}, "batch: expected a whole number from 1 to 1024, got 'x'"),
        ("gone", {"tasks": " "}, "tasks: expected spag, everyday-reasoning, everyday-reasoning-letters, or tasks of"),
        ("gone", {"tasks": "everyday-reasoning-letters"}, "for a local model, got 'everyday-reasoning-letters'"),
        ("api", {"tasks": "everyday-reasoning"}, "got 'everyday-reasoning'; take everyday-reasoning-letters"),
    ],
)
@on_sqlite
def test_bad_input_is_refused_on_the_form_and_leaves_nothing_behind(
    engine: Engine, client: FlaskClient, model: str, spec: dict[str, Any], line: str
) -> None:
    add_local(engine, "gone")
    with writing(engine) as session:
        add_api_model(session, "api", None, [], {"model": "x", "base_url": "http://127.0.0.1:9/v1", "key_env": ""})
    form = {"model": model, "tasks": "everyday-reasoning", "item_limit": "", "shots": "", "batch": "8", **spec}
    home = client.application.config["SETTINGS"].home
    with writing(engine) as session, pytest.raises(AppError) as refused:
        create(session, BenchmarkSpec.read(form), queued=True, home=home)
    assert line in refused.value.message
    answer = client.post("/admin/benchmarks/new", data=form)
    assert answer.status_code == refused.value.status
    assert 'role="alert"' in answer.text
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(BenchmarkJob)) == 0


@on_sqlite
def test_a_task_of_the_harness_is_refused_in_a_terminal_where_it_cannot_be_run(
    flask: Callable[..., Finished], engine: Engine, words: str
) -> None:
    done = flask("benchmark", "run", words, "--tasks", "everyday-reasoning,no_such_task_at_all")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no_such_task_at_all" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(BenchmarkJob)) == 0


def test_tasks_of_the_harness_are_looked_at_by_one_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = tmp_path / "started"
    script = f'echo "$*" >> {started}; exec "{sys.executable}" -m training.benchmarks "$@"'
    monkeypatch.setattr(tasks, "PROGRAM", ("/bin/sh", "-c", script, "sh"))
    done = CliRunner().invoke(list_tasks, ["no_such_task,nor_this_one", "--json"])
    found = json.loads(done.output)["tasks"]
    assert [each["name"] for each in found] == ["no_such_task", "nor_this_one"]
    assert all(each["name"] in each["refused"] for each in found)
    assert started.read_text().splitlines() == ["tasks no_such_task nor_this_one"]


# ---- Side by side -------------------------------------------------------------------


def test_models_are_compared_on_common_tasks_under_the_same_settings(engine: Engine) -> None:
    for name in ("base", "better", "other"):
        add_local(engine, name)
    score(engine, make_benchmark(engine, "base", "a,b", item_limit=10), {"a": 0.9, "b": 0.9})  # of other settings
    score(engine, make_benchmark(engine, "base", "a,b,c"), {"a": 0.25, "b": 0.5, "c": 0.9}, version="0")
    score(engine, make_benchmark(engine, "base", "a,b"), {"a": 0.25, "b": 0.36})
    score(engine, make_benchmark(engine, "better", "b,a"), {"b": 0.49, "a": 0.25})
    with reading(engine) as session:
        found = compare(session, [get_model(session, name) for name in ("base", "better", "other")])
        assert found is not None
        assert [each.model.name for each in found.models] == ["base", "better"]
        assert (found.tasks, found.common) == (["a", "b", "c"], ["a", "b"])
        means = [each.mean for each in found.models]
    assert [mean and mean.value for mean in means] == [pytest.approx(0.3), pytest.approx(0.35)]
    assert all(mean is not None and mean.stderr is not None for mean in means)


def test_one_try_with_fewer_items_does_not_take_the_other_models_out_of_the_comparison(engine: Engine) -> None:
    for name in ("base", "better"):
        add_local(engine, name)
        score(engine, make_benchmark(engine, name, "a"), {"a": 0.5})
    score(engine, make_benchmark(engine, "better", "a", item_limit=10), {"a": 0.9})

    def compared() -> tuple[int | None, list[str]]:
        with reading(engine) as session:
            found = compare(session, [get_model(session, name) for name in ("base", "better")])
            assert found is not None
            return found.limit, [each.model.name for each in found.models]

    assert compared() == (None, ["base", "better"])
    score(engine, make_benchmark(engine, "base", "a", item_limit=10), {"a": 0.8})
    assert compared() == (10, ["base", "better"])  # of as many models the latest


def test_what_cannot_be_compared_any_more_is_scored_again_and_what_cannot_be_scored_is_left_out(
    engine: Engine, app: Flask
) -> None:
    home, names = app.config["SETTINGS"].home, ("old", "new", "failed", "waiting", "archived", "gone")
    for name in names:
        add_local(engine, name)
        if name != "gone":
            (home / "checkpoints" / name).mkdir(parents=True)
    score(engine, make_benchmark(engine, "old", "a,b"), {"a": 0.5, "b": 0.5}, version="1")
    score(engine, make_benchmark(engine, "new", "a,b"), {"a": 0.5, "b": 0.5}, version="2")
    score(engine, make_benchmark(engine, "failed", "a,b"), {"a": 0.5}, version="2", status="failed")
    make_benchmark(engine, "waiting", "a,b")
    with writing(engine) as session:
        get_model(session, "archived").archived_at = datetime.now(UTC)
        models = [get_model(session, name) for name in names]
        created = create_missing(session, models, BenchmarkSpec(model="each", tasks="a,b"), home=home)
        assert [session.get_one(LanguageModel, each.model_id).name for each in created] == ["old", "failed"]
        assert create_missing(session, models, BenchmarkSpec(model="each", tasks="b"), home=home) == []


# ---- Pages --------------------------------------------------------------------------


@on_sqlite
def test_a_benchmark_is_started_from_a_models_page_and_its_results_stand_there(
    engine: Engine, client: FlaskClient
) -> None:
    number = add_local(engine, "mine")
    (client.application.config["SETTINGS"].home / "checkpoints" / "mine").mkdir(parents=True)
    assert "There are none yet." in client.get("/admin/benchmarks").text
    assert "/admin/benchmarks/new?model=mine" in client.get(f"/admin/models/{number}").text
    form = client.get("/admin/benchmarks/new?model=mine").text
    assert '<option value="mine" selected>' in form
    assert 'value="everyday-reasoning"' in form
    answer = client.post("/admin/benchmarks/new", data={"model": "mine", "tasks": "a, b", "batch": "8"})
    assert (answer.status_code, answer.location) == (303, "/admin/benchmarks/1")
    row = row_of(engine, 1)
    assert (row.tasks, row.item_limit, row.queued, row.status) == (["a", "b"], None, True, states.WAITING)
    assert "0 of 2 tasks are done" in text_of(client.get("/admin/benchmarks/1"))
    score(engine, 1, {"a": 0.25, "b": 0.36})
    page = client.get("/admin/benchmarks/1").text
    assert "Geometric mean" in page
    assert "30.00" in page
    assert 'href="/admin/benchmarks/1"' in client.get(f"/admin/models/{number}").text
    assert "Benchmark 1" in client.get("/admin/benchmarks").text


@on_sqlite
def test_a_campaign_has_all_its_models_scored_once_and_draws_their_means(engine: Engine, client: FlaskClient) -> None:
    home = client.application.config["SETTINGS"].home
    numbers = [add_local(engine, "start")]
    campaign = campaign_of(engine, "start", "loop")
    numbers += [add_local(engine, name) for name in ("loop-1", "loop-2")]
    for name in ("start", "loop-1", "loop-2"):
        (home / "checkpoints" / name).mkdir(parents=True)
    for iteration, number in enumerate(numbers):
        change(engine, campaign, iteration, model_id=number)
    address = f"/admin/campaigns/{campaign}"
    assert "None of its models has been scored yet." in client.get(address).text
    assert client.get(f"{address}/benchmarks.json").status_code == 404
    refused = client.post(f"{address}/benchmarks", data={"tasks": "everyday-reasoning", "item_limit": "none"})
    assert refused.status_code == 400
    assert "Items of each task" in refused.text
    for _ in range(2):  # the second time there is nothing left to do
        answer = client.post(f"{address}/benchmarks", data={"tasks": "spag", "item_limit": "50"})
        assert (answer.status_code, answer.location) == (303, f"{address}#benchmarks")
    with reading(engine) as session:
        assert session.scalar(select(func.count()).select_from(BenchmarkJob)) == 3
    for number, value in ((1, 0.30), (2, 0.32), (3, 0.35)):
        score(engine, number, {"mmlu": value, "piqa": value})
    page = client.get(address).text
    assert "Reasoning benchmarks of campaign" in page
    assert "35.00" in page
    drawn = client.get(f"{address}/benchmarks.json").json
    assert drawn is not None
    values = drawn["data"]["values"]
    assert [(each["iteration"], each["model"], round(each["value"], 6)) for each in values] == [
        (0, "start", 30.0), (1, "loop-1", 32.0), (2, "loop-2", 35.0),
    ]  # fmt: skip
    assert all(each["low"] < each["value"] < each["high"] for each in values)


@on_sqlite
def test_metrics_that_are_no_shares_stand_as_plain_numbers_and_no_mean_goes_over_them(
    engine: Engine, client: FlaskClient, flask: Callable[..., Finished]
) -> None:
    number, benchmark = add_local(engine, "mine"), make_benchmark(engine, "mine", "a,b,wikitext")
    score(engine, benchmark, {"a": 0.25, "b": 0.36})
    score(engine, benchmark, {"wikitext": 21.375}, metric="word_perplexity")
    for path in (f"/admin/benchmarks/{benchmark}", f"/admin/models/{number}"):
        page = client.get(path).text
        assert "21.375" in page
        assert "2137.5" not in page.replace(",", "")
        assert "30.00" in page  # the mean of the other two
    printed = flask("benchmark", "compare", "mine").stdout
    assert re.search(r"^wikitext +21\.38 ± ", printed, re.MULTILINE)
    assert re.search(r"^geometric mean +30\.00 ± ", printed, re.MULTILINE)


@on_sqlite
def test_german_pages_give_intervals_from_to_and_say_what_a_benchmark_waits_for(make_app: Callable[..., Flask]) -> None:
    app = make_app(LANGUAGES="de")
    with app.app_context():
        model, campaign = add_local(db.engine, "start"), campaign_of(db.engine, "start", "loop")
        change(db.engine, campaign, 0, model_id=model)
        score(db.engine, make_benchmark(db.engine, "start", "a"), {"a": 0.3})
        waiting = make_benchmark(db.engine, "start", "b")
    client = signed_in(app)
    assert re.search(r"\d,\d\d bis \d", client.get(f"/admin/campaigns/{campaign}").text)
    page = client.get(f"/admin/benchmarks/{waiting}").text
    assert "Wartet darauf, mit " in page
    assert "Kampagne wartet" not in page
