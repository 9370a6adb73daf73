"""The checks of `flask doctor` on the registry: opponents for every game, and whether each model can be reached."""

import importlib.util
import os
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from app import training_part
from app.cli.checks import FAIL, OK, SECONDS, WARN, Finding
from app.core.config import load_settings
from app.core.errors import AppError
from app.core.extensions import reading
from app.games import GAMES
from app.inference import weights
from app.models import LanguageModel
from app.players.api.addresses import check_host
from app.players.api.options import read_options
from app.players.local import options as local_options
from app.players.local.serving import NAMES, READY, SERVER, WORKER, ServedModel, in_words
from app.registry import list_models
from app.registry.adapters import engine_of


def models(engine: Engine, home: Path, probe: Callable[[LanguageModel], Finding | None]) -> Iterator[Finding]:
    """Every game has an opponent for people; every API model has its key and a server, every local one its folder in
    PARLOR_HOME (`home`) or elsewhere. `probe` may call the models.
    """
    try:
        with reading(engine) as session:
            rows = [row for row in list_models(session) if row.usable_in_rounds or row.offered_to_people]
            session.expunge_all()
    except SQLAlchemyError:
        yield Finding("models", FAIL, "not asked, because the database is not ready", "mend the database first")
        return
    for game in GAMES:
        number = sum(game in row.games for row in rows if row.offered_to_people)
        remedy = "" if number else "flask model set NAME --people on"
        count = f"people are offered {number or 'no'} model{'' if number == 1 else 's'} for {game}"
        yield Finding("models", OK if number else FAIL, count, remedy)
    for row in rows:
        if row.kind == "api":
            yield from _api_model(row, probe)
        elif row.kind == "local":
            yield from _local_model(row, home, probe)


def _api_model(row: LanguageModel, probe: Callable[[LanguageModel], Finding | None]) -> Iterator[Finding]:
    try:
        options = read_options(row.options)
        check_host(options.base_url, load_settings().api_hosts)
    except AppError as error:
        yield Finding(f"model {row.name}", FAIL, error.message, "add it again, and switch this one off")
        return
    subject = f"model {row.name}"
    if options.key_env and not os.environ.get(options.key_env, "").strip():
        yield Finding(subject, WARN, f"{options.key_env} is not set here", "set it where the workers run")
        return
    failure = unreachable(options.base_url)
    if failure:
        detail = f"{options.base_url} cannot be reached: {failure}"
        yield Finding(subject, WARN, detail, "start the server, or switch the model off")
        return
    yield probe(row) or Finding(subject, OK, f"{options.base_url} can be reached")


def _local_model(row: LanguageModel, home: Path, probe: Callable[[LanguageModel], Finding | None]) -> Iterator[Finding]:
    subject = f"model {row.name}"
    if (served := engine_of(row)) is not None:
        yield _server(row, served)
        if row.play_with == SERVER:
            if served.state == READY and served.is_watched(datetime.now(UTC)) and (called := probe(row)) is not None:
                yield called
            return
    folder = local_options.resolve(home, str(row.options.get("path")))
    if (lacking := _lacking_folder(folder)) is not None:
        yield Finding(subject, WARN, f"{lacking} is not here", "put it where the workers run, or switch the model off")
    elif (found := training_part.lacking()) is not None:
        yield Finding(subject, WARN, f"waits for the training part, which is {found.describe()}", str(found.remedy()))
    elif importlib.util.find_spec("torch") is None:
        yield Finding(subject, WARN, "torch is not installed here", training_part.BY_HAND)
    else:
        yield probe(row) or Finding(subject, OK, f"{folder} is there")


def _lacking_folder(folder: Path) -> str | None:
    """The folder of a checkpoint, or of the base of adapters, if it is missing; None otherwise."""
    if not weights.is_adapter(folder):
        return None if (folder / "config.json").is_file() else str(folder)
    base = weights.base_of(folder)
    return None if base is not None and (base.folder / "config.json").is_file() else f"the base of {folder}"


def _server(row: LanguageModel, served: ServedModel) -> Finding:
    """Whether a model's engine answers; it is a warning only if the engine plays its matches."""
    now = datetime.now(UTC)
    plays = row.play_with == SERVER
    said = f"{NAMES[served.engine]} at {served.base_url} {in_words(served, now)}{', and plays' if plays else ''}"
    if served.state == READY and served.is_watched(now):
        return Finding(f"server of {row.name}", OK, said)
    if not plays:
        return Finding(f"server of {row.name}", OK, f"{said}; workers play")
    remedy = f"flask model serve {row.name}, or flask model edit {row.name} --play-with {WORKER}"
    return Finding(f"server of {row.name}", WARN, said, remedy)


def unreachable(url: str) -> str | None:
    """The reason that nothing accepts connections at the URL's host and port within two seconds, including DNS
    look-up.
    """
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    result = [f"no answer within {SECONDS:g} s"]

    def connect() -> None:
        try:
            socket.create_connection((parts.hostname, port), timeout=SECONDS).close()
            result[0] = ""
        except OSError as error:
            result[0] = error.strerror or str(error)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(SECONDS)
    return result[0] or None
