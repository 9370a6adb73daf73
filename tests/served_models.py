"""Engines of local models for tests: rows of the registry that say where one is, and processes that watch one."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flask import Flask
from sqlalchemy import Engine, select

from app.core.config import ROOT
from app.core.extensions import reading, writing
from app.models import LanguageModel
from app.players.local.serving import READY, STARTING, WATCHED_FOR, ServedModel, TokenizerFacts, read_served
from app.registry import add_local_model, serving
from tests.fork_server import Forked
from tests.stack import PATIENCE, free_port, wait_until
from tests.terminals import start_flask
from training.marks import OwnMarks

WATCHER = "the watcher of a test"
FACTS = TokenizerFacts(sha256="1" * 64, ends=(7,), lets_reason=False, marks=OwnMarks(tokens=("#END#",)))


def served_model(base_url: str, **values: Any) -> ServedModel:
    """An engine at an address that was ready a moment ago."""
    now = datetime.now(UTC)
    usual: dict[str, Any] = {
        "engine": "llama.cpp", "base_url": base_url, "model": "m", "dtype": None, "tokenizer": FACTS, "state": READY,
        "since": now, "watcher": WATCHER, "watched_until": now + WATCHED_FOR, "seen_at": now,
    }  # fmt: skip
    return ServedModel(**{**usual, **values})


def add_local(engine: Engine, name: str = "mine", path: str = "small", sha256: str = "0" * 64, **options: Any) -> int:
    """A local model of the registry whose folder nobody looks at; its number."""
    with writing(engine) as session:
        return add_local_model(session, name, None, [], {"path": path, "sha256": sha256, **options}).id


def begin(engine: Engine, name: str, served: ServedModel, *, ready: bool = True) -> None:
    """What a command writes that serves the model; `ready`: and has seen it answer."""
    with writing(engine) as session:
        serving.begin(session, name, served.model_copy(update={"state": STARTING, "seen_at": None}))
        number = row_named(session, name).id
        if ready:
            serving.update(session, number, served.watcher, state=served.state, seen_at=served.seen_at)
            serving.set_play_with(session, name, "server")


def row_named(session: Any, name: str) -> LanguageModel:
    found: LanguageModel = session.scalars(select(LanguageModel).where(LanguageModel.name == name)).one()
    return found


def served_of(engine: Engine, name: str = "mine") -> ServedModel | None:
    """What the model's row says of its engine."""
    with reading(engine) as session:
        return read_served(row_named(session, name).served)


def environment(app: Flask) -> dict[str, str]:
    """That of a process with the settings of the app."""
    return {**os.environ, **{name: str(value) for name, value in app.config["SETTINGS"]}}


@contextmanager
def running(command: Sequence[str], env: Mapping[str, str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that is killed in the end, if it has not ended by itself; what it prints is in `log`."""
    with log.open("ab") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=dict(env), stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)


@contextmanager
def served_by_command(env: Mapping[str, str], log: Path, *line: object) -> Iterator[Forked]:
    """`flask model serve` with these arguments, as `running` has a process."""
    # Until the engine listens on it, a port that the command chooses could become another test’s.
    process = start_flask("model", "serve", "--port", free_port(), *line, env=env, output=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)


def watcher(number: int, *command: str, every: float = 0.2, deadline: float = PATIENCE) -> list[str]:
    """The command that starts an engine and watches it."""
    timing = map(str, (every, deadline, PATIENCE))
    return [sys.executable, "-m", "workers.model_server", str(number), *timing, *command]


def engine_pid(home: Path, number: int, but: int = 0) -> int:
    """The process number of the engine that serves a model, once it has another one than `but`."""
    path = home / "run" / "engines" / f"engine-{number}.pid"
    found = 0

    def is_there() -> bool:
        nonlocal found
        text = path.read_text().strip() if path.exists() else ""
        found = int(text) if text else 0
        return found not in (0, but)

    wait_until(is_there, "an engine")
    return found
