"""Engines of local models: watched, started again, stopped, chosen on the page and by commands."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import Result
from flask import Flask
from sqlalchemy import Engine

from app.core.errors import Conflict
from app.core.extensions import reading, writing
from app.players.local.serving import AWAY, READY, STOPPED
from app.registry import player_spec, serving
from tests.experimenter import signed_in
from tests.served_models import (
    WATCHER,
    add_local,
    begin,
    engine_pid,
    environment,
    row_named,
    running,
    served_model,
    served_of,
    watcher,
)
from tests.stack import PATIENCE, alive, free_port, wait_until
from tests.stub_openai import Reply, StubServer
from workers.model_server import EngineFailed, ModelServer, Timing

pytestmark = [pytest.mark.usefixtures("vendor_environment"), pytest.mark.parametrize("database_url", [""])]

Run = Callable[..., Result]


@pytest.fixture
def run(app: Flask) -> Run:
    return lambda *arguments: app.test_cli_runner().invoke(args=arguments)


def stub_engine(port: int) -> list[str]:
    """An engine that costs next to nothing."""
    return [sys.executable, "-m", "bench.stub", "--latency", "0", "--port", str(port)]


def prepared(engine: Engine, port: int) -> int:
    """A model that a command is about to serve; its number."""
    number = add_local(engine)
    begin(engine, "mine", served_model(f"http://127.0.0.1:{port}/v1"), ready=False)
    return number


def is_in(engine: Engine, state: str, restarts: int = 0) -> bool:
    served = served_of(engine)
    return served is not None and (served.state, served.restarts) == (state, restarts)


def watch(app: Flask, engine: Engine, number: int, *command: str, start: float = PATIENCE) -> None:
    """Watch an engine here, until that fails."""
    with reading(engine) as session:
        row = row_named(session, "mine")
        session.expunge_all()
    assert row.id == number

    async def serve() -> None:
        await ModelServer(engine, app.config["SETTINGS"], row, Timing(0.1, 5, start), command).run()

    asyncio.run(serve())


# ---- Watched ---------------------------------------------------------------------------


def test_an_engine_that_dies_or_hangs_is_started_again_and_ends_with_its_command(
    app: Flask, engine: Engine, home: Path, tmp_path: Path
) -> None:
    port = free_port()
    number = prepared(engine, port)
    command = watcher(number, *stub_engine(port), deadline=2)
    with running(command, environment(app), tmp_path / "log") as process:
        wait_until(lambda: is_in(engine, READY), "an engine that answers")
        first = engine_pid(home, number)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: is_in(engine, READY, restarts=1), "one that was started again")
        second = engine_pid(home, number, but=first)
        os.kill(second, signal.SIGSTOP)
        wait_until(lambda: is_in(engine, READY, restarts=2), "one in place of what hung")
        third = engine_pid(home, number, but=second)
        assert not alive(second)
        process.terminate()
        assert process.wait(PATIENCE) == 0
    assert not alive(third)
    served = served_of(engine)
    assert served is not None
    assert (served.state, served.restarts) == (STOPPED, 2)
    assert served.error is not None
    assert "expected an answer within 2 s, got none" in served.error
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines.count(f"mine is served by llama.cpp at http://127.0.0.1:{port}/v1") == 3
    assert sum("it starts again in" in line for line in lines) == 2


def test_a_killed_command_leaves_no_engine_and_a_row_that_says_so(
    app: Flask, engine: Engine, home: Path, run: Run, tmp_path: Path
) -> None:
    port = free_port()
    number = prepared(engine, port)
    with running(watcher(number, *stub_engine(port)), environment(app), tmp_path / "log") as process:
        wait_until(lambda: is_in(engine, READY), "an engine that answers")
        pid = engine_pid(home, number)
        process.kill()
        wait_until(lambda: not alive(pid), "the end of the engine")
    served = served_of(engine)
    assert served is not None
    assert served.state == READY
    assert served.is_watched(datetime.now(UTC))
    assert not served.is_watched(datetime.now(UTC) + timedelta(minutes=2))


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (
            "raise RuntimeError('CUDA out of memory, 2 GiB')",
            "mine: expected memory for llama.cpp, got",
        ),
        ("import os; os.kill(os.getpid(), 9)", "mine: expected memory for llama.cpp, got none (was killed by SIGKILL"),
        ("raise SystemExit('no such option: --nope')", "mine: expected llama.cpp to serve it, got one that ended with"),
    ],
    ids=["no memory", "killed by the system", "refuses its arguments"],
)
def test_an_engine_that_does_not_come_up_is_given_up_at_once(app: Flask, engine: Engine, code: str, line: str) -> None:
    number = prepared(engine, free_port())
    with pytest.raises(EngineFailed) as failed:
        watch(app, engine, number, sys.executable, "-c", code)
    assert failed.value.message.startswith(line)
    assert "\n" not in failed.value.message
    assert served_of(engine) is None, "nothing is registered that cannot play"


def test_an_engine_that_is_never_ready_is_given_up(app: Flask, engine: Engine) -> None:
    number = prepared(engine, free_port())
    with pytest.raises(EngineFailed, match=r"has not answered 0\.5 s after its start"):
        watch(app, engine, number, sys.executable, "-c", "import time; time.sleep(600)", start=0.5)
    assert served_of(engine) is None


@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_server_that_does_not_answer_for_the_model_is_not_registered(
    app: Flask, engine: Engine, stub: StubServer, status: int
) -> None:
    stub.script("m", Reply("Server is pinned to another.", status=status))
    number = prepared(engine, stub.port)
    with pytest.raises(EngineFailed, match=f"expected a server that answers for it, got this: .*HTTP {status}"):
        watch(app, engine, number)
    assert served_of(engine) is None


def test_a_server_elsewhere_is_watched_and_not_started(
    app: Flask, engine: Engine, stub: StubServer, tmp_path: Path
) -> None:
    stub.script("m", "hello")
    number = prepared(engine, stub.port)
    with running(watcher(number), environment(app), tmp_path / "log") as process:
        wait_until(lambda: is_in(engine, READY), "a server that answers")
        stub.script("m", Reply("busy", status=503))
        wait_until(lambda: is_in(engine, AWAY), "one that does not")
        stub.script("m", "hello")
        wait_until(lambda: is_in(engine, READY), "one that does again")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    assert is_in(engine, STOPPED)
    assert all(request.body["max_tokens"] == 1 for request in stub.requests)


# ---- The row -------------------------------------------------------------------------------


def test_a_model_is_served_by_one_command_at_a_time(engine: Engine) -> None:
    add_local(engine)
    begin(engine, "mine", served_model("http://127.0.0.1:1/v1"), ready=False)
    with pytest.raises(Conflict, match="expected one that is not served yet, got 'mine', which is at http://127"):
        begin(engine, "mine", served_model("http://127.0.0.1:2/v1", watcher="another"))
    past = datetime.now(UTC) - timedelta(seconds=1)
    with writing(engine) as session:
        number = row_named(session, "mine").id
        row_named(session, "mine").served = served_model("http://127.0.0.1:1/v1", watched_until=past).model_dump(
            mode="json"
        )
    begin(engine, "mine", served_model("http://127.0.0.1:2/v1", watcher="another"))
    with writing(engine) as session:
        assert not serving.update(session, number, WATCHER, state=READY), "the first has lost it"
    served = served_of(engine)
    assert served is not None
    assert (served.base_url, served.watcher) == ("http://127.0.0.1:2/v1", "another")


def test_whoever_computes_the_answers_is_switched_by_a_command(engine: Engine, run: Run) -> None:
    add_local(engine)
    refused = run("model", "edit", "mine", "--play-with", "server")
    assert refused.exit_code == 2
    assert refused.stderr == (
        "Error: play_with: expected a model that was served, got 'mine', which never was;"
        " `flask model serve mine` serves it\n"
    )
    other = run("model", "edit", "scripted", "--play-with", "server")
    assert other.stderr == "Error: play_with: expected it for a local model only, got 'scripted', which is scripted\n"
    begin(engine, "mine", served_model("http://127.0.0.1:1/v1"))
    with reading(engine) as session:
        assert player_spec(row_named(session, "mine")).served is not None
    assert run("model", "edit", "mine", "--play-with", "worker").exit_code == 0
    with reading(engine) as session:
        assert player_spec(row_named(session, "mine")).served is None
    assert run("model", "edit", "mine", "--play-with", "server").exit_code == 0
    with reading(engine) as session:
        assert player_spec(row_named(session, "mine")).served is not None


def test_commands_say_how_the_engine_does(engine: Engine, run: Run) -> None:
    add_local(engine)
    begin(engine, "mine", served_model("http://127.0.0.1:1/v1"))
    assert re.search(r"^server +llama.cpp at http://127.0.0.1:1/v1 answers$", run("model", "show", "mine").stdout, re.M)
    assert re.search(r"mine .*llama.cpp answers, and plays", run("model", "list").stdout)
    long_ago = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    with writing(engine) as session:
        gone = served_model("http://127.0.0.1:1/v1", watched_until=long_ago, seen_at=long_ago)
        row_named(session, "mine").served = gone.model_dump(mode="json")
    said = "has not been seen since 2026-01-02 03:04:05 UTC"
    assert re.search(rf"^server +llama.cpp at http://127.0.0.1:1/v1 {said}$", run("model", "show", "mine").stdout, re.M)
    doctor = run("doctor").stdout
    assert (
        f"warn  server of mine: llama.cpp at http://127.0.0.1:1/v1 {said}, and plays → flask model serve mine, or flask"
        " model edit mine --play-with worker" in doctor
    )


def test_the_page_shows_the_engine_and_has_it_play(app: Flask, engine: Engine) -> None:
    number = add_local(engine)
    client, page = signed_in(app), f"/admin/models/{number}"
    assert "flask model serve mine" in client.get(page).get_data(as_text=True)
    assert client.post(page, data={"action": "play-with-server"}).status_code == 409
    begin(engine, "mine", served_model("http://127.0.0.1:1/v1"))
    told = client.get(page).get_data(as_text=True)
    assert "http://127.0.0.1:1/v1" in told
    assert "The server computes its answers." in told
    assert client.post(page, data={"action": "play-with-worker"}).status_code == 303
    assert "Workers compute its answers." in client.get(page).get_data(as_text=True)
    assert client.post(page, data={"action": "play-with-server"}).status_code == 303
    with reading(engine) as session:
        assert row_named(session, "mine").play_with == "server"
