"""`kill -9` of whatever runs, in the middle of a match: it goes on, and no move is lost or doubled."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from app.models import EventRow, GenerationRow, MatchRow
from tests.participant import JSON, Participant
from tests.stack import PATIENCE, TURNS_ALONE, Stack, another_worker, put_to_sleep, running_parlor, wait_until
from tests.stub_openai import Messages, Reply, StubServer
from tests.tables import add_model, database, negotiation, taboo

THINKS = 1.5  # seconds; long enough to be killed meanwhile
ENV = {
    "READING_WORDS_PER_MINUTE": "3000",
    "LONGEST_DELAY": "0.3",
    "TURN_LEASE": "2",
    "UPKEEP_EVERY": "0.5",
    "GUEST_MATCHES_PER_MINUTE": "0",
    "PROCESS_TIMEOUT": "0",  # what is put to sleep must not be replaced, however slow the machine is
    **TURNS_ALONE,
}
CHATTY, LABEL = "chatty", "Partner Blue"
DEAL = "[propose] (0 books, 2 hats, 2 balls)"


def chat(messages: Messages) -> str:
    """Counts its own turns aloud; in a negotiation it answers the partner's proposal with the one that fits."""
    answer = f"Answer {1 + sum(message['role'] == 'assistant' for message in messages)}."
    if "[propose]" not in messages[0]["content"]:
        return answer
    return DEAL if "has made a proposal" in messages[-1]["content"] else f"[message] {answer}"


THINKING = Reply(chat, delay=THINKS)


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    with StubServer() as server:
        server.script(CHATTY, THINKING)
        yield server


@pytest.fixture(scope="module")
def embedded(stub: StubServer) -> Iterator[Stack]:
    """Parlor on SQLite and its own broker."""
    with running_parlor(**ENV) as running:
        add_model(running, stub.url, CHATTY, CHATTY, LABEL)
        yield running


class Game:
    """A match that is played line by line while things are killed, and what its log must be in the end."""

    def __init__(self, person: Participant, prefix: str, last: tuple[str, str]) -> None:
        self.person = person
        self.expected: list[str] = []
        self._prefix = prefix
        self._last = last

    def say(self, number: int, *, last: bool = False) -> JSON:
        """Make the move of a round, as often as it takes; gives the server's answer to it."""
        mine, theirs = self._last if last else (f"{self._prefix}Line {number}.", f"{self._prefix}Answer {number}.")
        ply = len(self.expected)
        self.expected += [mine, theirs]
        return self.person.insist(mine, f"round-{number}", ply)

    def answered(self) -> bool:
        return bool(self.person.view["ply"] == len(self.expected))


def play(parlor: Stack, stub: StubServer, victims: Sequence[str]) -> None:
    """Play a match of each game at once; in each round but the last, one process is killed."""
    turns = len(victims) + 1
    one = negotiation(parlor, opponent=LABEL)
    two = taboo(parlor, "attacker", opponent=LABEL, config={"max_turns": turns})
    with Participant(one) as first, Participant(two) as second, ThreadPoolExecutor(2) as pool:
        offer = "[propose] (1 books, 0 hats, 0 balls)", DEAL
        games = [Game(first, "[message] ", offer), Game(second, "", (f"Line {turns}.", f"Answer {turns}."))]
        for number, victim in enumerate(victims, 1):
            asked, before = len(stub.requests), [game.person.connections for game in games]
            answers = [pool.submit(game.say, number) for game in games]
            if victim != "web":  # which is killed with the moves on their way, the others while the models think
                wait_until(lambda asked=asked: len(stub.requests) >= asked + 2, "both models at work")
            parlor.kill(victim)
            assert [answer.result() for answer in answers] == [{"ok": True, "ply": 2 * number - 1}] * 2
            wait_until(lambda: all(game.answered() for game in games), f"answers after {victim} was killed")
            cut_off = [game.person.connections > known for game, known in zip(games, before, strict=True)]
            assert cut_off == [victim == "web"] * 2
        for game in games:
            game.say(turns, last=True)
        for game in games:
            game.person.wait(lambda game=game: game.person.over, "the end")
            assert [entry["text"] for entry in game.person.view["transcript"]] == game.expected
            # A move that was played is known even now.
            assert game.person.insist("[message] Once more.", "round-1", 0) == {"ok": True, "ply": 1}
        assert [game.person.view["outcome"]["reason"] for game in games] == ["deal", "tied game"]
    check_log(parlor, one.match, games[0].expected)
    check_log(parlor, two.match, games[1].expected)


def check_log(parlor: Stack, match: str, expected: list[str]) -> None:
    """The log is gapless, holds each move once, and each of the model's moves came of one call."""
    with database(parlor) as engine, engine.connect() as connection:
        columns = EventRow.seq, EventRow.kind, EventRow.ply, EventRow.body
        events = connection.execute(select(*columns).where(EventRow.match_id == match).order_by(EventRow.seq)).all()
        calls = connection.scalars(select(GenerationRow.ply).where(GenerationRow.match_id == match)).all()
        status = connection.scalar(select(MatchRow.status).where(MatchRow.id == match))
    assert [event.seq for event in events] == list(range(len(expected) + 2))
    assert (events[0].kind, events[-1].kind, status) == ("started", "ended", "over")
    assert [event.body["text"] for event in events[1:-1]] == expected
    assert [event.ply for event in events[1:-1]] == list(range(len(expected)))
    assert sorted(calls) == list(range(1, len(expected), 2))


@pytest.mark.parametrize("victim", ["web", "turns", "broker"])
def test_a_match_of_each_game_outlives_any_process(embedded: Stack, stub: StubServer, victim: str) -> None:
    play(embedded, stub, [victim])


def test_a_worker_that_slept_beyond_its_lease_writes_nothing(embedded: Stack, stub: StubServer) -> None:
    may_answer = threading.Event()  # the one who is put to sleep; its answer must not come before that

    def answer_later(messages: Messages) -> str:
        may_answer.wait(PATIENCE)
        return chat(messages)

    table = negotiation(embedded, opponent=LABEL)
    stub.script(CHATTY, Reply(answer_later), THINKING)
    with Participant(table) as person:
        asked = len(stub.requests)
        assert person.move("[message] Line 1.")["ok"]
        wait_until(lambda: len(stub.requests) > asked, "a model at work")
        sleeper = embedded.pid("turns")
        with database(embedded) as engine:
            put_to_sleep(engine, sleeper)
        with another_worker(embedded, "turns"):
            person.wait(lambda: person.view["ply"] == 2, "an answer by the other worker")
            os.killpg(sleeper, signal.SIGCONT)
            may_answer.set()
            said = embedded.home / "logs" / "turns.log"
            wait_until(lambda: f"somebody else' match='{table.match}'" in said.read_text(), "a worker that gives up")
        assert person.move("[propose] (1 books, 0 hats, 0 balls)")["ok"]
        person.wait(lambda: person.over, "the end")
    expected = ["[message] Line 1.", "[message] Answer 1.", "[propose] (1 books, 0 hats, 0 balls)", DEAL]
    check_log(embedded, table.match, expected)


@pytest.mark.long
def test_matches_on_postgresql_and_redis_outlive_web_and_worker(
    stack: Callable[..., Stack], stub: StubServer, service_database: str, service_redis: str
) -> None:
    parlor = stack({**ENV, "DATABASE_URL": service_database, "REDIS_URL": service_redis})
    add_model(parlor, stub.url, CHATTY, CHATTY, LABEL)
    play(parlor, stub, ["web", "turns"])
