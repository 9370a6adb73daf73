"""What each page of experimenters costs among 10,000, 100,000 and 1,000,000 finished matches, in seconds of CPU.

    python -m bench.page_costs                    on SQLite, in a new folder
    DATABASE_URL=postgresql://… python -m bench.page_costs     in new databases beside that one, dropped afterwards
    python -m bench.page_costs --sizes 10000,100000 --only analysis --json

Of each ten thousand matches half are of a round whose seats stay (the first such round grows to 100,000 matches), an
eighth of one that swaps seats, an eighth of fifty small rounds, so that lists of rounds are full among the fewest
matches, too, and a quarter were played by people, in mixed order. All were played within the same hundred days.

Each number of matches has a database of its own, and a page is looked at in turns among all of them, as a machine's
speed drifts: of each the best look counts, of seven at a cheap page and fewer at others. Each look is as if nobody had
looked before. With PostgreSQL the seconds of its processes are added, if they run on this machine, and who names the
server must be its superuser. Threads keep their connections here, as a process takes its seconds with it when it ends;
those of parallel workers are lost. The ratio is that of the largest size to the smallest. It ends with exit code 1 if a
page costs more than a third more among the most matches.
"""

import argparse
import asyncio
import gzip
import hashlib
import json
import math
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import URL, Connection, Engine, Table, insert, select, text

from app.core.extensions import db, open_engine, writing
from app.factory import create_app
from app.games import GAMES
from app.jobs.context import JobContext
from app.matches import counts
from app.models import EventRow, GenerationRow, LanguageModel, MatchRow, RoundRow, SeatRow
from app.registry import add_scripted_model
from app.rounds import lifecycle
from app.rounds.lifecycle import Material
from app.rounds.runner import play_round
from app.rounds.spec import RoundSpec
from app.schema import upgrade
from app.spend import call_sums
from app.web import threads
from app.web.admin import leaderboard, rounds_analysis, rounds_scores
from bench.processes import yardstick_ms
from tests.experimenter import signed_in
from tests.services import new_database

BASE = 10_000  # matches that are made; further ones are copies
SIZES = (10_000, 100_000, 1_000_000)
MOST_GROWTH = 4 / 3
NOTHING = 0.02  # seconds; less growth is noise
_STAYING, _SWAPPED, _SMALL = 5_000, 1_250, 25  # matches in a round
_SIZES = {1: _STAYING, 2: _SWAPPED, **dict.fromkeys(range(3, 53), _SMALL)}  # by round number
_MOMENTS = {"match": ("started_at", "moved_at", "ended_at"), "generation": ("at",)}  # timestamp columns by table
_LARGEST = 20  # so many copies belong to the first round
_DAYS = 100
_TURNS = {7: 0.1, 5: math.inf}  # requests for a page at each size, for pages below so many seconds
_PAGES = (
    "/admin/", "/admin/matches", "/admin/matches?player={model}", "/admin/matches?game=negotiation&reason=deal",
    "/admin/matches?source=live", "/admin/matches?source=rehearsal", "/admin/matches?since={day}",
    "/admin/matches?sort=-moves", "/admin/matches?role=attacker", "/admin/matches/{match}",
    "/admin/matches/analysis", "/admin/matches/analysis?source=selfplay", "/admin/matches/analysis?player={model}",
    "/admin/matches/analysis?since={day}", "/admin/matches/analysis?round=1", "/admin/matches/analysis.csv",
    "/admin/matches/transcripts?player={model}&read={match}", "/admin/matches/transcripts?since={day}&read={match}",
    "/admin/matches/transcripts?reason=aborted&read={match}",
    "/admin/matches/transcripts?sort=-joint_score&read={match}",
    "/admin/matches/transcripts?sort=lower_score&read={match}",
    "/admin/matches?sort=scores", "/admin/models/side-by-side?models={model}&base={model}",
    "/admin/rounds", "/admin/rounds/1", "/admin/rounds/2", "/admin/rounds/1/latest", "/admin/rounds/1?tab=charts",
    "/admin/rounds/1?tab=transcripts",
    "/admin/models/1", "/admin/models/1/lineage",
)  # fmt: skip


class PageCost(NamedTuple):
    """CPU seconds of this process and of the database's, and bytes of the page, uncompressed and compressed."""

    own: float
    database: float
    size: int
    compressed: int

    @property
    def seconds(self) -> float:
        """The total CPU seconds."""
        return self.own + self.database


# ---- Matches -----------------------------------------------------------------------


def fill(connection: Connection) -> None:
    """Make the first ten thousand matches: of round 1 (fixed seats), round 2 (swapped seats), small rounds, and
    people.
    """
    first, second = connection.scalars(select(LanguageModel.id).order_by(LanguageModel.id).limit(2)).all()
    now, draw = datetime.now(UTC).replace(microsecond=0), random.Random(7)
    drawn = {"counts": [1, 2, 3], "values": [[1, 3, 1], [4, 0, 2]], "first": 0}
    config = {**GAMES["negotiation"].config({}).to_json(), **drawn}
    rounds = [
        {
            "name": f"Round {number}", "game": "negotiation", "source": "selfplay", "config": config,
            "model_0_id": first, "model_1_id": second, "matches": matches, "finished": matches, "seed": number,
            "swap_seats": number == 2, "pick": "random", "sampling": {}, "status": "done", "created_at": now,
            "ended_at": now,
        }
        for number, matches in _SIZES.items()
    ]  # fmt: skip
    connection.execute(insert(RoundRow), rounds)
    matches, seats, generations = [], [], []
    places: list[tuple[int | None, int | None]] = [
        (number, index) for number, size in _SIZES.items() for index in range(size)
    ]
    places += [(None, None)] * (BASE - len(places))
    draw.shuffle(places)  # so that each day has matches of all rounds and of people, even if there are few matches
    for place, (number, index) in enumerate(places):
        swapped = number == 2 and index is not None and index % 2 == 1
        players = (None, first) if number is None else (second, first) if swapped else (first, second)
        agreed, began = draw.random() < 0.7, now - timedelta(seconds=draw.randrange(_DAYS * 86_400))
        ply = draw.randrange(2, 20)
        own = draw.randrange(11) if agreed else 0
        match_id = _identifier(str(place))
        matches.append({
            "id": match_id, "game": "negotiation", "source": "live" if number is None else "selfplay",
            "round_id": number, "index": index, "status": "over", "seed": place, "config": config, "ply": ply,
            "reason": "deal" if agreed else draw.choice(("aborted", "no deal")), "utility_0": float(own),
            "utility_1": float(min(10, draw.randrange(11 - own, 15 - own))) if agreed else 0.0, "agreed": agreed,
            "pareto_optimal": agreed and draw.random() < 0.5, "words": ply * draw.randrange(5, 30),
            "first_proposal": draw.randrange(ply), "unspoken": draw.random() < 0.2 if agreed else None,
            "tokens": None if number is None else ply * draw.randrange(8, 50), "moves": ply,
            "violations": (refused := int(draw.random() < 0.1)), "refused": refused,
            "started_at": began, "moved_at": began, "ended_at": began,
        })  # fmt: skip
        seats += [
            {
                "match_id": match_id, "seat": seat, "role": "first" if seat == 0 else "second",
                "kind": "person" if player is None else "model", "language_model_id": player,
            }
            for seat, player in enumerate(players)
        ]  # fmt: skip
        generations.append({
            "match_id": match_id, "seat": 1, "ply": 0, "attempt": 0, "language_model_id": players[1], "model": "m",
            "prompt": [], "text": "Hello.", "sampling": {}, "latency": 0.1, "retries": 0, "at": began,
        })  # fmt: skip
    for row, rows in ((MatchRow, matches), (SeatRow, seats), (GenerationRow, generations)):
        connection.execute(insert(row), rows)


def play_some(app: Flask) -> None:
    """Play a round, whose matches have logs."""
    spec = RoundSpec.read({"game": "negotiation", "models": ["scripted"], "matches": 10, "seed": 7})
    with writing() as session:
        number = lifecycle.create(
            session, spec, Material("a benchmark", [[[1, 2, 2], [10, 0, 0], [0, 3, 2]]]), queued=False
        ).id
    asyncio.run(play_round(JobContext(db.engine, app.config["SETTINGS"], "bench", threading.Event()), number))


def grow(connection: Connection, present: int, wanted: int) -> None:
    """Copy the first matches within the database until there are `wanted`, as if the last had just ended."""
    for copy in range(present // BASE, wanted // BASE):
        numbers = {}
        for number, size in _SIZES.items():
            if number == 1 and copy < _LARGEST:
                numbers[number] = 1
                connection.execute(
                    text("UPDATE round SET matches = :size, finished = :size WHERE id = 1"),
                    {"size": (copy + 1) * _STAYING},
                )
                continue
            columns = _columns(_table(RoundRow), "id", "matches", "finished")
            statement = f"""INSERT INTO round ({columns}, matches, finished) SELECT {columns}, :size, :size FROM round
                            WHERE id = :id RETURNING id"""  # noqa: S608
            numbers[number] = connection.execute(text(statement), {"id": number, "size": size}).scalar_one()
        renumbered = " ".join(f"WHEN {number} THEN {new}" for number, new in numbers.items())
        ids = _md5(connection)
        at = _moment(connection, f"({copy * BASE} + place) / CAST({wanted} AS float)")
        columns = _columns(_table(MatchRow), "id", "round_id", "index", "start_key", *_MOMENTS["match"])
        moments = ", ".join(_MOMENTS["match"])
        shift = copy * _STAYING if numbers[1] == 1 else 0
        connection.execute(
            text(f"""INSERT INTO match ({columns}, {moments}, id, round_id, "index")
                     SELECT {columns}, {", ".join([at] * len(_MOMENTS["match"]))}, {ids.format("id")},
                            CASE round_id {renumbered} END,
                            "index" + CASE round_id WHEN 1 THEN {shift} ELSE 0 END
                     FROM bench_match"""),  # noqa: S608
            {"copy": f":{copy}"},
        )
        columns = _columns(_table(SeatRow), "match_id")
        connection.execute(
            text(f"""INSERT INTO seat ({columns}, match_id) SELECT {columns}, {ids.format("match_id")}
                     FROM bench_seat"""),  # noqa: S608
            {"copy": f":{copy}"},
        )
        columns = _columns(_table(GenerationRow), "id", "match_id", "at")
        connection.execute(
            text(f"""INSERT INTO generation ({columns}, at, match_id) SELECT {columns}, {at}, {ids.format("match_id")}
                     FROM bench_generation"""),  # noqa: S608
            {"copy": f":{copy}"},
        )


def _table(row: Any) -> Table:
    table: Table = row.__table__
    return table


def _columns(table: Table, *left_out: str) -> str:
    return ", ".join(f'"{column.name}"' for column in table.columns if column.name not in left_out)


def _identifier(name: str) -> str:
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:22]


def _md5(connection: Connection) -> str:
    """The SQL for a copy's id: evenly spread, like real match ids."""
    if isinstance(driver := connection.connection.driver_connection, sqlite3.Connection):
        driver.create_function("bench_identifier", 1, _identifier, deterministic=True)
        return "bench_identifier({} || :copy)"
    return "substr(md5({} || CAST(:copy AS text)), 1, 22)"


def _moment(connection: Connection, share: str) -> str:
    """The SQL for a moment within the hundred days, from the share of them that had passed."""
    seconds = f"{time.time() - _DAYS * 86_400} + {_DAYS * 86_400.0} * {share}"
    if connection.dialect.name == "sqlite":
        return f"strftime('%Y-%m-%d %H:%M:%S.000000', {seconds}, 'unixepoch')"
    return f"to_timestamp({seconds}) AT TIME ZONE 'UTC'"


def _put_in_time(connection: Connection, wanted: int) -> None:
    """Set the start times of matches and calls to the order in which they were written, as in real data, as the first
    of `wanted`.
    """
    place = "rowid" if connection.dialect.name == "sqlite" else "row_number() OVER (ORDER BY ctid)"
    at = _moment(connection, f"place / CAST({wanted} AS float)")
    for table, columns in _MOMENTS.items():
        connection.execute(
            text(f"""UPDATE {table} SET {", ".join(f"{column} = {at}" for column in columns)}
                     FROM (SELECT id AS of, {place} AS place FROM {table}) AS written
                     WHERE {table}.id = written.of""")  # noqa: S608
        )


def _end_rounds(connection: Connection) -> None:
    """Set each round's creation and end to the end of its last match."""
    connection.execute(
        text("""UPDATE round SET created_at = last.at, ended_at = last.at
                FROM (SELECT round_id, max(ended_at) AS at FROM match GROUP BY round_id) AS last
                WHERE round.id = last.round_id""")
    )


def _fill_to(wanted: int, present: int) -> None:
    sqlite = db.engine.dialect.name == "sqlite"
    tables = [_table(row) for row in (MatchRow, SeatRow, GenerationRow)]
    with writing() as session:
        connection = session.connection()
        if sqlite:  # KiB of cache, as ids come from everywhere; for this connection only
            connection.execute(text("PRAGMA cache_size = -1000000"))
        else:  # without checking the match of each seat and call
            connection.execute(text("SET LOCAL session_replication_role = replica"))
        if not present:
            scripted = session.scalars(select(LanguageModel).limit(1)).one()
            add_scripted_model(session, "second", None, scripted.options)
            fill(connection)
            for table in tables:
                rows = f"SELECT *, row_number() OVER () AS place FROM {table.name}"  # noqa: S608
                connection.execute(text(f"CREATE TABLE bench_{table.name} AS {rows}"))
            present = BASE
        indexes = [index for table in tables for index in table.indexes]
        for index in indexes:  # creating each once for all rows takes a fraction of the time
            index.drop(connection)
        _put_in_time(connection, wanted)
        grow(connection, present, wanted)
        _end_rounds(connection)
    with writing() as session:
        for index in indexes:
            index.create(session.connection())
    db.engine.dispose()
    counts.recount(db.engine)  # of copied matches, which did not end here
    call_sums.recount(db.engine)
    if not sqlite:  # SQLite keeps no statistics; by now, a server would have made them
        with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))


# ---- Pages -------------------------------------------------------------------------


def addresses(app: Flask) -> list[str]:
    """The pages to measure: all that need no number, and those about matches."""
    plain = [
        rule.rule
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/admin") and "GET" in (rule.methods or ()) and not rule.arguments
    ]
    with db.engine.connect() as connection:
        named = {
            "model": connection.scalar(select(LanguageModel.name).order_by(LanguageModel.id).limit(1)),
            "match": connection.scalar(select(EventRow.match_id).limit(1)),
            "day": (datetime.now(UTC) - timedelta(days=_DAYS // 2)).date(),
        }
    wanted = [page.format(**named) for page in _PAGES]
    return list(dict.fromkeys([*wanted, *sorted(plain)]))


def cost(client: FlaskClient, address: str) -> PageCost | None:
    """The cost of viewing a page as if for the first time. None for a page that needs more to be shown.

    Called within the context of the client's app.
    """
    rounds_analysis._known.clear()
    rounds_scores._known.clear()
    leaderboard._kept.clear()
    own, database = time.process_time(), _database_seconds()
    answered = client.get(address)
    body = answered.data
    own, database = time.process_time() - own, _database_seconds() - database
    if answered.status_code != 200:
        print(f"left out: {address}, which answers {answered.status}", file=sys.stderr)
        return None
    return PageCost(own, database, len(body), len(gzip.compress(body, 6)))


def best_costs(clients: Mapping[int, FlaskClient], address: str) -> dict[int, PageCost]:
    """A page's lowest cost by size, measured in turns, as a machine's speed drifts. Empty for a page that is not
    shown.
    """
    best: dict[int, PageCost] = {}
    turns = 0
    while not best or turns < _turns(max(each.seconds for each in best.values())):
        for size, client in clients.items():
            with client.application.app_context():
                found = cost(client, address)
            if found is None:
                return {}
            best[size] = min(best.get(size, found), found, key=lambda each: each.seconds)
        turns += 1
    return best


def _turns(seconds: float) -> int:
    return next(turns for turns, most in _TURNS.items() if seconds < most)


def _database_seconds() -> float:
    """The CPU seconds that this database's PostgreSQL processes have used so far."""
    name = db.engine.url.database or ""
    if db.engine.dialect.name == "sqlite":
        return 0.0
    nanoseconds = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            if command.startswith(b"postgres:") and name.encode() in command:
                nanoseconds += int((folder / "schedstat").read_text(encoding="ascii").split()[0])
        except OSError:
            continue
    return nanoseconds / 1e9


# ---- Running -----------------------------------------------------------------------


@contextmanager
def filled_apps(sizes: Sequence[int]) -> Iterator[dict[int, Flask]]:
    """An app for each number of matches, ascending, each on its own database, which starts as a copy of the previous
    one.
    """
    named = os.environ.get("DATABASE_URL", "")
    apps: dict[int, Flask] = {}
    with ExitStack() as kept:
        folder = Path(tempfile.mkdtemp(prefix="parlor-page-costs-", dir="/tmp"))
        kept.callback(shutil.rmtree, folder, ignore_errors=True)
        present, url = 0, ""
        for size in sizes:
            began = time.monotonic()
            home = folder / str(size)
            if present:
                shutil.copytree(folder / str(present), home)
            if named:
                url = kept.enter_context(new_database(named, template=url.rpartition("/")[2]))
            app = create_app({"PARLOR_HOME": home, "DATABASE_URL": url, "REDIS_URL": "", "SMALL_MODELS": False})
            app.config["WTF_CSRF_ENABLED"] = False
            with app.app_context():
                kept.callback(db.engine.dispose)
                if not present:
                    upgrade(app)
                _fill_to(size, present)
                if not present:  # a round that was played, with logs of its matches
                    play_some(app)
                db.engine.dispose()  # a database in use cannot be copied
            apps[size], present = app, size
            print(f"{size:,} matches, written in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        yield apps


@contextmanager
def kept_connections() -> Iterator[None]:
    """Let threads keep their PostgreSQL connections in this block; with SQLite, pages would be kept in memory as
    well.
    """
    engines: dict[URL, Engine] = {}

    def engine_of(url: URL) -> Engine:
        if url.get_backend_name() != "postgresql":
            return without(url)
        if url not in engines:
            # Without prepared statements: a connection used only once never benefits from their plans.
            engines[url] = open_engine(url, connect_args={"prepare_threshold": None})
        return engines[url]

    without = threads._engine_of_threads
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_engine_of_threads", engine_of)
        try:
            yield
        finally:
            for engine in engines.values():
                engine.dispose()


def measure(apps: Mapping[int, Flask], only: str) -> dict[str, dict[int, PageCost]]:
    """The cost of each page, by the apps' numbers of matches."""
    clients = {size: signed_in(app) for size, app in apps.items()}
    app = apps[min(apps)]
    with app.app_context():
        pages = [page for page in addresses(app) if only in page]  # copies have the same numbers and names
    found = {page: best_costs(clients, page) for page in pages}
    return {page: costs for page, costs in found.items() if costs}


def growth(costs: Mapping[int, PageCost]) -> float:
    """The cost of a page at the most matches divided by its cost at the fewest."""
    return costs[max(costs)].seconds / max(costs[min(costs)].seconds, 1e-6)


def table(found: Mapping[str, Mapping[int, PageCost]], sizes: Sequence[int], database: str) -> str:
    """The results, as a table of docs/results.md."""
    lines = [
        f"{database}; the fixed piece of Python takes {yardstick_ms():.0f} ms",
        "",
        f"| page | {' | '.join(f'{size:,}' for size in sizes)} | ratio | KiB | compressed |",
        f"| --- |{' --- |' * (len(sizes) + 3)}",
    ]
    for page, costs in sorted(found.items(), key=lambda each: -each[1][max(each[1])].seconds):
        times = " | ".join(f"{costs[size].seconds:.3f}" for size in sizes)
        last = costs[max(costs)]
        lines.append(
            f"| {page} | {times} | {growth(costs):.1f} | {last.size / 1024:.0f} | {last.compressed / 1024:.0f} |"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print. 0: no page's cost grows; 1: some page's cost does."""
    parser = argparse.ArgumentParser(prog="python -m bench.page_costs", description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of matches, multiples of 10,000")
    parser.add_argument("--only", default="", help="pages with this in their address")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args(arguments)
    sizes = sorted(int(size) for size in asked.sizes.split(","))
    with filled_apps(sizes) as apps, kept_connections():
        found = measure(apps, asked.only)
    database = "postgresql" if os.environ.get("DATABASE_URL") else "sqlite"
    if asked.json:
        print(json.dumps({page: {size: each._asdict() for size, each in of.items()} for page, of in found.items()}))
    else:
        print(table(found, sizes, database))
    grown = [
        page
        for page, of in found.items()
        if growth(of) > MOST_GROWTH and of[sizes[-1]].seconds - of[sizes[0]].seconds > NOTHING
    ]
    for page in grown:
        print(
            f"error: expected {page} to cost at most a third more, got {growth(found[page]):.1f} times", file=sys.stderr
        )
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
