"""A job followed by server-sent events: what is told, when it ends, where it goes on; also on a whole Parlor."""

import json
import threading
import urllib.request
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from flask import Flask
from sqlalchemy import Engine, update

from app.accounts import tokens
from app.api import events
from app.core.extensions import writing
from app.jobs import states
from app.models import RoundRow
from tests.programs import Program, refusal
from tests.rounds import make_round, play
from tests.shell import Shell
from tests.stack import PATIENCE, running_parlor


class Event(NamedTuple):
    """An event of a stream."""

    id: str
    name: str
    data: dict[str, Any]


def events_of(lines: Iterable[bytes]) -> Iterator[Event]:
    """The events of a stream, without what else it has."""
    fields: dict[str, str] = {}
    for line in (piece.decode().rstrip("\n") for piece in lines):
        if not line and "data" in fields:
            yield Event(fields["id"], fields["event"], json.loads(fields["data"]))
        if not line:
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value


@pytest.fixture
def program(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setattr(events, "EVERY", 0.02)
    return Program(app, "read", "run")


def follow(program: Program, path: str, last: str | None = None) -> list[Event]:
    answer = program.ask("GET", path, **({} if last is None else {"last": last}))
    assert answer.status_code == 200, answer.text
    assert answer.mimetype == "text/event-stream"
    return [*events_of(answer.data.splitlines(keepends=True))]


def test_a_job_is_followed_until_it_is_over(app: Flask, engine: Engine, program: Program) -> None:
    number = make_round(engine, "scripted", matches=40)
    with writing() as session:
        session.execute(update(RoundRow).values(queued=True))  # which no terminal is expected to go on with
    player = threading.Thread(target=play, args=(engine, app.config["SETTINGS"], number))
    player.start()
    found = follow(program, f"/rounds/{number}/events")
    player.join()
    assert [found[0].name, found[-1].name] == ["status", "status"]
    assert (found[0].data["of"], found[-1].data["status"], found[-1].data["done"]) == (40, "done", 40)
    assert "at" not in found[0].data  # which is for pages
    assert [each.data["done"] for each in found] == sorted(each.data["done"] for each in found)
    known = [each.data["status"] for each in found if each.name == "status"]
    assert known == list(dict.fromkeys(known))
    assert len({each.id for each in found}) == len(found)


def test_a_job_that_is_over_is_told_once(engine: Engine, program: Program) -> None:
    number = make_round(engine, "scripted", matches=2)
    program.post(f"/rounds/{number}/cancel")
    [only] = follow(program, f"/rounds/{number}/events")
    assert only.data["status"] == "cancelled"
    answer = program.ask("GET", f"/rounds/{number}/events", last=only.id)
    assert (answer.status_code, answer.data) == (204, b"")
    assert follow(program, f"/rounds/{number}/events", last="something old") == [only]


def test_who_comes_back_is_told_only_what_is_new(
    engine: Engine, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "LONGEST", 0.2)
    number = make_round(engine, "scripted", matches=10)
    [first] = follow(program, f"/rounds/{number}/events")
    assert follow(program, f"/rounds/{number}/events", last=first.id) == []
    with writing() as session:
        session.execute(update(RoundRow).values(finished=3))
    [second] = follow(program, f"/rounds/{number}/events", last=first.id)
    assert second.data["done"] == 3


def test_a_quiet_job_sends_heartbeats(engine: Engine, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LONGEST", 0.5)
    monkeypatch.setattr(events, "HEARTBEAT", 0.1)
    number = make_round(engine, "scripted", matches=10)
    text = program.ask("GET", f"/rounds/{number}/events").text
    assert text.startswith("retry: 2000\n\nid: ")
    assert text.count(": nothing new\n\n") >= 2


def test_a_token_that_is_revoked_is_told_nothing_more(engine: Engine, program: Program) -> None:
    number = make_round(engine, "scripted", matches=10)
    done = threading.Event()
    found: list[Event] = []

    def read() -> None:
        found.extend(follow(program, f"/rounds/{number}/events"))
        done.set()

    thread = threading.Thread(target=read)
    thread.start()
    assert not done.wait(0.3)
    with writing() as session:
        tokens.revoke(session, program.token_id, datetime.now(UTC))
    assert done.wait(PATIENCE)
    thread.join()
    assert [each.data["status"] for each in found] == ["waiting"]


def test_a_program_may_follow_so_many_jobs_at_once(
    engine: Engine, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MOST", 1)
    number = make_round(engine, "scripted", matches=10)
    answers = list[str]()
    thread = threading.Thread(target=lambda: answers.append(program.ask("GET", f"/rounds/{number}/events").text))
    thread.start()
    while not events._open[program.token_id]:
        assert thread.is_alive()
    assert refusal(program.ask("GET", f"/rounds/{number}/events"))["code"] == "too_many"
    program.post(f"/rounds/{number}/cancel")
    thread.join()
    assert "cancelled" in answers[0]
    assert program.ask("GET", f"/rounds/{number}/events").status_code == 200


def leave(engine: Engine, number: int) -> None:
    """Have a round look as if it was played in a terminal that is gone."""
    with writing(engine) as session:
        session.execute(update(RoundRow).where(RoundRow.id == number).values(status=states.RUNNING, queued=False))


def test_a_job_that_nobody_will_go_on_with_ends_its_stream_and_says_so(
    engine: Engine, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "ALONE", 0.1)
    monkeypatch.setattr(events, "LONGEST", PATIENCE)
    number = make_round(engine, "scripted", matches=10)
    left = threading.Timer(0.2, leave, [engine, number])
    left.start()
    found = follow(program, f"/rounds/{number}/events")
    left.join()
    assert [(each.name, each.data["status"]) for each in found] == [("status", "waiting"), ("status", "interrupted")]
    assert follow(program, f"/rounds/{number}/events") == found[-1:]
    answer = program.ask("GET", f"/rounds/{number}/events", last=found[-1].id)
    assert (answer.status_code, answer.data) == (204, b"")
    assert program.post(f"/rounds/{number}/resume").status_code == 200
    program.post(f"/rounds/{number}/cancel")
    [after] = follow(program, f"/rounds/{number}/events", last=found[-1].id)
    assert after.data["status"] == "cancelled"


def test_a_job_that_is_left_for_a_moment_is_not_called_interrupted(
    engine: Engine, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "LONGEST", 1.0)
    number = make_round(engine, "scripted", matches=10)
    leave(engine, number)
    assert follow(program, f"/rounds/{number}/events") == []
    monkeypatch.setattr(events, "LONGEST", PATIENCE)
    back = threading.Timer(0.2, program.post, [f"/rounds/{number}/cancel"])
    back.start()
    [only] = follow(program, f"/rounds/{number}/events")
    back.join()
    assert only.data["status"] == "cancelled"


@pytest.mark.parametrize("path", ["/rounds/99/events", f"/campaigns/{10**20}/events"])
def test_a_job_that_is_not_there_cannot_be_followed(program: Program, path: str) -> None:
    assert program.ask("GET", path).status_code == 404


def test_a_whole_parlor_sends_events_as_they_happen(shell: Shell) -> None:
    with running_parlor(WORKER_QUEUES="batch") as parlor:
        line = ("token", "create", "follower", "--scope", "read", "--scope", "run", "--json")
        token = json.loads(shell.flask(line, env=parlor.env).stdout)["token"]

        def ask(path: str, body: Any = None) -> Any:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            data = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(parlor.url + path, data, headers)  # noqa: S310 - our own address
            return urllib.request.urlopen(request, timeout=PATIENCE)  # noqa: S310

        with ask("/api/v1/rounds", {"game": "taboo", "models": ["scripted"], "matches": 200, "seed": 1}) as answer:
            url = json.load(answer)["url"]
        with ask(f"{url}/events") as stream:
            told = [*events_of(stream)]
    assert (told[-1].data["status"], told[-1].data["done"]) == ("done", 200)
    assert told[0].data["status"] != "done"
