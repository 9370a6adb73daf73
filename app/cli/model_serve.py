"""`flask model serve`: serve a local model with an engine beside the workers, in the foreground until Ctrl-C."""

import asyncio
import contextlib
import errno
import os
import shutil
import socket
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

import click
from sqlalchemy import select

from app.cli.base import Command, WholeRange, ensure_database, settings
from app.core.config import ROOT
from app.core.errors import AppError, Conflict, Invalid, Verbatim, shown
from app.core.extensions import reading, writing
from app.core.files import private_folder
from app.inference import weights
from app.models import LanguageModel
from app.players.api.addresses import check_host
from app.players.api.options import read_options as read_api_options
from app.players.api.remote_models import list_remote
from app.players.local import engines
from app.players.local.options import LocalOptions, read_options, resolve
from app.players.local.serving import (
    ENGINES,
    STARTING,
    TRANSFORMERS,
    VLLM,
    WATCHED_FOR,
    Engine,
    ServedModel,
    TokenizerFacts,
    read_served,
)
from app.registry import get_model
from app.registry.checkpoint_check import check_checkpoint
from app.registry.serving import begin, check_can_be_served

_SECONDS = click.FloatRange(min=0.1)
_OLD = 3600  # seconds after which a folder that no command watches is abandoned; one may still be merging


class _Asked(NamedTuple):
    """The options of the command."""

    engine: Engine
    address: str | None
    remote: str | None  # the model's name at the address
    host: str
    port: int | None
    lora_rank: int | None  # highest rank of adapters to accept
    extra: tuple[str, ...]


@click.command(cls=Command)
@click.argument("name")
@click.option("--engine", type=click.Choice(ENGINES), default=TRANSFORMERS, show_default=True, help="What serves it.")
@click.option("--address", metavar="URL", help="Of an engine that runs already, up to /v1; nothing is started then.")
@click.option("--model", "remote", metavar="ID", help="The model's name at --address. [default: the only one there]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of this machine to listen on.")
@click.option("--port", type=WholeRange(1, 65535), metavar="N", help="[default: the one that it had, or a free one]")
@click.option(
    "--lora-rank", type=WholeRange(1, engines.MOST_RANK), metavar="R", help="Of adapters over it that vLLM also plays."
)
@click.option("--every", type=_SECONDS, default=10, show_default=True, help="Seconds from one probe to the next.")
@click.option("--deadline", type=_SECONDS, default=120, show_default=True, help="Seconds for the answer to a probe.")
@click.option("--start-deadline", type=_SECONDS, default=900, show_default=True, help="Seconds until the first answer.")
@click.argument("extra", nargs=-1, type=click.UNPROCESSED, metavar="[-- ENGINE ARGUMENTS]")
def serve(
    name: str,
    every: float,
    deadline: float,
    start_deadline: float,
    engine: Engine,
    extra: tuple[str, ...],
    **given: Any,
) -> None:
    """Serve a local model by an OpenAI-compatible engine, and watch that it answers, until Ctrl-C.

    The checkpoint is loaded once and checked before. The engine is asked for one token again and again; one that dies
    or gives no answer is started again. Then flask model edit NAME --play-with server has it play.
    """
    asked = _Asked(engine, extra=extra, **given)
    ensure_database()
    with reading() as session:
        row = get_model(session, name)
        check_can_be_served(row, datetime.now(UTC))
        session.expunge(row)
    served, command = _prepare_engine_start(row, asked)
    with writing() as session:
        begin(session, name, served)
    _become_watcher(row.id, (every, deadline, start_deadline), command)


def _prepare_engine_start(row: LanguageModel, asked: _Asked) -> tuple[ServedModel, list[str]]:
    """Check everything before the start. The engine for the model's row, and the command that starts it. Raises
    AppError.
    """
    options, home = read_options(row.options), settings().home
    port = None
    if asked.lora_rank is not None and asked.engine != VLLM:
        raise Invalid("--lora-rank", expected="it with --engine vllm only", got=Verbatim(asked.engine))
    if asked.address is None:
        engines.check_startable(asked.engine)
        if asked.remote is not None:
            raise Invalid("--model", expected="it with an --address only", got=Verbatim(shown(asked.remote)))
        port = _port(asked, read_served(row.served))
    elif asked.extra or asked.port is not None:
        raise Invalid("--address", expected="it without --port and arguments of an engine", got=Verbatim("both"))
    base_url = read_api_options({"model": row.name, "base_url": asked.address or _url(asked.host, port)}).base_url
    check_host(base_url, settings().api_hosts)
    folder = resolve(home, options.path)
    remote = None if port is not None else asked.remote or _only_model(base_url)
    merged = _merged_folder(home, row, options.sha256) if port is not None and weights.is_adapter(folder) else None
    facts = _checkpoint(folder, options, merged)
    folder = merged or folder
    model, dtype, command = remote or engines.model_name(asked.engine, row.name, folder), None, []
    if port is not None:
        listens, dtype = (asked.host, port), engines.numbers(options, facts["gpu"])
        command = engines.command(
            asked.engine, folder, model, listens, options.device, dtype, asked.extra, asked.lora_rank
        )
    now = datetime.now(UTC)
    served = ServedModel(
        engine=asked.engine, base_url=base_url, model=model, dtype=dtype,
        tokenizer=TokenizerFacts.model_validate(facts["tokenizer"]), state=STARTING, since=now,
        watcher=uuid.uuid4().hex, watched_until=now + WATCHED_FOR,
        lora_rank=asked.lora_rank and engines.rank_of_vllm(asked.lora_rank),
    )  # fmt: skip
    return served, command


def _checkpoint(folder: Path, options: LocalOptions, merged: Path | None) -> dict[str, Any]:
    """The facts of the checkpoint, which must be the row's and have a chat template; adapters are merged into `merged`.

    Raises AppError.
    """
    engines.check_memory(folder, weights.parameters(folder))
    facts = check_checkpoint(folder, merged)
    try:
        _check_facts(facts, folder, options)
    except AppError:
        if merged is not None:
            shutil.rmtree(merged, ignore_errors=True)
        raise
    return facts


def _check_facts(facts: dict[str, Any], folder: Path, options: LocalOptions) -> None:
    """Raises Conflict if the checkpoint is not the row's, Invalid if it has no chat template."""
    if facts["sha256"] != options.sha256:
        raise Conflict(
            "path",
            expected=f"the checkpoint with hash {options.sha256[:12]}…",
            got=Verbatim(f"{facts['sha256'][:12]}…"),
            remedy="it was changed; add it as a model of its own",
            subject=Verbatim(str(folder)),
        )
    if not facts["chat_template"]:
        raise Invalid(
            "path",
            expected="a tokenizer with a chat template, without which engines take no chats",
            got=Verbatim("one without"),
            remedy="a worker plays it all the same",
            subject=Verbatim(str(folder)),
        )


def _merged_folder(home: Path, row: LanguageModel, sha256: str) -> Path:
    """The folder for adapters merged into a copy of their base, from which an engine starts; its watcher deletes it.

    Folders left behind by killed commands are deleted first.
    """
    merged = engines.merged_folder(home, row.id, sha256)
    private_folder(merged.parent)
    with reading() as session:
        served = {each.id: read_served(each.served) for each in session.scalars(select(LanguageModel))}
    now = datetime.now(UTC)
    for left in merged.parent.iterdir():
        number = left.name.lstrip(".").partition("-")[0]
        engine = served.get(int(number)) if number.isdecimal() else None
        is_watched = engine is not None and engine.is_watched(now)
        if left != merged and not is_watched and now.timestamp() - left.stat().st_mtime > _OLD:
            shutil.rmtree(left, ignore_errors=True)
    return merged


def _url(host: str, port: int | None) -> str:
    """The URL at which the workers of this machine reach a server with this host and port."""
    at = "127.0.0.1" if host in ("0.0.0.0", "") else host  # noqa: S104
    return f"http://{f'[{at}]' if ':' in at else at}:{port}/v1"


def _port(asked: _Asked, before: ServedModel | None) -> int:
    """A free port to listen on. Raises Conflict."""
    if asked.port is not None:
        with _bound(asked.host, asked.port):
            return asked.port
    had = urlsplit(before.base_url).port if before is not None and before.engine == asked.engine else None
    for port in filter(None, (had,)):  # so that rounds which wait for it find it again
        with contextlib.suppress(Conflict), _bound(asked.host, port):
            return port
    with _bound(asked.host, 0) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        raise Conflict(
            "--port" if taken else "--host",
            expected="a port that nothing listens on" if taken else "an address of this machine",
            got=Verbatim(str(port) if taken else f"{shown(host)} ({error.strerror or error})"),
            remedy="name another one",
        ) from None
    with listener:
        yield listener


def _only_model(base_url: str) -> str:
    """The name of the one model that a server lists. Raises Invalid."""
    options = read_api_options({"model": "its models", "base_url": base_url, "key_env": ""})
    names = [each.name for each in asyncio.run(list_remote(options))]
    if len(names) != 1:
        raise Invalid(
            "--model",
            expected="the name of the model at --address",
            got=Verbatim(f"none, and the server lists {', '.join(names[:10]) or 'none'}"),
        )
    return names[0]


def _become_watcher(number: int, timing: tuple[float, ...], command: list[str]) -> NoReturn:
    """Replace this process by the one that starts and watches the engine: it is part of the workers, which commands do
    not import.
    """
    sys.stdout.flush()
    os.chdir(ROOT)
    watcher = [sys.executable, "-m", "workers.model_server", str(number), *map(str, timing), *command]
    os.execv(sys.executable, watcher)  # noqa: S606 - our own
