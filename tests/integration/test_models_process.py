"""One process holds local models for all workers: it answers as their own engines would, and may die at any time."""

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, select

from app.cli import checks
from app.core.config import load_settings
from app.core.extensions import reading
from app.inference import protocol, scheduler
from app.inference.client import EngineProcess
from app.inference.requests import Checkpoint, Completion, GenerationFailure, GenerationRequest, Sampling
from app.inference.server import EngineServer
from app.jobs import states
from app.models import MatchRow
from app.rounds.job import ROUND
from tests.checkpoints import CHATML, register, scripted_model, word_model
from tests.participant import Participant
from tests.rounds import check, make_round, row_of
from tests.stack import PATIENCE, ROOT, Stack, running_parlor, wait_until
from tests.tables import database, moves_of, settings_of, taboo
from workers import health

SAID = "yes"  # each letter is a token
MATCHES = 60
ENV = {
    "ROUND_LEASE": "4",
    "TURN_SECONDS": "300",
    "UPKEEP_EVERY": "0.4",
    "WORKER_QUEUES": "turns,batch",
    "PROCESS_TIMEOUT": "0",  # what is stopped must not be replaced, however slow the machine is
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    folder = tmp_path_factory.mktemp("checkpoint")
    return Checkpoint(folder, word_model(folder), "cpu", "auto")


@asynccontextmanager
async def listening(folder: Path) -> AsyncIterator[Path]:
    """The socket of a server with the engines of this process."""
    server = EngineServer()
    await server.start(folder / "models.sock")
    yield folder / "models.sock"
    server.close()


def request(number: int, most: int = 9, seed: str | None = "a seed") -> GenerationRequest:
    loop = asyncio.get_running_loop()
    chat = [{"role": "user", "content": f"i want {number} books"}]
    return GenerationRequest(chat, Sampling(1, None, None), most, seed, loop, loop.create_future())


# ---- The socket -----------------------------------------------------------------


def test_answers_over_the_socket_are_those_of_an_engine_of_ones_own(checkpoint: Checkpoint, tmp_path: Path) -> None:
    async def ask() -> None:
        own = await asyncio.gather(*(scheduler.complete(checkpoint, request(number), 8) for number in range(6)))
        async with listening(tmp_path) as socket:
            workers = EngineProcess(socket), EngineProcess(socket)
            calls = (workers[number % 2].complete(checkpoint, request(number), 8) for number in range(6))
            found = await asyncio.gather(*calls)
            assert [each.ids for each in found] == [each.ids for each in own]  # type: ignore[union-attr]
            assert all(each.text for each in found)  # type: ignore[union-attr]
            [figures] = [each for each in await workers[0].figures() if each["folder"] == str(checkpoint.folder)]
            assert figures["answers"] == 12  # of the one copy that is in memory
            assert await workers[1].is_loaded(checkpoint)
            assert not await workers[1].is_loaded(checkpoint._replace(dtype="bfloat16"))

    asyncio.run(ask())


def test_a_checkpoint_that_cannot_be_played_says_the_same_over_the_socket(tmp_path: Path) -> None:
    async def ask() -> None:
        nothing = Checkpoint(tmp_path / "nothing", "ab" * 32, "cpu", "auto")
        async with listening(tmp_path) as socket:
            found = await EngineProcess(socket).complete(nothing, request(1), 8)
        assert found == await scheduler.complete(nothing, request(1), 8)
        assert isinstance(found, GenerationFailure)

    asyncio.run(ask())


def test_what_nobody_waits_for_any_more_is_not_made(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """Neither where a call is given up, nor where its worker is gone."""

    def under_way() -> int:
        return len(scheduler._engines[checkpoint]._under_way)

    async def ask() -> None:
        await scheduler.complete(checkpoint, request(1), 8)
        async with listening(tmp_path) as socket:
            worker = EngineProcess(socket)
            call = asyncio.create_task(worker.complete(checkpoint, request(1, 200), 8))
            while not under_way():
                await asyncio.sleep(0.001)
            call.cancel()
            while under_way():
                await asyncio.sleep(0.001)
            assert isinstance(await worker.complete(checkpoint, request(2), 8), Completion)
            reader, writer = await asyncio.open_unix_connection(socket)
            arguments = protocol.complete_arguments(checkpoint, request(1, 200), 8)
            writer.write(protocol.encode({"number": 1, "call": protocol.COMPLETE, "arguments": arguments}))
            while not under_way():
                await asyncio.sleep(0.001)
            writer.close()
            while under_way():
                await asyncio.sleep(0.001)
            assert await reader.read() == b""

    asyncio.run(asyncio.wait_for(ask(), PATIENCE))


def test_a_worker_releases_the_conversations_that_are_its_own_alone(checkpoint: Checkpoint, tmp_path: Path) -> None:
    def is_kept() -> bool:
        return scheduler._engines[checkpoint].has_cache

    async def ask() -> None:
        async with listening(tmp_path) as socket:
            turns, batch = EngineProcess(socket), EngineProcess(socket)
            for worker in (turns, batch):
                assert isinstance(await worker.complete(checkpoint, request(1), 8), Completion)
            await batch.release_caches()
            assert is_kept()  # a person may be at a conversation
            await turns.release_caches()
            assert not is_kept()

    asyncio.run(ask())


@pytest.mark.parametrize("message", [b"\xff\xff\xff\xff", b"\0\0\0\2[]", b"\0\0\0\2{}", b"\0\0\0\1x"])
def test_nonsense_closes_its_connection_and_no_other(checkpoint: Checkpoint, tmp_path: Path, message: bytes) -> None:
    async def ask() -> None:
        async with listening(tmp_path) as socket:
            worker = EngineProcess(socket)
            await worker.figures()
            reader, writer = await asyncio.open_unix_connection(socket)
            writer.write(message)
            assert await reader.read() == b""
            assert isinstance(await worker.complete(checkpoint, request(1), 8), Completion)
            writer.close()

    asyncio.run(ask())


# ---- The process ----------------------------------------------------------------


def start(home: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PARLOR_HOME": str(home), "DATABASE_URL": "", "REDIS_URL": "none"}
    command = [sys.executable, "-m", "workers.models"]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


def test_only_its_user_may_ask_and_a_second_one_is_refused(home: Path) -> None:
    home = home / ("a long näme " * 8)
    settings = load_settings({"PARLOR_HOME": home, "MODELS_PROCESS": True})
    assert [(each.state, each.remedy) for each in checks.models_process(settings)] == [
        ("fail", "start Parlor: make run, or python -m workers.models")
    ]
    process, socket = start(home), settings.models_socket
    try:
        wait_until(socket.exists, "the socket")
        assert len(os.fsencode(socket)) <= 100
        assert stat.S_IMODE(socket.stat().st_mode) & 0o077 == stat.S_IMODE(socket.parent.stat().st_mode) & 0o077 == 0
        second = start(home)
        _, said = second.communicate(timeout=PATIENCE)
        assert (second.returncode, said.count("\n")) == (2, 1)
        assert said.startswith("error: expected no other process that holds local models for this PARLOR_HOME, got one")
        assert [each.state for each in checks.models_process(settings)] == ["ok"]
        assert health.models(settings)
    finally:
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said, socket.exists()) == (0, "", False)
    socket.parent.rmdir()


@pytest.fixture(scope="module")
def parlor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Parlor with a local model that people are offered, and that says the same in each of its turns."""
    folder = tmp_path_factory.mktemp("model")
    sha256 = scripted_model(folder, CHATML, SAID)
    with running_parlor(**ENV) as running:
        with database(running) as engine:
            register(engine, "local", folder, sha256, in_flight=4)
        yield running


def has_torch(pid: int) -> bool:
    return "libtorch" in Path(f"/proc/{pid}/maps").read_text()


def answers(parlor: Stack) -> int:
    """How many answers the process has made since its start."""
    figures = asyncio.run(EngineProcess(settings_of(parlor).models_socket).figures())
    return sum(each["answers"] for each in figures)


def test_a_model_that_people_are_offered_is_loaded_before_anybody_plays_with_it(parlor: Stack) -> None:
    wait_until(lambda: answers(parlor), "a model that is loaded")
    found = {name: has_torch(parlor.pid(name)) for name in ("models", "turns", "batch")}
    assert found == {"models": True, "turns": False, "batch": False}


def test_a_person_is_told_of_a_partner_that_is_being_loaded(parlor: Stack) -> None:
    table = taboo(parlor, "attacker", opponent="Label of local", config={"max_turns": 1})
    os.kill(parlor.pid("models"), signal.SIGSTOP)  # as one that is busy with loading
    with Participant(table) as person:
        assert person.insist("Line 1.", "round-1", 0)["ok"]
        # Pages that look by themselves may have seen a worker at the turn before it knew.
        person.wait(lambda: {"on": True, "ready": False} in person.all_of("typing"), "that the partner is not ready")
        os.kill(parlor.pid("models"), signal.SIGCONT)
        person.wait(lambda: person.over, "the end")
    assert moves_of(parlor, table.match) == ["Line 1.", SAID]


def test_a_round_and_a_live_match_outlive_the_process_that_holds_their_model(parlor: Stack) -> None:
    with database(parlor) as engine:
        round_id = make_round(engine, "local", game="taboo", queued=True, matches=MATCHES, config={"max_turns": 4})
        ROUND.enqueue(settings_of(parlor).broker_url, round_id)
        wait_until(lambda: has_begun(engine, round_id), "some matches that are over")
        parlor.kill("models")
        table = taboo(parlor, "attacker", opponent="Label of local", config={"max_turns": 2})
        wait_until(lambda: hears(parlor), "a process that can be asked")  # else turns are given back, to be tried again
        os.kill(parlor.pid("models"), signal.SIGSTOP)  # so that it cannot answer before it is killed
        with Participant(table) as person:
            assert person.insist("Line 1.", "round-1", 0)["ok"]
            wait_until(lambda: is_at_work(engine, table.match), "a worker at the turn")
            parlor.kill("models")
            person.wait(lambda: person.view["ply"] == 2, "the answer")
            assert person.insist("Line 2.", "round-2", 2)["ok"]
            person.wait(lambda: person.over, "the end")
        assert moves_of(parlor, table.match) == ["Line 1.", SAID, "Line 2.", SAID]
        wait_until(lambda: row_of(engine, round_id).status not in states.OPEN, "the end of the round")
        check(engine, round_id, MATCHES)


def hears(parlor: Stack) -> bool:
    """Whether the process that holds local models can be connected to."""
    with socket.socket(socket.AF_UNIX) as line:
        return line.connect_ex(str(settings_of(parlor).models_socket)) == 0


def has_begun(engine: Engine, round_id: int) -> bool:
    row = row_of(engine, round_id)
    assert row.status in states.OPEN, row.error
    return row.finished >= 3


def is_at_work(engine: Engine, match: str) -> bool:
    with reading(engine) as session:
        return session.scalar(select(MatchRow.lease_owner).where(MatchRow.id == match)) is not None
