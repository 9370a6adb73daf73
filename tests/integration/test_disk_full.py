"""A disk without room: everything stays up, nothing that was promised is lost, and all goes on once there is room."""

import contextlib
import shutil
import urllib.error
from collections.abc import Iterator

import pytest
from flask import Flask
from sqlalchemy import Engine, create_engine

from app.core.config import load_settings
from app.core.extensions import writing
from app.factory import create_app
from app.finetuning.job import TRAINING
from app.jobs import states
from app.rounds.job import ROUND
from app.schema import upgrade
from tests.experimenter import signed_in
from tests.jobs import make_dataset, make_job, models, run
from tests.jobs import row_of as job_of
from tests.participant import JSON, Participant
from tests.rounds import add_models, check, haggler, make_round, row_of
from tests.stack import Stack, new_home, readable_by_others, wait_until
from tests.stub_openai import Reply, StubServer
from tests.tables import add_model, database, moves_of, negotiation, settings_of
from tests.volume import Volume, small_volume

ENV = {"LOW_DISK_MB": "2", "TURN_LEASE": "2", "ROUND_LEASE": "1.5", "UPKEEP_EVERY": "0.4"}
CHILDREN = ("broker", "web", "turns", "batch", "train", "upkeep")


@pytest.fixture
def volume() -> Iterator[Volume]:
    home = new_home()
    with small_volume(home, 64) as found:
        yield found
    shutil.rmtree(home, ignore_errors=True)


def health(parlor: Stack) -> str:
    try:
        return parlor.get("/healthz")
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"


def spare_room_is_given_back(engine: Engine) -> bool:
    """Whether SQLite's log of writes is as long as what stands in it, so that the next one needs room on the disk."""
    with contextlib.closing(engine.raw_connection()) as connection:
        busy, *_ = connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return busy == 0


def until_refused(person: Participant, volume: Volume, engine: Engine) -> tuple[str, str, int]:
    """Fill the disk and move, until a move is not taken. Gives that move's text, id and ply."""
    wait_until(lambda: spare_room_is_given_back(engine), "a log of writes without spare room")
    with volume.kept_full():
        for number in range(10):  # far fewer than the partner takes for its offer, after which nobody may talk
            move = f"[message] Line {number}.", f"line-{number}", person.view["ply"]
            answer: JSON = person.move(move[0], move[1])
            if not answer["ok"]:
                return move
            person.wait_for_turn()
    raise AssertionError("expected a full disk to refuse a move")


def test_parlor_outlives_a_full_disk_and_goes_on_by_itself(volume: Volume) -> None:
    parlor = Stack(volume.path, ENV)
    with StubServer() as stub:
        stub.script("slow", Reply(haggler, delay=0.2))
        try:
            parlor.wait_until_ready()
            _survives(parlor, volume, stub)
        finally:
            volume.resize(256)
            parlor.close()


def _survives(parlor: Stack, volume: Volume, stub: StubServer) -> None:
    with database(parlor) as engine:
        add_models(engine, stub.url, "slow", in_flight=8)
        add_model(parlor, stub.url, "talker", "slow", "Partner Blue")
        round_id = make_round(engine, "slow", "scripted", matches=60, queued=True)
        ROUND.enqueue(settings_of(parlor).broker_url, round_id, 2)
        wait_until(lambda: row_of(engine, round_id).finished > 3, "a round on its way")
        with Participant(negotiation(parlor)) as person:
            text, move_id, ply = until_refused(person, volume, engine)
            stored = moves_of(parlor, person.view["match"])
            assert health(parlor).startswith("503 disk full: 0 MB free, expected 2; make room")
            for name in CHILDREN:
                line = f"{name} was killed by SIGKILL; it starts again"
                volume.fill()
                parlor.send(name)
                wait_until(lambda line=line: line in parlor.output(), line)
            wait_until(lambda: health(parlor).startswith("503"), "the web process, back on the full disk")
            volume.fill()
            assert parlor.process.poll() is None
            volume.make_room()
            assert person.insist(text, move_id, ply) == {"ok": True, "ply": ply + 1}
            person.wait(lambda: person.view["ply"] > ply + 1, "the partner's answer")
            assert moves_of(parlor, person.view["match"])[: ply + 1] == [*stored, text]
            with Participant(negotiation(parlor, opponent="Partner Blue")) as another:
                assert another.move("[message] Hello.")["ok"]
                another.wait(lambda: another.view["ply"] == 2, "the answer of a model, by worker and broker")
        wait_until(parlor.healthy, "ok on /healthz")
        wait_until(lambda: row_of(engine, round_id).status == states.DONE, "the end of the round")
        assert check(engine, round_id, 60) is not None
    for name in CHILDREN:
        wait_until(lambda name=name: parlor.pid(name), f"the process number of {name} in its file")


def test_a_checkpoint_that_does_not_fit_fails_its_job_and_registers_nothing(volume: Volume) -> None:
    elsewhere = new_home()
    try:
        url = f"sqlite:///{elsewhere / 'parlor.db'}"
        settings = load_settings({"PARLOR_HOME": volume.path, "DATABASE_URL": url, "SMALL_MODELS": False})
        upgrade(create_app(settings.model_dump()))
        engine = create_engine(url)
        job_id = make_job(engine, make_dataset(engine, settings), max_steps=2, width=256)
        known = models(engine)
        volume.resize(1)
        run(engine, settings, job_id)
        row = job_of(engine, job_id)
        assert row.status == states.FAILED
        assert "disk" in row.error
        assert "full" in row.error
        assert "make room" in row.error
        assert models(engine) == known
        assert list((volume.path / "checkpoints").glob("*small*[!b]")) == []
        volume.resize(64)
        with writing(engine) as session:
            TRAINING.resume(session, job_id, queued=False)
        run(engine, settings, job_id)
        assert job_of(engine, job_id).status == states.DONE
        assert models(engine) == known + 1
        assert readable_by_others(volume.path) == []
        engine.dispose()
    finally:
        shutil.rmtree(elsewhere, ignore_errors=True)


def test_a_disk_with_little_room_is_said_to_the_monitor_and_to_experimenters(home: object) -> None:
    app: Flask = create_app({"PARLOR_HOME": home, "LOW_DISK_MB": 10**9})
    app.config["WTF_CSRF_ENABLED"] = False
    upgrade(app)
    answer = app.test_client().get("/healthz")
    assert answer.status_code == 503
    assert answer.text.startswith("disk full: ")
    assert "The disk is full." in signed_in(app).get("/admin/").text
    app.config["SETTINGS"] = app.config["SETTINGS"].model_copy(update={"LOW_DISK_MB": 0})
    assert app.test_client().get("/healthz").text == "ok\n"
    assert "The disk is full." not in signed_in(app).get("/admin/").text
