"""What is measured: Parlor as it really runs, and the baseline, each in a fresh folder on a free loopback port."""

import contextlib
import random
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from app.core.config import Settings
from app.core.extensions import writing
from app.factory import create_app
from app.matches.events import RESERVED
from app.matches.lobby import GuestMatchRequest, person_in, start_guest_match
from app.web import tickets
from bench.figures import Row
from bench.processes import Server, answers, free_port, only_child
from bench.talk import CONFIG, ROLE, first_config

READY = "Ctrl-C stops everything."  # the last line of the supervisor's greeting
_GUNICORN = ["-c", "gunicorn.conf.py", "wsgi:app"]
_IN_ONE_GO = 500  # matches in one transaction
_PARLOR_ROWS = f"""
    SELECT match_id, seq, kind NOT IN ({", ".join(f"'{kind}'" for kind in sorted(RESERVED))}), ply, move_id, rowid
    FROM event ORDER BY match_id, seq
"""  # noqa: S608 - nothing in it comes from outside
_BASELINE_ROWS = """
    SELECT "match", row_number() OVER (PARTITION BY "match" ORDER BY id) - 1, 1, ply, move_id, rowid
    FROM message ORDER BY "match", id
"""


@dataclass(frozen=True, slots=True)
class Contender:
    """A server that is ready, and the matches to be played on it: id and ticket."""

    name: str
    urls: tuple[str, ...]  # one per web process; a match is played in one of them, as behind a proxy that hashes its id
    pids: tuple[int, ...]  # of the processes that hold the WebSockets
    matches: list[tuple[str, str]]
    database: Path
    table: str
    rows: str  # the query for the whole log

    def rows_so_far(self) -> int:
        """How many rows of the log are committed; rows are numbered from 1 in the order they arrive."""
        return int(self._ask(f"SELECT coalesce(max(rowid), 0) FROM {self.table}")[0][0])  # noqa: S608 - a constant

    def log(self) -> list[tuple[int, Row]]:
        """Every row of the log with its number, ordered by match and seq."""
        found = self._ask(self.rows)
        return [(number, Row(match, seq, bool(is_move), ply, id_)) for match, seq, is_move, ply, id_, number in found]

    def _ask(self, query: str) -> list[Any]:
        with contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=30)) as connection:
            return connection.execute(query).fetchall()


@contextlib.contextmanager
def parlor(
    home: Path, game: str, clients: int, matches: int, webs: int, *, limits: bool = False
) -> Iterator[Contender]:
    """The whole of Parlor under its supervisor, with scripted partners that answer at once and no limits on anyone.

    `webs` beyond the first are further web processes on the same database. `limits` applies the default limits on what
    a connection may send.
    """
    home.mkdir()
    ports = [free_port() for _ in range(webs)]
    env = {
        "PARLOR_HOME": str(home),
        "HOST": "127.0.0.1",
        "PORT": str(ports[0]),
        "READING_WORDS_PER_MINUTE": "0",
        "GUEST_CONFIG": "true",
        "MOVES_PER_SECOND": str(Settings.model_fields["MOVES_PER_SECOND"].default) if limits else "0",
        "CONNECTIONS_PER_ADDRESS": "0",
        "GUEST_MATCHES_PER_MINUTE": "0",
        "GUEST_PLAY": "true",
    } | dict.fromkeys(("DATABASE_URL", "REDIS_URL", "PUBLIC_URL", "SECRET_KEY", "CONTEXTS_FILE"), "")
    with contextlib.ExitStack() as servers:
        server = servers.enter_context(Server("Parlor", "workers.supervisor", [], env, home / "supervisor.out"))
        server.wait_until(lambda: READY in server.output())
        parents = [int((home / "run" / "web.pid").read_text(encoding="utf-8"))]
        for port in ports[1:]:
            log, more = home / f"web-{port}.out", env | {"PORT": str(port)}
            web = servers.enter_context(Server("Parlor’s next web process", "gunicorn", _GUNICORN, more, log))
            web.wait_until(partial(answers, f"http://127.0.0.1:{port}/healthz"))
            parents.append(web.process.pid)
        made = _make_matches(env, game, clients, matches)
        urls = tuple(f"http://127.0.0.1:{port}" for port in ports)
        pids = tuple(map(only_child, parents))
        yield Contender("Parlor", urls, pids, made, home / "parlor.db", "event", _PARLOR_ROWS)


def _make_matches(env: dict[str, str], game: str, clients: int, count: int) -> list[tuple[str, str]]:
    """Start matches as the lobby does, without its pages. Each client's first match is shorter."""
    app = create_app(env)
    settings: Settings = app.config["SETTINGS"]
    rng = random.Random(game)
    made = []
    with app.app_context():
        for begin in range(0, count, _IN_ONE_GO):
            with writing() as session:
                for number in range(begin, min(begin + _IN_ONE_GO, count)):
                    config = first_config(game, rng) if number < clients else CONFIG[game]
                    record = start_guest_match(session, settings, GuestMatchRequest(game, config, role=ROLE[game]))
                    made.append((record.id, tickets.issue(settings, record.id, person_in(record))))
    return made


@contextlib.contextmanager
def reference(name: str, home: Path, turns: int, clients: int, matches: int) -> Iterator[Contender]:
    """`bench.NAME`: the baseline or the bare stack. Matches have `turns` client moves, those played first have
    fewer.
    """
    home.mkdir()
    port, database = free_port(), home / f"{name}.db"
    rng = random.Random(turns)
    made = [(f"match-{number}", str(rng.randint(1, turns) if number < clients else turns)) for number in range(matches)]
    arguments = ["--port", str(port), "--database", str(database)]
    with Server(f"bench.{name}", f"bench.{name}", arguments, {}, home / f"{name}.out") as server:
        url = f"http://127.0.0.1:{port}"
        server.wait_until(lambda: answers(f"{url}/healthz"))
        yield Contender(name, (url,), (server.process.pid,), made, database, "message", _BASELINE_ROWS)
