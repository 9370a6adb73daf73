"""Backups on both databases: written under play, put back after everything was lost, refused where they would harm."""

import hashlib
import json
import shutil
import threading
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask_migrate import upgrade as upgrade_by_migrations
from sqlalchemy import create_engine, delete, func, inspect, select, text

from app.backup.archive import ArchiveReader
from app.backup.create import create
from app.backup.restore import restore
from app.backup.tables import tables_of
from app.core.config import load_settings
from app.core.errors import AppError
from app.core.extensions import db, reading, writing
from app.matches import live
from app.matches.stored import StoredSeat, load
from app.models import Dataset, EventRow, LanguageModel, MatchRow, RecruitmentIdentity
from app.models import Participant as Person
from app.registry import add_local_model
from app.schema import bare_app, newest_revision, upgrade
from tests.jobs import make_dataset
from tests.new_sqlite import fill_new_sqlite
from tests.participant import Participant
from tests.services import empty
from tests.shell import Shell
from tests.stack import TURNS_ALONE, Stack, readable_by_others, wait_until
from tests.tables import database, negotiation, settings_of

CONFIG = {"counts": [3, 2, 1], "values": [[1, 3, 1], [2, 0, 4]], "first": 0}
_LARGE = 40_000_000  # bytes of a model's file


def flask(shell: Shell, parlor: Stack, *arguments: str) -> str:
    done = shell.flask(arguments, env=parlor.env)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def figures(parlor: Stack, matches: list[str]) -> list[Any]:
    """All that the log and the rows say of matches."""
    with database(parlor) as engine, engine.connect() as connection:
        events = select(EventRow.match_id, EventRow.seq, EventRow.kind, EventRow.move_id, EventRow.body, EventRow.at)
        kept = [column for column in MatchRow.__table__.columns if column.key != "inserted_in"]  # which is the server's
        rows = select(*kept).where(MatchRow.id.in_(matches)).order_by(MatchRow.id)
        return [
            *connection.execute(rows).all(),
            *connection.execute(events.where(EventRow.match_id.in_(matches)).order_by(EventRow.match_id, EventRow.seq)),
        ]


def play_one(parlor: Stack) -> str:
    """A negotiation from its beginning to a deal."""
    with Participant(negotiation(parlor)) as person:
        assert (answer := person.move("[message] I would like the book."))["ok"], answer
        person.wait_for_turn()
        assert (answer := person.move("[propose] (1 books, 0 hats, 0 balls)"))["ok"], answer
        person.wait(lambda: person.over, "the end")
        return str(person.view["match"])


def services_of(request: pytest.FixtureRequest) -> dict[str, str]:
    if request.param == "sqlite":
        return {}
    return {"DATABASE_URL": request.getfixturevalue("service_database")}


@pytest.fixture(params=["sqlite", "postgresql"])
def services(request: pytest.FixtureRequest) -> dict[str, str]:
    return services_of(request)


@pytest.mark.either_database
def test_the_drill(
    services: dict[str, str], stack: Callable[..., Stack], shell: Shell, home: Path, tmp_path: Path
) -> None:
    home.chmod(0o755)
    parlor = stack({**services, "GUEST_MATCHES_PER_MINUTE": "0", **TURNS_ALONE})
    file = tmp_path / "parlor.backup"
    before = [play_one(parlor) for _ in range(2)]
    with database(parlor) as engine:
        dataset = make_dataset(engine, settings_of(parlor))
    table = negotiation(parlor)
    with Participant(table) as person:
        assert person.move("[message] Let us begin.", "first")["ok"]
        person.wait_for_turn()
    done = threading.Event()
    during: list[str] = []

    def play_on() -> None:
        while not done.is_set():
            during.append(play_one(parlor))

    with ThreadPoolExecutor(2) as pool:
        players = [pool.submit(play_on) for _ in range(2)]
        try:
            wait_until(lambda: during or any(player.done() for player in players), "play")
            said = json.loads(flask(shell, parlor, "backup", str(file), "--json"))
            assert json.loads(flask(shell, parlor, "backup", str(file), "--overwrite", "--json"))["rows"]["match"] >= 2
        finally:
            done.set()
        for player in players:
            player.result()
    assert said["files"] == 2
    assert file.stat().st_mode & 0o777 == 0o600
    assert "is whole" in flask(shell, parlor, "restore", str(file), "--check")
    kept = figures(parlor, [*before, table.match])
    refused = shell.flask(("restore", file), env=parlor.env)
    assert refused.exit_code == 2
    assert "stop" in refused.stderr
    assert refused.stderr.count("\n") == 1

    assert readable_by_others(home) == []
    assert parlor.stop() == 0
    shutil.rmtree(home)  # everything is lost
    home.mkdir()
    if services:
        empty(services["DATABASE_URL"])
    flask(shell, parlor, "restore", str(file))
    again = stack({**services, "PORT": parlor.env["PORT"], **TURNS_ALONE})
    assert figures(again, [*before, table.match]) == kept
    with database(again) as engine, reading(engine) as session:
        found = session.scalars(select(MatchRow.id)).all()
        for match_id in found:  # whatever was in the middle of it when the backup began can be read
            assert [logged.seq for logged in load(session, match_id).log]
        assert session.scalar(select(Dataset.sha256)) == dataset.sha256
    assert (home / "datasets" / f"{dataset.sha256}.jsonl").is_file()
    with Participant(table) as person:  # with the ticket of before
        assert person.view["ply"] == 2
        assert person.move("[message] Let us begin.", "first", 0) == {"ok": True, "ply": 1}
        assert person.move("[propose] (1 books, 0 hats, 0 balls)")["ok"]
        person.wait(lambda: person.over, "the end")
    assert readable_by_others(home) == []
    play_one(again)  # numbers that the database gives go on


# In this process: what may not be done, and that nothing is changed then.


def _upgrade(revision: str = "head") -> None:
    """What the migrations do; in SQLite, where they take a second for an empty database, their result is copied."""
    if db.engine.dialect.name == "sqlite" and not inspect(db.engine).get_table_names():
        assert revision == newest_revision()
        with db.engine.connect() as connection:
            fill_new_sqlite(connection.connection.driver_connection)
    else:
        upgrade_by_migrations(revision=revision)


@pytest.fixture
def small(app: Flask, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Any]]:
    """The backup of an installation with a match and a checkpoint, and its settings."""
    monkeypatch.setattr("app.backup.restore.upgrade", _upgrade)
    settings = app.config["SETTINGS"]
    folder = home / "checkpoints" / "small"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    with writing(db.engine) as session:
        live.create(
            session,
            "negotiation",
            CONFIG,
            (StoredSeat("person"), StoredSeat("person")),
            seed=1,
            source="live",
            instant=True,
        )
        add_local_model(session, "small", None, ["negotiation"], {"path": "checkpoints/small", "sha256": "5f" * 32})
        add_local_model(session, "far", None, ["negotiation"], {"path": "/nowhere/far", "sha256": "5f" * 32})
    file = tmp_path / "small.backup"
    manifest = create(settings, db.engine, file)
    assert manifest.left_out == ["/nowhere/far: the checkpoint of far, which is not in PARLOR_HOME"]
    return file, settings


def matches(engine: Any) -> int:
    with reading(engine) as session:
        return session.scalar(select(func.count()).select_from(MatchRow)) or 0


def test_a_restore_into_a_filled_installation_has_to_be_asked_for(small: tuple[Path, Any], home: Path) -> None:
    file, settings = small
    with pytest.raises(
        AppError, match="expected an empty one, got one with 1 row of somebody's in the table match; --replace"
    ):
        restore(settings, db.engine, file)
    with writing(db.engine) as session:
        live.create(
            session,
            "negotiation",
            CONFIG,
            (StoredSeat("person"), StoredSeat("person")),
            seed=2,
            source="live",
            instant=True,
        )
    (home / "checkpoints" / "small" / "model.safetensors").write_bytes(b"others")
    restore(settings, db.engine, file, replace=True)
    assert matches(db.engine) == 1
    assert (home / "checkpoints" / "small" / "model.safetensors").read_bytes() == b"weights"
    with writing(db.engine) as session:
        live.create(
            session,
            "negotiation",
            CONFIG,
            (StoredSeat("person"), StoredSeat("person")),
            seed=3,
            source="live",
            instant=True,
        )
        add_local_model(session, "new", None, ["negotiation"], {"path": "checkpoints/small", "sha256": "5f" * 32})
        assert session.scalar(select(func.count(LanguageModel.id))) == session.scalar(
            select(func.max(LanguageModel.id))
        )
    assert list(home.glob(".restore-*")) == []


def test_files_that_are_there_already_are_compared_without_being_loaded(
    small: tuple[Path, Any], home: Path, tmp_path: Path
) -> None:
    _, settings = small
    file, weights = tmp_path / "large.backup", home / "checkpoints" / "small" / "model.safetensors"
    with weights.open("wb") as large:
        large.truncate(_LARGE)
    create(settings, db.engine, file)
    with writing(db.engine) as session:
        for table in reversed(tables_of(session.connection())):
            session.execute(delete(table))
    tracemalloc.start()
    restore(settings, db.engine, file)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert matches(db.engine) == 1
    assert most < _LARGE
    with writing(db.engine) as session:
        for table in reversed(tables_of(session.connection())):
            session.execute(delete(table))
    with weights.open("r+b") as large:
        large.seek(-1, 2)
        large.write(b"1")
    with pytest.raises(AppError, match="expected nothing, or what the backup holds, got something else"):
        restore(settings, db.engine, file)


@pytest.mark.parametrize("harm", ["cut", "row", "file", "manifest", "other"])
def test_a_broken_backup_changes_nothing(small: tuple[Path, Any], home: Path, harm: str) -> None:
    file, settings = small
    broken = file.with_name("broken")
    if harm == "cut":
        broken.write_bytes(file.read_bytes()[:-100])
    elif harm == "other":
        broken.write_text("no backup")
    else:
        name = {"row": "tables/match.jsonl", "file": "files/checkpoints/small/model.safetensors"}.get(
            harm, "manifest.json"
        )
        with zipfile.ZipFile(file) as whole, zipfile.ZipFile(broken, "w") as into:
            for each in whole.namelist():
                into.writestr(each, whole.read(each) + (b" " if each == name else b""))
    (home / "checkpoints" / "small" / "model.safetensors").write_bytes(b"others")
    with pytest.raises(AppError, match="broken: expected a whole backup"):
        restore(settings, db.engine, broken, replace=True)
    assert matches(db.engine) == 1
    assert (home / "checkpoints" / "small" / "model.safetensors").read_bytes() == b"others"


def _no_list(row: list[Any]) -> Any:
    return {"id": row[0]}


HARMS: dict[str, tuple[str, Callable[[list[Any]], Any]]] = {
    "text for a number": ("language_model", lambda row: ["one", *row[1:]]),
    "a mapping for a text": ("language_model", lambda row: [row[0], {"a": 1}, *row[2:]]),
    "a number beyond the database": ("language_model", lambda row: [10**30, *row[1:]]),
    "nothing where something has to be": ("language_model", lambda row: [row[0], None, *row[2:]]),
    "one that stands twice": ("language_model", lambda row: [1, *row[1:]]),
    "a row that refers to none": ("event", lambda row: ["missing" if each == row[0] else each for each in row]),
    "a mapping for a row": ("language_model", _no_list),
}


@pytest.mark.parametrize("harm", HARMS)
def test_rows_that_no_parlor_wrote_change_nothing(small: tuple[Path, Any], home: Path, harm: str) -> None:
    file, settings = small
    broken = _with_rows(file, *HARMS[harm])
    with pytest.raises(AppError) as caught:
        restore(settings, db.engine, broken, replace=True)
    assert "\n" not in caught.value.message
    assert matches(db.engine) == 1
    assert (home / "checkpoints" / "small" / "model.safetensors").read_bytes() == b"weights"
    assert list(home.glob(".restore-*")) == []


@pytest.mark.parametrize("columns", [["id", "id"], ["nonsense"]])
def test_columns_that_no_table_has_change_nothing(small: tuple[Path, Any], columns: list[str]) -> None:
    file, settings = small
    broken = _with_rows(file, "language_model", lambda row: row[: len(columns)], columns)
    with pytest.raises(AppError, match="expected columns of language_model, each once"):
        restore(settings, db.engine, broken, replace=True)
    assert matches(db.engine) == 1


def _with_rows(file: Path, table: str, change: Callable[[list[Any]], Any], columns: list[str] | None = None) -> Path:
    """The backup with the rows of a table changed, and hashes that are right."""
    broken, name = file.with_name("broken"), f"tables/{table}.jsonl"
    with zipfile.ZipFile(file) as whole, zipfile.ZipFile(broken, "w") as into:
        manifest = json.loads(whole.read("manifest.json"))
        rows = [change(json.loads(line)) for line in whole.read(name).splitlines()]
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        entry = manifest["tables"][table]
        entry.update(sha256=hashlib.sha256(content).hexdigest(), size=len(content), columns=columns or entry["columns"])
        text = json.dumps(manifest).encode()
        changed = {name: content, "manifest.json": text, "manifest.sha256": hashlib.sha256(text).hexdigest().encode()}
        for each in whole.namelist():
            into.writestr(each, changed.get(each, whole.read(each)))
    return broken


def test_a_backup_larger_than_the_disk_is_refused_before_it_is_unpacked(
    small: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, settings = small
    monkeypatch.setattr(ArchiveReader, "unpacked", 10**18)
    with pytest.raises(AppError, match="expected room for the 1000000000000 MB of the backup, got"):
        restore(settings, db.engine, file, replace=True)


def test_days_come_back_as_they_were(small: tuple[Path, Any], tmp_path: Path) -> None:
    _, settings = small
    day = date(2027, 2, 28)
    with writing(db.engine) as session:
        person = Person(code="abc", created_at=datetime.now(UTC))
        session.add(person)
        session.flush()
        session.add(
            RecruitmentIdentity(participant_id=person.id, recruiter="prolific", external_id="5f", remove_on=day)
        )
    file = tmp_path / "days.backup"
    create(settings, db.engine, file)
    restore(settings, db.engine, file, replace=True)
    with reading(db.engine) as session:
        assert session.scalars(select(RecruitmentIdentity.remove_on)).all() == [day]


def test_a_restore_that_fails_at_its_last_step_leaves_all_as_it_was(
    small: tuple[Path, Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, settings = small
    weights = home / "checkpoints" / "small" / "model.safetensors"
    weights.write_bytes(b"others")
    (home / "secret_key").write_text("another key")
    with writing(db.engine) as session:
        session.execute(text("DELETE FROM seat"))
    exchanges = "app.backup.restore._SqliteExchange.__call__", "app.backup.restore._PostgresExchange.__call__"

    def fail(_self: object) -> None:
        raise AppError("the database went away")

    for exchange in exchanges:
        monkeypatch.setattr(exchange, fail)
    with pytest.raises(AppError, match="went away"):
        restore(settings, db.engine, file, replace=True)
    assert weights.read_bytes() == b"others"
    assert (home / "secret_key").read_text() == "another key"
    with reading(db.engine) as session:
        assert session.scalar(text("SELECT count(*) FROM seat")) == 0


def test_a_backup_of_one_database_can_be_put_into_the_other_and_is_migrated(
    home: Path, service_database: str, tmp_path: Path
) -> None:
    ours = load_settings({"PARLOR_HOME": home, "DATABASE_URL": "", "SMALL_MODELS": False})
    upgrade(bare_app(ours))
    engine = create_engine(ours.database_url)
    with writing(engine) as session:
        live.create(
            session,
            "negotiation",
            CONFIG,
            (StoredSeat("person"), StoredSeat("person")),
            seed=1,
            source="live",
            instant=True,
        )
    file, back = tmp_path / "sqlite.backup", tmp_path / "postgresql.backup"
    create(ours, engine, file)
    theirs = load_settings({"PARLOR_HOME": home, "DATABASE_URL": service_database, "SMALL_MODELS": False})
    other = create_engine(theirs.database_url)
    restore(theirs, other, file)
    create(theirs, other, back)
    one, two = ArchiveReader(file), ArchiveReader(back)
    for name in one.manifest.tables:
        assert [*chain(*one.table(name))] == [*chain(*two.table(name))]
    restore(ours, engine, back, replace=True)
    assert matches(engine) == 1
    engine.dispose()
    other.dispose()
