"""Matches and exports of the API: the one filter, cursors that miss nothing, files as commands write them."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from datetime import datetime

import pytest
from flask import Flask
from sqlalchemy import Engine

from tests.programs import Program, read_on, refusal, until
from tests.rounds import make_round, play
from tests.shell import Finished

TABLES = ("matches", "moves", "events", "generations", "codebook")


@pytest.fixture
def program(app: Flask) -> Program:
    return Program(app, "read")


# ---- The filter, and what is said of a match ----------------------------------


@pytest.fixture
def played(app: Flask, engine: Engine, program: Program) -> tuple[int, int]:
    """Two rounds, of both games, whose matches the program can read."""
    numbers = [make_round(engine, "scripted", matches=3, game=game) for game in ("negotiation", "taboo")]
    for number in numbers:
        play(engine, app.config["SETTINGS"], number)
    until(program, None, 6)
    return numbers[0], numbers[1]


@pytest.fixture
def command(app: Flask) -> Callable[..., bytes]:
    """What a command prints."""
    return lambda *words: app.test_cli_runner().invoke(args=[*words]).stdout_bytes


def table(data: bytes) -> Sequence[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


@pytest.mark.parametrize(
    "choice",
    [{}, {"game": "taboo"}, {"round": "1"}, {"round": "2", "reason": "attacker wins"}, {"player": "scripted"},
     {"status": "over"}, {"status": "playing"}, {"source": "live"}, {"since": "2000-01-01"}, {"until": "2000-01-01"}],
)  # fmt: skip
def test_the_filter_chooses_what_the_command_chooses(
    program: Program, played: tuple[int, int], command: Callable[..., bytes], choice: dict[str, str]
) -> None:
    options = [word for name, value in choice.items() for word in (f"--{name}", value)]
    wanted = [each["match_id"] for each in table(command("export", "matches", *options, "--out", "-"))]
    query = "&".join(f"{name}={value}" for name, value in choice.items())
    found = [each for ids, _ in read_on(program, None, f"limit=2&{query}") for each in ids]
    assert sorted(found) == sorted(wanted)


def test_a_match_has_the_columns_of_its_export(
    program: Program, played: tuple[int, int], command: Callable[..., bytes]
) -> None:
    lines = {each["match_id"]: each for each in table(command("export", "matches", "--out", "-"))}
    items = program.get("/matches?limit=200")["items"]
    assert [*items[0]] == [*next(iter(lines.values()))]
    for item in items:
        line = lines[item["match_id"]]
        assert str(item["seed"]) == line["seed"]
        assert item["config"] == json.loads(line["config"])
        assert (item["reason"], item["player_0"], item["role_1"]) == (line["reason"], line["player_0"], line["role_1"])
        assert datetime.fromisoformat(item["started_at"]) <= datetime.fromisoformat(line["started_at"])


def test_one_match_is_shown_with_its_log(
    program: Program, played: tuple[int, int], command: Callable[..., bytes]
) -> None:
    [first, *_] = program.get(f"/matches?round={played[1]}")["items"]
    shown = program.get(f"/matches/{first['match_id']}")
    events = table(command("export", "events", "--match", first["match_id"], "--out", "-"))
    assert [(str(each["seq"]), each["kind"]) for each in shown["events"]] == [
        (each["seq"], each["kind"]) for each in events
    ]
    assert [each["body"] for each in shown["events"]] == [json.loads(each["body"]) for each in events]
    assert {name: value for name, value in shown.items() if name != "events"} == first


@pytest.mark.parametrize(
    ("path", "status", "field"),
    [
        ("/matches/none-that-there-is", 404, "match"),
        ("/matches/%00", 404, "match"),
        ("/matches?player=nobody", 404, "player"),
        ("/matches?study=none", 404, "study"),
        ("/matches?round=99", 404, "round"),
        ("/matches?role=king", 400, "role"),
        ("/matches?since=yesterday", 400, "since"),
        ("/matches?player=%00", 400, "player"),
        ("/matches?words=3", 400, "query"),
        ("/exports/votes.csv", 404, "export"),
        ("/exports/moves.csv?game=chess", 404, "game"),
        ("/exports/moves.csv?guard=yes", 400, "guard"),
    ],
)
def test_a_filter_that_cannot_be_is_refused(program: Program, path: str, status: int, field: str) -> None:
    answer = program.ask("GET", path)
    assert (answer.status_code, refusal(answer)["field"]) == (status, field)


def test_a_cursor_is_good_for_its_filter_alone(program: Program, played: tuple[int, int]) -> None:
    cursor = program.get("/matches?game=taboo&limit=1")["next"]
    answer = program.ask("GET", f"/matches?game=negotiation&cursor={cursor}")
    assert refusal(answer)["got"] == "one of another"


# ---- Files ---------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("options", [(), ("guard",), ("guard", "bom")], ids=" ".join)
def test_an_export_is_byte_for_byte_what_the_command_writes(
    program: Program, played: tuple[int, int], flask: Callable[..., Finished], name: str, options: tuple[str, ...]
) -> None:
    answer = program.ask("GET", f"/exports/{name}.csv?" + "&".join(f"{each}=1" for each in options))
    assert (answer.status_code, answer.mimetype) == (200, "text/csv")
    assert answer.data == flask("export", name, "--out", "-", *(f"--{each}" for each in options)).stdout_bytes


def test_an_export_has_the_filter_of_the_command(
    program: Program, played: tuple[int, int], flask: Callable[..., Finished]
) -> None:
    answer = program.ask("GET", f"/exports/moves.csv?round={played[1]}&player=scripted")
    line = ("export", "moves", "--round", str(played[1]), "--player", "scripted", "--out", "-")
    assert answer.data == flask(*line).stdout_bytes
    assert len(table(answer.data)) > 3


def test_exports_and_matches_need_the_scope_to_read(app: Flask, played: tuple[int, int]) -> None:
    runner = Program(app, "run", "people")
    for path in ("/matches", "/matches/x", "/exports/moves.csv"):
        assert runner.ask("GET", path).status_code == 403
