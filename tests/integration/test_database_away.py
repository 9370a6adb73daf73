"""The database does not answer: pages and programs are told so, the log says it in a line, and it passes by itself."""

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy.engine import make_url

from app.core.extensions import db
from tests.forwarder import Forwarder
from tests.participant import Participant, Refused, request
from tests.stack import PATIENCE, TURNS_ALONE, Stack, free_port, wait_until
from tests.tables import taboo


@pytest.fixture
def forwarder(service_database: str) -> Iterator[tuple[Forwarder, str]]:
    """The way to a PostgreSQL database, and the URL that takes it."""
    url = make_url(service_database)
    way = Forwarder(free_port(), url.host or "127.0.0.1", url.port or 5432)
    yield way, url.set(host="127.0.0.1", port=way.port).render_as_string(hide_password=False)
    way.close()


def status(url: str) -> tuple[int, str, str | None]:
    """Status, body and Retry-After of an address."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310 - our own address
            return answer.status, answer.read().decode(), answer.headers["Retry-After"]
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers["Retry-After"]


def test_postgresql_goes_and_comes_back(stack: Callable[..., Stack], forwarder: tuple[Forwarder, str]) -> None:
    way, url = forwarder
    parlor = stack({"DATABASE_URL": url, "GUEST_MATCHES_PER_MINUTE": "0", **TURNS_ALONE})
    log = parlor.home / "logs" / "web.log"
    table, other = taboo(parlor, "attacker"), taboo(parlor, "attacker")
    with Participant(table) as person, ThreadPoolExecutor(1) as pool:
        way.close()
        before = len(log.read_bytes())
        for _ in range(3):
            code, page, again = status(parlor.url + "/")
            assert (code, again) == (503, "2")
            assert "The database does not answer." in page
        said = log.read_bytes()[before:].decode().splitlines()
        background = ("the rooms were not brought up to date", "the database took no heartbeat")
        assert sum(not any(each in line for each in background) for line in said) <= 3  # one for each page
        assert status(parlor.url + "/healthz")[0] == 503
        refused, body = request(parlor.url, {"game": "taboo"})
        assert (refused, body["error"]["code"]) == (503, "unavailable")
        with pytest.raises(Refused) as turned_away:
            Participant(other).connect()
        assert turned_away.value.error["data"]["code"] == "unavailable"
        assert person.ask("sync")["error"]["code"] == "unavailable"
        move = pool.submit(person.ask, "move", {"move_id": "one", "ply": 0, "text": "It is sour."}, 90)
        wait_until(lambda: "moves wait" in log.read_text(), "a move that waits")
        way.listen()
        assert move.result() == {"ok": True, "ply": 1}
        wait_until(lambda: status(parlor.url + "/healthz")[0] == 200, "that all is well again")
        assert request(parlor.url, {"game": "taboo"})[0] == 201
        with Participant(other) as late:
            assert late.view["ply"] == 0
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_an_sqlite_file_that_cannot_be_opened_is_answered_with_503(app: Flask, home: Path) -> None:
    client = app.test_client()
    (home / "away").mkdir()
    db.engine.dispose()
    for path in home.glob("parlor.db*"):
        path.rename(home / "away" / path.name)
    (home / "parlor.db").mkdir()  # what even root cannot open as a file
    for path in ("/", "/healthz"):
        answer = client.get(path)
        assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "2")
    answer = client.post("/api/matches", json={"game": "taboo"})
    assert (answer.status_code, answer.json["error"]["code"]) == (503, "unavailable")  # type: ignore[index]
    (home / "parlor.db").rmdir()
    for path in (home / "away").iterdir():
        path.rename(home / path.name)
    assert client.get("/").status_code == 200
    assert client.post("/api/matches", json={"game": "taboo"}).status_code == 201
