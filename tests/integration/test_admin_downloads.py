"""Downloads that end too early, on a real web server: given up by the browser, or broken on our side."""

import http.client
import os
import re
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, insert, text, update

from app.core.extensions import writing
from app.matches import live
from app.matches.stored import StoredSeat
from app.models import EventRow
from app.registry import PERSON
from tests.stack import PATIENCE, ROOT, free_port, wait_until
from workers.prepare import new_admin_link

MOVES = 6000
LONG = "so many words " * 200  # far more in all than a connection holds on its way


class Web:
    """A web process on the test's database, and a browser that is signed in there."""

    def __init__(self, app: Flask, home: Path) -> None:
        self.log = home / "web.log"
        self.port = free_port()
        settings = app.config["SETTINGS"]
        env = {**os.environ, "PORT": str(self.port), "DATABASE_URL": settings.database_url}
        command = [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "wsgi:app"]
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=output)
        self.cookie = ""
        wait_until(self._answers, "an answer from the web process")
        self._sign_in(new_admin_link(app).rpartition("/")[2])

    def get(self, path: str) -> http.client.HTTPResponse:
        """The beginning of an answer; the rest is read from it."""
        return self._ask("GET", path)[1]

    def give_up(self, path: str) -> None:
        """Begin to download, and break the connection as a browser does that is closed."""
        connection, response = self._ask("GET", path)
        assert len(response.read(1000)) == 1000
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        response.close()
        connection.close()

    def _ask(self, method: str, path: str, **more: Any) -> tuple[Any, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request(method, path, headers={"Cookie": self.cookie, **more.pop("headers", {})}, **more)
        taken = connection.sock  # the connection lets go of it when the answer is the last one
        response = connection.getresponse()
        connection.sock = connection.sock or taken
        return connection, response

    def _answers(self) -> bool:
        try:
            return self.get("/healthz").status == 200
        except OSError:
            return False

    def _sign_in(self, token: str) -> None:
        page = self.get(f"/enter/{token}")
        self.cookie = str(page.getheader("Set-Cookie")).partition(";")[0]
        csrf = re.search(rb'name="csrf_token"[^>]* value="([^"]+)"', page.read())
        assert csrf
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        _, answer = self._ask("POST", f"/enter/{token}", body=b"csrf_token=" + csrf[1], headers=headers)
        assert answer.status == 303
        self.cookie = str(answer.getheader("Set-Cookie")).partition(";")[0]


@pytest.fixture
def web(app: Flask, engine: Engine, home: Path) -> Iterator[Web]:
    """A web process with a match of very many moves."""
    with writing(engine) as session:
        seats = StoredSeat(PERSON), StoredSeat(PERSON)
        record = live.create(session, "taboo", {"word": "cat"}, seats, seed=1, source="live", instant=False)
        body = {"v": 1, "kind": "message", "text": LONG, "data": {}}
        rows = [
            {"match_id": record.id, "seq": n, "kind": "message", "seat": n % 2, "ply": n, "at": record.log[0].at,
             "body": {**body, "seat": n % 2}}
            for n in range(1, MOVES + 1)
        ]  # fmt: skip
        session.execute(insert(EventRow), rows)
    running = Web(app, home)
    yield running
    running.process.terminate()
    running.process.wait(PATIENCE)


def nothing_is_left_open(engine: Engine) -> bool:
    """Whether no process holds a transaction on the database."""
    if engine.dialect.name == "sqlite":
        with writing(engine) as session:  # something that a reader from before does not see, and has to be kept for it
            session.execute(update(EventRow).where(EventRow.seq == 1).values(ply=1))
        with closing(engine.raw_connection()) as raw:
            return bool(raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)  # type: ignore[attr-defined]
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
    with engine.connect() as connection:
        return bool(connection.scalar(text(others)) == 0)


def test_a_download_that_is_given_up_leaves_a_line_in_the_log_and_nothing_else(web: Web, engine: Engine) -> None:
    for _ in range(3):
        web.give_up("/admin/export/moves.csv")
    wait_until(lambda: web.log.read_text().count("a download was given up") == 3, "three lines in the log")
    wait_until(lambda: nothing_is_left_open(engine), "no transaction that is left open")
    assert web.get("/admin/").status == 200
    assert len(web.log.read_text().splitlines()) == 3, web.log.read_text()


def test_a_download_that_breaks_on_our_side_is_no_whole_file(
    web: Web, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/admin/export/moves.csv"
    assert web.get(path).read().count(LONG.encode()) == MOVES
    with writing(engine) as session:
        session.execute(update(EventRow).where(EventRow.seq == MOVES - 100).values(body={"v": 1}))
    response = web.get(path)
    assert response.status == 200
    with pytest.raises(http.client.IncompleteRead):
        response.read()
    assert "KeyError: 'text'" in web.log.read_text()
    wait_until(lambda: nothing_is_left_open(engine), "no transaction that is left open")
    with writing(engine) as session:
        session.execute(update(EventRow).where(EventRow.seq == 1).values(body={"v": 1}))
    assert web.get(path).status == 500
