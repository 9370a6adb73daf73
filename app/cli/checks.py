"""The checks of `flask doctor`: each is a function of the settings that yields findings with their remedies.

They contact only what the settings name, do not wait long, and show no password or key.
"""

import asyncio
import contextlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from alembic.migration import MigrationContext
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from app import training_part
from app.cli.base import counted
from app.core.config import Settings
from app.core.disk import free_mb, low_disk
from app.core.errors import AppError
from app.core.extensions import open_engine, reading, writing
from app.core.queues import BATCH, ENGINES, TRAIN, TURNS, producer, sign_of_worker
from app.inference.client import EngineProcess, ProcessAway
from app.matches.sweep import UPKEEP, held_until
from app.models import Lease
from app.schema import migrations

WORK = ((TURNS, "play", "models' turns"), (BATCH, "play", "rounds"), (TRAIN, "train", "models"))
OK, WARN, FAIL = "ok", "warn", "fail"
SECONDS = 2.0  # the longest that a service may take to answer
BUSY_SECONDS = 10.0  # the same for the process of local models, which says nothing while it loads torch
ROOM_TO_WARN = 2000  # MB
_PASSWORD = re.compile(r"([?&][^=&]*pass[^=&]*=)[^&]*", re.IGNORECASE)
_START = "start Parlor: make run"


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of a check: its subject, its state (ok, warn or fail), the details, and a remedy."""

    subject: str
    state: str
    detail: str
    remedy: str = ""


# ---- The machine ------------------------------------------------------------


def folders(settings: Settings) -> Iterator[Finding]:
    """PARLOR_HOME and its folders are writable."""
    for path in (settings.home, *(settings.home / name for name in ("run", "broker", "logs"))):
        if path.exists() and not os.access(path, os.W_OK | os.X_OK):
            yield Finding("folders", FAIL, f"{path} cannot be written to", "give it to this user, or set PARLOR_HOME")
            return
    if not settings.home.is_dir():
        yield Finding("folders", FAIL, f"{settings.home} is no folder", "make it, or set PARLOR_HOME")
        return
    yield Finding("folders", OK, f"{settings.home} can be written to")


def disk(settings: Settings) -> Iterator[Finding]:
    """There is room for more matches."""
    free = free_mb(settings)
    room = f"{free / 1000:.1f} GB free in {settings.home}"
    state = FAIL if low_disk(settings) is not None else WARN if free < ROOM_TO_WARN else OK
    yield Finding("disk", state, room, "" if state == OK else "make room, or set PARLOR_HOME to a larger disk")


def secret_key(settings: Settings) -> Iterator[Finding]:
    """The key that signs cookies and tickets is long, and nobody else can read it."""
    if settings.SECRET_KEY:
        short = len(settings.SECRET_KEY) < 32
        detail = "SECRET_KEY is set" + (", but shorter than 32 characters" if short else "")
        yield Finding("secret key", WARN if short else OK, detail, "set a longer one" if short else "")
        return
    path = settings.home / "secret_key"
    if not path.exists():
        yield Finding("secret key", OK, "is made at the first start")
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield Finding("secret key", FAIL, f"{path} can be read by others (mode {mode:o})", f"chmod 600 {path}")
    else:
        yield Finding("secret key", OK, f"{path} has mode {mode:o}")


def training() -> Iterator[Finding]:
    """The packages for local models and trainings are installed, if a Parlor that installs them itself runs here."""
    if (found := training_part.lacking()) is not None:
        yield Finding("training part", WARN, str(found.describe()), str(found.remedy()))


# ---- The database -----------------------------------------------------------


def open_database(settings: Settings) -> Engine:
    """An engine with a short connection timeout."""
    url = settings.database_url
    seconds = {} if url.startswith("sqlite") else {"connect_timeout": max(2, int(SECONDS))}
    return open_engine(url, connect_args=seconds)


def database(settings: Settings, engine: Engine) -> Iterator[Finding]:
    """The database answers, has the tables of this version, and accepts a row."""
    shown = masked(settings.database_url)
    try:
        with reading(engine) as session:
            current = set(MigrationContext.configure(session.connection()).get_current_heads())
    except SQLAlchemyError as error:
        remedy = "start it, or mend DATABASE_URL" if settings.DATABASE_URL else "make PARLOR_HOME writable"
        yield Finding("database", FAIL, f"{shown} does not answer: {reason(error, settings)}", remedy)
        return
    wanted = set(migrations().get_heads())
    if current != wanted:
        detail = f"{shown} has the tables of version {_joined_versions(current)}, expected {_joined_versions(wanted)}"
        yield Finding("database", FAIL, detail, "flask db upgrade")
        return
    try:
        with writing(engine) as session:
            session.add(Lease(name="doctor", owner="doctor", until=datetime.now(UTC)))
            session.flush()
            session.rollback()
    except SQLAlchemyError as error:
        detail = f"{shown} takes no rows: {reason(error, settings)}"
        yield Finding("database", FAIL, detail, "look at its rights and its room")
        return
    yield Finding("database", OK, f"{shown} answers, is migrated and can be written to")


def _joined_versions(versions: set[str]) -> str:
    return ", ".join(sorted(versions)) or "none"


def upkeep(engine: Engine) -> Iterator[Finding]:
    """The loop that enqueues forgotten turns again holds its lease."""
    try:
        with reading(engine) as session:
            until = held_until(session, UPKEEP)
    except SQLAlchemyError:
        yield Finding("upkeep", FAIL, "not asked, because the database is not ready", "mend the database first")
        return
    now = datetime.now(UTC)
    if until is not None and until > now:
        yield Finding("upkeep", OK, "runs")
        return
    since = "has never run here" if until is None else f"has not run since {until:%Y-%m-%d %H:%M:%S} UTC"
    yield Finding("upkeep", FAIL, since, f"{_START}, or python -m workers.upkeep")


# ---- The broker and its workers ---------------------------------------------


def broker(settings: Settings) -> Iterator[Finding]:
    """The Redis server answers."""
    try:
        url = settings.redis_url
    except AppError as error:
        yield Finding("broker", FAIL, error.message, "choose a shorter PARLOR_HOME or set REDIS_URL")
        return
    if not url:
        detail = "there is none, so workers and pages look into the database a few times a second"
        yield Finding("broker", OK, detail, "for quicker turns install redis-server or valkey-server, or set REDIS_URL")
        return
    client = Redis.from_url(url, socket_connect_timeout=SECONDS, socket_timeout=SECONDS)
    try:
        client.ping()
        yield Finding("broker", OK, f"{masked(url)} answers")
    except (RedisError, OSError) as error:
        remedy = "start it, or mend REDIS_URL" if settings.REDIS_URL else _START
        yield Finding("broker", FAIL, f"{masked(url)} does not answer: {reason(error, settings)}", remedy)
    finally:
        client.close()


def workers(settings: Settings, broker_answers: bool) -> Iterator[Finding]:
    """Workers listen to the queues of turns, of rounds and of training jobs."""
    if not settings.has_broker:
        yield from _workers_without_broker(settings)
        return
    if not broker_answers:
        yield Finding("workers", FAIL, "not asked, because the broker does not answer", "mend the broker first")
        return
    control = producer(settings.broker_url).control
    looked_into: set[str] = set()
    try:
        replies = control.inspect(timeout=1.0).active_queues() or {}
        of_engines = control.broadcast(ENGINES, reply=True, timeout=SECONDS, limit=len(replies)) if replies else []
    except Exception as error:  # kombu passes on whatever its transport raises
        yield Finding("workers", FAIL, f"cannot be asked: {reason(error, settings)}", "mend the broker first")
        return
    with contextlib.suppress(SQLAlchemyError):  # another check reports it
        looked_into = _looked_into(settings)
    for queue, verb, what in WORK:
        names = sorted(name for name, queues in replies.items() if any(each["name"] == queue for each in queues))
        if names:
            yield Finding("workers", OK, f"{', '.join(names)} {verb}{'s' if len(names) == 1 else ''} {what}")
        elif queue in looked_into:
            yield Finding("workers", OK, f"{queue} {verb}s {what}")
        else:
            yield _without_worker(queue, f"nobody listens to the queue {queue}")
    for name, engines in sorted(item for reply in of_engines for item in reply.items()):
        for figures in engines if isinstance(engines, list) else ():
            yield engine(name, figures)


def _without_worker(queue: str, detail: str) -> Finding:
    """The finding for a queue without a worker; for trainings only a warning until the training part is installed."""
    if queue == TRAIN and training_part.is_coming():
        return Finding("workers", WARN, f"{detail} yet", "it starts once the training part is installed")
    return Finding("workers", FAIL, detail, _START)


def _workers_without_broker(settings: Settings) -> Iterator[Finding]:
    """Whether each queue has a worker that polls for its work."""
    try:
        looked_into = _looked_into(settings)
    except SQLAlchemyError:
        yield Finding("workers", FAIL, "not asked, because the database is not ready", "mend the database first")
        return
    for queue, verb, what in WORK:
        if queue in looked_into:
            yield Finding("workers", OK, f"{queue} {verb}s {what}")
        else:
            yield _without_worker(queue, f"nobody looks for work of the queue {queue}")


def _looked_into(settings: Settings) -> set[str]:
    """The queues that a worker polls in the database, according to its lease there."""
    database = open_database(settings)
    try:
        with reading(database) as session:
            signs = {queue: held_until(session, sign_of_worker(queue)) for queue, _, _ in WORK}
    finally:
        database.dispose()
    return {queue for queue, until in signs.items() if until is not None and until > datetime.now(UTC)}


def models_process(settings: Settings) -> Iterator[Finding]:
    """The process that holds local models answers, if there should be one, and how its engines are doing."""
    if not (settings.MODELS_PROCESS or settings.models_socket.exists()):
        return  # each worker holds its own and reports them over the broker
    subject = "local models"
    try:
        found = asyncio.run(asyncio.wait_for(EngineProcess(settings.models_socket).figures(), BUSY_SECONDS))
    except ProcessAway as away:
        yield Finding(subject, FAIL, str(away), f"{_START}, or python -m workers.models")
    except TimeoutError:
        busy = f"their process gave no answer within {BUSY_SECONDS:g} s, as when it loads one"
        yield Finding(subject, WARN, busy, "ask again in a moment")
    else:
        yield Finding(subject, OK, f"their process answers and has answered with {counted(len(found), 'checkpoint')}")
        for figures in found:
            yield engine("models", figures)


def engine(worker: str, figures: Mapping[str, Any]) -> Finding:
    """How a worker's local model answers, from its EngineFigures; slow answers, or few at a time, give a warning."""
    subject, answers = "local model", figures["answers"]
    did = f"{worker}, {figures['folder']}: {counted(answers, 'answer')}"
    did += f", {figures['weights'] >> 20:,} of {figures['most_weights'] >> 20:,} MB for weights"
    if figures["slow"] is not None:
        remedy = "a model whose attention spans all tokens, with keys and values of all layers, is batched as it plays"
        return Finding(subject, WARN, f"{did}, made slowly by the library's own loop: {figures['slow']}", remedy)
    if figures["at_once"] is not None:
        most = f"{did}, at most {figures['at_once']} at once just now, because memory ran out"
        return Finding(subject, WARN, f"{most} ({figures['out_of_memory']} times)", "lower the model's in_flight")
    return Finding(subject, OK, f"{did}, out of memory {figures['out_of_memory']} times")


# ---- Showing ----------------------------------------------------------------


def masked(url: str) -> str:
    """The URL with its passwords masked, wherever they are in it."""
    netloc = urlsplit(url).netloc
    user, at, host = netloc.rpartition("@")
    if ":" in user:
        url = url.replace(netloc, f"{user.partition(':')[0]}:***{at}{host}", 1)
    return _PASSWORD.sub(r"\1***", url)


def reason(error: Exception, settings: Settings) -> str:
    """The first line of an error, with the passwords of the settings masked."""
    text = str(getattr(error, "orig", None) or error).strip().splitlines()
    line = text[0] if text else type(error).__name__
    for url in (settings.DATABASE_URL, settings.REDIS_URL):
        parts = urlsplit(url)
        secrets = {parts.password or "", unquote(parts.password or "")}
        secrets |= {value for name, value in parse_qsl(parts.query) if "pass" in name.lower()}
        for secret in filter(None, secrets):
            line = line.replace(secret, "***")
    return line


def as_json(finding: Finding) -> dict[str, Any]:
    """A finding for programs."""
    return {
        "check": finding.subject,
        "state": finding.state,
        "detail": finding.detail,
        "remedy": finding.remedy or None,
    }
