"""Parlor's games for verifiers: the same moves have the same rewards as in Parlor, and nothing else of it is needed."""

import hashlib
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from parlor_games.matches import HELD_OUT_EVERY, SeatInMatch, Task, formula_rewards, tasks

from app.core.config import ROOT
from app.core.errors import Invalid, NotFound
from app.datasets.rewards import RewardCounts, move_rewards
from app.datasets.spec import DatasetSpec
from app.games import find_game
from app.games.base import Event
from app.games.rewards import SeatResult
from app.matches import engine
from app.matches.stored import MODEL, StoredMatch, StoredSeat, opened
from app.players.base import PlayerSpec
from tests.own_environment import make_environment
from tests.rounds import haggler
from tests.stub_openai import Messages, Reply, StubServer

PACKAGE = ROOT / "environments" / "parlor_games"
VERIFIERS = "verifiers==0.2.1"
CONFIGS = [("negotiation", {"objective": each}) for each in ("self", "coop", "comp", 0.25)] + [("taboo", {})]


def guesser(messages: Messages) -> str:
    """A player of taboo that says one of many things: a word, a guess, or nothing that could be read."""
    drawn = int.from_bytes(hashlib.sha256(repr(messages).encode()).digest()[:6])
    words = ("lemon", "valve", "engine", "river", "garden", "window", "sculptor", "tree")
    word = words[drawn % len(words)]
    return ("\N{ZERO WIDTH SPACE}", f"I know the word! It is {word}.", f"Do you like a {word}?", "Tell me more.")[
        drawn // 11 % 4
    ]


def dealer(messages: Messages) -> str:
    """A negotiator that asks for what it values most, which a partner may well agree to, and else says many things."""
    if len(messages[0]["content"]) % 3 == 0:
        return haggler(messages)
    items = re.findall(r"^(books|hats|balls): ([0-9]+), worth ([0-9]+)", messages[0]["content"], re.MULTILINE)
    best = max(items, key=lambda item: int(item[2]))[0]
    if all(message["role"] != "assistant" for message in messages):
        return f"[message] You take everything but the {best}, I take all the {best}."
    return f"[propose] ({', '.join(f'{count if name == best else 0} {name}' for name, count, _ in items)})"


SPEAKERS = {"negotiation": dealer, "taboo": guesser}


def played_here(task: Task, said: Sequence[Sequence[Any]], scripted: int | None) -> StoredMatch:
    """The same answers in a match as Parlor plays it, between a model behind an API and a scripted player, if any."""
    seats = [StoredSeat(MODEL, 1, PlayerSpec("scripted" if seat == scripted else "api", "x")) for seat in (0, 1)]
    record = opened(task.game, task.config, (seats[0], seats[1]), task.seed)
    for seat, text in said:
        assert record.match.to_move == seat
        record = record.moved(seat, text, datetime.now(UTC))
    return record


def rewards_here(tasks_of: Sequence[Task], records: Sequence[StoredMatch]) -> list[tuple[float, float, list[float]]]:
    """The rewards of a dataset of these matches with rows of these seats: total, weight, and those of the moves."""
    counts, spec = RewardCounts(), DatasetSpec((1,), "all", rewards="spag")
    results: list[SeatResult | None] = []
    for task, record in zip(tasks_of, records, strict=True):
        ended, game = record.match.ended, find_game(task.game)
        assert ended is not None
        for seat in (0, 1):
            result = None
            if ended.reason not in engine.BROKEN_OFF:
                weight = float(game.partner_weight(record.match.state.config.to_json()) or 0)
                result = SeatResult(game.roles[seat], ended.utilities[seat], ended.winner == seat, weight)
                counts.add(task.game, result, gives_rows=seat == task.seat)
            if seat == task.seat:
                results.append(result)
    totals, found = counts.totals(), []
    for task, record, result in zip(tasks_of, records, results, strict=True):
        own = sum(isinstance(each.event, Event) and each.seat == task.seat for each in record.log)
        rewards, weight = move_rewards(spec, task.game, result, totals, own)
        found.append((sum(rewards), weight, rewards))
    return found


@pytest.mark.parametrize(("game", "config"), CONFIGS)
@pytest.mark.parametrize("opponent", ["scripted", "self"])
def test_rewards_are_those_of_parlor_on_the_same_moves(game: str, config: dict[str, Any], opponent: str) -> None:
    played = []
    for task in tasks(game, 24, seed=5, **config):
        match, rng = SeatInMatch(task), random.Random(task.seed)
        while not match.match.over:
            if match.own_turn or opponent == "self":
                match.answer(match.scripted_text() if rng.random() < 0.8 else SPEAKERS[game](match.messages()))
            else:
                match.answer(match.scripted_text(), scripted=True)
        played.append(match)
    records = [
        played_here(each.task, each.said, 1 - each.task.seat if opponent == "scripted" else None) for each in played
    ]
    ends = [each.match.ended for each in records]
    assert [each.match.ended for each in played] == ends
    assert len({end.reason for end in ends if end is not None}) > 1
    assert [each.utility(each.task.seat) for each in played] == [
        end.utilities[each.task.seat] for each, end in zip(played, ends, strict=True) if end is not None
    ]
    here = rewards_here([each.task for each in played], records)
    for each, found, (total, weight, moves) in zip(played, formula_rewards(played), here, strict=True):
        own = [reward for reward, moved in zip(found.answers, each.accepted, strict=True) if moved]
        assert own == pytest.approx(moves if weight else [0.0] * len(own))
        assert sum(found.answers) == pytest.approx(total)


def test_matches_are_on_the_games_material_and_evaluation_on_what_is_held_out() -> None:
    for game, config in (("negotiation", {"limit": 20}), ("taboo", {})):
        kind = find_game(game).material
        assert kind is not None
        found = {held_out: list(tasks(game, 300, seed=1, held_out=held_out, **config)) for held_out in (False, True)}
        keys = [{str(kind.held_out_key(kind.piece_of(each.config))) for each in part} for part in found.values()]
        assert not keys[0] & keys[1]
        assert len(keys[1]) > HELD_OUT_EVERY
        assert [each.seat for each in found[False][:4]] == [0, 1, 0, 1]
        assert found[True] == list(tasks(game, 300, seed=1, held_out=True, **config))
    with pytest.raises(NotFound):
        list(tasks("chess", 1))
    with pytest.raises(Invalid, match="objective"):
        list(tasks("negotiation", 1, objective="greedy"))


def test_a_refused_answer_is_corrected_until_the_turn_is_over() -> None:
    match = SeatInMatch(Task("negotiation", {"first": 0}, 7, 0))
    rules = match.messages()
    match.answer("I would like the books.")
    assert [each["role"] for each in match.messages()] == ["user", "assistant", "user"]
    match.answer("[message] I would like the books.")
    match.answer(match.scripted_text(), scripted=True)
    assert match.messages()[:2] == [*rules, {"role": "assistant", "content": "[message] I would like the books."}]
    assert match.accepted == [False, True]


_WITHOUT_PARLOR = """
import sys
import parlor_games.matches as matches
for game in ("negotiation", "taboo"):
    for task in matches.tasks(game, 4):
        played = matches.SeatInMatch(task)
        while not played.match.over:
            played.answer(played.scripted_text(), scripted=True)
print(*sorted({"app", "training", "flask", "celery"} & set(sys.modules)), matches.__file__)
"""


def test_the_wheel_plays_without_parlor(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "setup.py",
        "-q",
        "build",
        "-b",
        str(tmp_path / "build"),
        "egg_info",
        "-e",
        str(tmp_path),
    ]
    subprocess.run(command, cwd=PACKAGE, check=True, capture_output=True, timeout=300)
    built = tmp_path / "build" / "lib"
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_PARLOR], cwd=tmp_path, env={"PYTHONPATH": str(built)}, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(built / "parlor_games" / "matches.py")]
    copied = {
        path.parts[0]
        for path in (
            each.relative_to(built / "parlor_games" / "rules" / "app")
            for each in (built / "parlor_games" / "rules" / "app").rglob("*.py")
        )
    }
    assert not copied & {"web", "cli", "models", "studies"}


_PLAY = """
import asyncio, json, sys
import verifiers as vf
from verifiers.types import ClientConfig
url, game, opponent, rewards, number, options = sys.argv[1:]
env = vf.load_environment("parlor-games", game=game, opponent=opponent, rewards=rewards, examples=int(number),
                          eval_examples=2, seed=3, **json.loads(options))
client = ClientConfig(api_base_url=url, api_key_var="PATH", max_retries=0)
found = asyncio.run(env.generate(
    env.get_dataset(), client, game, max_concurrent=16, state_columns=["parlor_said", "trajectory", "info"],
))
for each in found["outputs"]:
    info = each["info"]
    steps = [step["reward"] for step in each["trajectory"]]
    print(json.dumps({"task": json.loads(info) if isinstance(info, str) else info, "said": each["parlor_said"],
                      "reward": each["reward"], "steps": steps, "error": str(each.get("error") or "")}))
"""


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        for game, speaker in SPEAKERS.items():
            server.script(game, Reply(speaker))
        yield server


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_verifiers_plays_both_games_with_the_rewards_of_parlor(stub: StubServer, tmp_path: Path) -> None:
    python = make_environment(tmp_path / "environment", VERIFIERS, str(PACKAGE))
    for game, opponent, rewards, options in (
        ("negotiation", "scripted", "utility", {"objective": "coop"}),
        ("negotiation", "self", "formula", {"objective": "self"}),
        ("taboo", "scripted", "utility", {}),
        ("taboo", "self", "formula", {}),
    ):
        command = [str(python), "-c", _PLAY, stub.url, game, opponent, rewards, "100", json.dumps(options)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900)
        assert done.returncode == 0, done.stderr[-3000:]
        told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        assert (len(told), {each["error"] for each in told}) == (100, {""})
        of = [Task(**each["task"]) for each in told]
        records = [
            played_here(task, each["said"], 1 - task.seat if opponent == "scripted" else None)
            for task, each in zip(of, told, strict=True)
        ]
        assert all(record.match.over for record in records)
        assert len({each["reward"] for each in told}) > 1
        for task, each, record in zip(of, told, records, strict=True):
            assert record.match.ended is not None
            if rewards == "utility":
                assert each["reward"] == record.match.ended.utilities[task.seat]
                continue
            [(total, _, moves)] = rewards_here([task], [record])  # a row of the dataset is a group of its own
            assert each["reward"] == pytest.approx(total)
            assert [step for step in each["steps"] if step] == pytest.approx([move for move in moves if move])
