"""Watches the engine that serves a local model: starts it, keeps asking it for a token, restarts it when it dies or
hangs, and stores its status in the model's row. `flask model serve` becomes this process after its initial checks.

Only an answer shows that an engine works: it may be dead behind a server that still reports itself healthy.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import structlog
from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError

from app.core import logs
from app.core.config import Settings, load_settings
from app.core.errors import AppError
from app.core.extensions import DATABASE_AWAY, open_engine, reading, writing
from app.core.failures import BUSY, CONSEQUENCES
from app.core.files import private_folder
from app.models import LanguageModel
from app.players.api.player import ApiPlayer
from app.players.api.remote_models import ListFailed, list_remote
from app.players.base import ChatSampling
from app.players.local import vllm_adapters
from app.players.local.engines import ADAPTERS_AT_RUN_TIME, memory_complaint, merged_folder
from app.players.local.options import read_options
from app.players.local.served_player import request_options
from app.players.local.serving import AWAY, NAMES, READY, STARTING, ServedModel, read_served
from app.registry import serving
from app.registry.adapters import adapter_name
from app.registry.playing import playing
from workers.managed_process import ManagedProcess, Pauses, Program, end_leftover, ending

TICK = 0.2  # seconds between checks of the engine's process
RENEW_EVERY = 10.0  # seconds between two heartbeats in the row
UNLOAD_EVERY = 30.0  # seconds between checks for adapters that nothing plays with
START_PROBES_EVERY = 0.5  # seconds from a probe to the next one, as long as the engine starts
STOP_SECONDS = 10.0  # that an engine has to end by itself
STEADY = 60.0  # seconds that an engine has to answer before its failures are forgotten
_QUESTION = [{"role": "user", "content": "Hi"}]

log = structlog.get_logger()


class Timing(NamedTuple):
    """An engine's time limits in seconds: the interval between probes, and the time for an answer and for a start."""

    every: float
    deadline: float
    start: float


class EngineFailed(AppError):
    """The engine cannot serve the model; one line says why."""

    code = "not_served"


class ModelServer:
    """One model's engine, from its start to its end. `command` starts it; without one it runs elsewhere."""

    def __init__(
        self, database: Engine, settings: Settings, row: LanguageModel, timing: Timing, command: Sequence[str]
    ) -> None:
        served = read_served(row.served)
        if served is None:
            raise EngineFailed(f"{row.name}: expected a model that is to be served, got one that is not")
        self._database, self._number, self._name = database, row.id, row.name
        self._served: ServedModel = served
        self._timing = timing
        options = read_options(row.options)
        self._merged = merged_folder(settings.home, row.id, options.sha256)  # the folder served for adapters
        most = options.sampling(ChatSampling())
        probe = request_options(options, served, most, 1)
        self._probe_options = replace(probe, timeout=timing.deadline, retries=0, reasoning_room=0)
        self._state = STARTING
        self._pauses, self._restarts = Pauses(), 0
        self._began = self._answered_since = time.monotonic()
        self._killed_because = ""  # why this process has ended the engine's, if it has
        self._stop = asyncio.Event()
        self._process = self._managed(command, settings) if command else None

    def _managed(self, command: Sequence[str], settings: Settings) -> ManagedProcess:
        run, log = settings.home / "run" / "engines", settings.home / "logs"
        for folder in (run, log):
            private_folder(folder)
        program = Program(f"engine-{self._number}", [*command], echo=False)
        if (pid_path := run / f"{program.name}.pid").exists():
            end_leftover(pid_path)
        quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true", "PYTHONUTF8": "1"}
        adapters = ADAPTERS_AT_RUN_TIME if self._served.lora_rank is not None else {}
        return ManagedProcess(
            program, run, log, {**os.environ, **quiet, **adapters}, int(settings.LOG_MEGABYTES * 1_000_000)
        )

    async def run(self) -> None:
        """Run until asked to stop. Raises EngineFailed where another try would not help."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup is respected
                loop.add_signal_handler(number, self.stop)
        error = None
        try:
            await self._watch_until_stopped()
        except EngineFailed as failed:
            error = failed.message
            raise
        finally:
            await self._end_process()
            if self._process is not None:
                await asyncio.to_thread(shutil.rmtree, self._merged, ignore_errors=True)
            with contextlib.suppress(SQLAlchemyError), writing(self._database) as session:
                serving.end(session, self._number, self._served.watcher, error)

    def stop(self) -> None:
        """Ask this process to end soon, together with the engine's process."""
        self._stop.set()

    async def _watch_until_stopped(self) -> None:
        self._start_process()
        probe: asyncio.Task[str | None] | None = None
        unloading: asyncio.Task[None] | None = None
        probe_at = renew_at = unload_at = time.monotonic()
        while not await self._stopped_within(TICK):
            now = time.monotonic()
            if self._look_at_process() and probe is not None:
                probe.cancel()
                probe = None
            if probe is not None and probe.done():
                self._take_probe_result(probe.result())
                probe, probe_at = None, now + (START_PROBES_EVERY if self._state != READY else self._timing.every)
            if probe is None and now >= probe_at and (self._process is None or self._process.alive):
                probe = asyncio.create_task(self._probe())
            if self._state != READY and self._process is not None and now - self._began > self._timing.start:
                self._late()
            if now >= renew_at:
                renew_at = now + RENEW_EVERY
                self._store_status()
            if now >= unload_at and self._state == READY and self._served.lora_rank is not None:
                unload_at = now + UNLOAD_EVERY
                if unloading is None or unloading.done():
                    unloading = asyncio.create_task(self._unload_idle_adapters())

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return False
        return True

    # ---- The engine's process --------------------------------------------------------

    def _start_process(self) -> None:
        self._began = time.monotonic()
        if self._process is not None:
            try:
                self._process.start()
            except OSError as error:
                raise EngineFailed(f"{self._name}: expected {self._engine} to start, got {error}") from None

    def _look_at_process(self) -> bool:
        """Whether the process has just ended or been restarted."""
        if self._process is None:
            return False
        self._process.new_lines()  # keeps its log small
        if (end := self._process.died()) is not None:
            self._plan_restart(self._process, end)
            return True
        if self._process.start_at is not None and time.monotonic() >= self._process.start_at:
            self._restarts += 1
            self._start_process()
            self._store_status(restarts=self._restarts)
            return True
        return False

    def _plan_restart(self, process: ManagedProcess, end: str) -> None:
        """Handle the end of the process: set when to restart it. Raises EngineFailed where that would not help."""
        lines = process.last_lines()
        last = f" ({lines[-1].strip()[:300]})" if lines else ""
        killed, self._killed_because = self._killed_because, ""
        said = memory_complaint(lines) if self._state != READY and not killed else None
        if self._state == STARTING and said is None and end == ending(-signal.SIGKILL):
            said = f"{end}, as the system does where memory runs out"
        if said is not None:
            raise EngineFailed(
                f"{self._name}: expected memory for {self._engine}, got none ({said[:300]}); stop other processes, or"
                " serve it on a larger machine and name its --address"
            )
        if self._state == STARTING:
            raise EngineFailed(
                f"{self._name}: expected {self._engine} to serve it, got one that {end}{last}; its output is in"
                f" {process.log_path}"
            )
        pause = self._pauses.next()
        process.start_at = time.monotonic() + pause
        self._away(f"{killed or f'{self._engine} {end}{last}'}; it starts again in {pause:.1f} s")

    def _late(self) -> None:
        """Handle an engine that has not answered within the time allowed for a start."""
        what = f"{self._engine} has not answered {self._timing.start:g} s after its start"
        if self._state == STARTING:
            raise EngineFailed(f"{self._name}: expected an answer, but {what}; --start-deadline gives it more time")
        self._kill(what)

    def _kill(self, why: str) -> None:
        """End an engine that hangs; it is restarted as if it had died. One that runs elsewhere is asked again."""
        if self._process is None:
            self._away(why)
        else:
            self._killed_because, self._began = why, time.monotonic()
            self._process.kill()

    async def _end_process(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        until = time.monotonic() + STOP_SECONDS
        while self._process.alive:
            if time.monotonic() > until:
                self._process.kill()
            self._process.died()
            await asyncio.sleep(TICK / 4)

    @property
    def _engine(self) -> str:
        return NAMES[self._served.engine]

    # ---- Whether it answers ---------------------------------------------------------------

    async def _probe(self) -> str | None:
        """Ask for one token. Returns None if it answered, else why not. Raises EngineFailed where it never will."""
        asked = ChatSampling(max_tokens=1)
        exchange = await ApiPlayer(self._name, self._probe_options).exchange([*_QUESTION], asked)
        if exchange.answer is not None and exchange.outcome != "no_answer":
            return None
        why = str(exchange.generation.error)
        if self._state == STARTING and CONSEQUENCES[exchange.outcome].kind != BUSY:
            raise EngineFailed(f"{self._name}: expected a server that answers for it, got this: {why}")
        return why

    def _take_probe_result(self, why: str | None) -> None:
        """Handle the result of a probe: None for an answer, else why there is none."""
        now = time.monotonic()
        if why is None:
            if self._state != READY:
                self._answered_since = now
                self._print_line(f"{self._name} is served by {self._engine} at {self._served.base_url}")
            elif now - self._answered_since > STEADY:
                self._pauses.begin_anew()
            self._state = READY
            self._store_status(seen_at=datetime.now(UTC))
        elif self._state == STARTING:
            if self._process is None:
                raise EngineFailed(f"{self._name}: expected a server that answers for it, got this: {why}")
        elif self._state == READY:
            self._kill(why)

    def _away(self, why: str) -> None:
        self._print_line(f"{self._name}: {why}")
        self._state = AWAY
        self._store_status(error=why)

    # ---- Adapters over its checkpoint -------------------------------------------------

    async def _unload_idle_adapters(self) -> None:
        """Make the engine unload adapters that nothing plays with; the next player reloads them."""
        try:
            listed = {each.name for each in await list_remote(self._probe_options)}
            idle = await asyncio.to_thread(self._idle_adapters)
            for name in sorted(listed & idle):
                await vllm_adapters.unload(replace(self._probe_options, model=name))
        except (ListFailed, vllm_adapters.AdaptersFailed, *DATABASE_AWAY):
            return  # the next check comes soon
        except Exception:  # matches continue anyway
            log.exception("idle adapters could not be unloaded", model=self._name)

    def _idle_adapters(self) -> set[str]:
        """The names of this model's adapters that nothing plays with."""
        with reading(self._database) as session:
            over = select(LanguageModel).where(LanguageModel.adapter_base_id == self._number)
            used = playing(session)
            return {adapter_name(row) for row in session.scalars(over) if row.id not in used}

    # ---- What others know of it -----------------------------------------------------------

    def _store_status(self, **changes: object) -> None:
        """Store the current status in the row. An unavailable database is tolerated. Raises EngineFailed for a lost
        row.
        """
        try:
            with writing(self._database) as session:
                kept = serving.update(session, self._number, self._served.watcher, state=self._state, **changes)
        except SQLAlchemyError:
            return
        if not kept:
            raise EngineFailed(f"{self._name}: expected to be the one command that serves it, got another one")

    @staticmethod
    def _print_line(line: str) -> None:
        print(line, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve a model until asked to stop. 0: stopped when asked; 1: it could not be served."""
    parser = argparse.ArgumentParser(prog="python -m workers.model_server", description=__doc__)
    parser.add_argument("model", type=int, help="number of its row, which a command has prepared")
    for name in Timing._fields:
        parser.add_argument(name, type=float)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="starts the engine; none: it runs elsewhere")
    given = parser.parse_args(arguments)
    os.umask(0o077)
    logs.set_up()
    settings = load_settings()
    database = open_engine(settings.database_url, pool_pre_ping=True)
    try:
        with reading(database) as session:
            row = session.get_one(LanguageModel, given.model)
            session.expunge_all()
        asyncio.run(_serve_model(database, settings, row, given))
    except AppError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 1
    return 0


async def _serve_model(database: Engine, settings: Settings, row: LanguageModel, given: argparse.Namespace) -> None:
    timing = Timing(given.every, given.deadline, given.start)
    await ModelServer(database, settings, row, timing, given.command).run()


if __name__ == "__main__":
    sys.exit(main())
