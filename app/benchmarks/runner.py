"""A worker running one benchmark: it starts the process that scores the tasks, and stores what it reports.

The process reports each task as soon as it is scored, so after any kill the next run takes the remaining tasks. For a
model behind an API, the process stores its questions and exits; the chats are made here, as separate requests, and the
process is restarted with the answers.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

import structlog
from sqlalchemy.orm import Session

from app.benchmarks import lifecycle, tasks
from app.benchmarks.chats import BenchmarkChats
from app.benchmarks.files import folder_of
from app.benchmarks.job import BENCHMARK
from app.core.disk import is_full
from app.core.errors import AppError
from app.core.extensions import DATABASE_AWAY, reading, reason_of, transact_with_retry, writing
from app.core.files import private_folder, replace_file
from app.core.internal_errors import internal_error, unexplained
from app.games.base import JSON
from app.jobs import states
from app.jobs.process import GRACE, INTERRUPTED, FileTail, JobProcess
from app.jobs.spending import BudgetReached
from app.matches.turns import WorkerContext

TICK = 0.5  # seconds between checks for the process's events and for a request to stop the job
AWAY = 600.0  # seconds that a job's end waits for an unavailable database
MOST_DEATHS = 5  # a job whose worker or process died this often, with no task scored between, is given up
CHATS_FIRST = 3  # the exit code of a run that needs answers

T = TypeVar("T")
log = structlog.get_logger()


class BenchmarkLeaseLost(Exception):
    """Another worker has taken the job."""


def run(context: WorkerContext, job_id: int) -> None:
    """Run a benchmark until it is over, or it or the worker is stopped; do nothing if another worker runs it.

    Any error is stored on the job's row.
    """
    with writing(context.database) as session:
        if not BENCHMARK.take(session, job_id, context.owner, context.settings.TRAIN_LEASE):
            return
    try:
        _BenchmarkRunner(context, job_id).work()
    except BenchmarkLeaseLost:
        log.warning("a benchmark went to somebody else", job=job_id)


class _BenchmarkRunner:
    """See `run`."""

    def __init__(self, context: WorkerContext, job_id: int) -> None:
        self._context = context
        self._job_id = job_id
        self._lease = context.settings.TRAIN_LEASE
        with reading(context.database) as session:
            self._folder = folder_of(context.settings.home, BENCHMARK.get(session, job_id))
        self._told: list[JSON] = []  # events that are not stored yet
        self._renew_at = 0.0
        self._stopping_since: float | None = None
        self._reason: str | None = None  # the failure reported by the process
        self._printed = ""  # its last line

    def work(self) -> None:
        """Run until nothing is left or it is told to stop, and leave everything in order. Raises Lost."""
        error = None
        try:
            if self._until_scored():
                self._store_events_and_change(
                    lambda session: lifecycle.finish(session, self._job_id, self._context.owner)
                )
                return
        except (AppError, OSError) as problem:
            full = isinstance(problem, OSError) and is_full(problem)
            home = self._context.settings.home
            error = f"the disk of {home} is full; make room and resume" if full else " ".join(str(problem).split())
        except (BenchmarkLeaseLost, *DATABASE_AWAY):  # upkeep calls a worker once the database is back
            raise
        except Exception as problem:
            self._told = []  # events that cannot be stored would also prevent storing the error
            error = internal_error("a worker at a benchmark broke", problem, job=self._job_id)
        self._store_events_and_change(
            lambda session: BENCHMARK.release(session, self._job_id, self._context.owner, error)
        )

    def _until_scored(self) -> bool:
        """Whether every task has a result; False if it is to be stopped. Raises AppError if it cannot continue."""
        for folder in (self._folder.parent, self._folder):
            private_folder(folder)
        events = FileTail(self._path_in_folder("progress.jsonl"), whole=True)
        self._take_in(events)
        self._store_events_and_change(lambda _session: None)
        while (config := self._tasks_left())["tasks"]:
            code = self._run_process_once(config, events)
            if self._stopping_since is not None:
                return False
            if code == CHATS_FIRST:
                if not self._answer_requests():
                    return False
            elif code < 0 or code == INTERRUPTED:
                self._store_events_and_change(lambda session: lifecycle.count_death(session, self._job_id))
            elif code != 0:
                raise AppError(self._reason or unexplained("the benchmark", code, self._printed))
        return True

    def _tasks_left(self) -> JSON:
        """The config for the remaining tasks; the model's answers so far are written beside it.

        Raises AppError after too many tries.
        """
        with reading(self._context.database) as session:
            row = BENCHMARK.get(session, self._job_id)
            if row.lease_count >= MOST_DEATHS:
                raise AppError(
                    f"the benchmark or its worker was killed {row.lease_count} times without a task scored between,"
                    " probably for lack of memory; lower batch"
                )
            config = lifecycle.run_config(session, row, self._context.settings.home)
            answers = {} if "checkpoint" in config else lifecycle.answers_of(session, self._job_id)
        if "checkpoint" not in config:
            config |= {
                "answers": str(self._path_in_folder("answers.jsonl")),
                "requests": str(self._path_in_folder("requests.jsonl")),
            }
            lines = (f"{json.dumps({'key': key, 'text': text})}\n".encode() for key, text in answers.items())
            replace_file(self._path_in_folder("answers.jsonl"), lines, private=True)
        replace_file(self._path_in_folder("config.json"), [json.dumps(config, indent=2).encode()], private=True)
        return config

    def _run_process_once(self, config: Mapping[str, Any], events: FileTail) -> int:
        """Run the process once, over the tasks of `config`, and return its exit code."""
        self._reason, self._printed = None, ""
        self._told.append({"event": "progress", "task": config["tasks"][0]["name"]})
        printed_into = self._path_in_folder("log.txt")
        files = (
            "--config",
            str(self._path_in_folder("config.json")),
            "--progress",
            str(self._path_in_folder("progress.jsonl")),
        )
        command = (*tasks.PROGRAM, "run", *files, "--parent", str(os.getpid()))
        printed_into.touch(mode=0o600)
        printed = FileTail(printed_into, whole=False)
        process = JobProcess(
            command, self._path_in_folder("lock"), printed_into, self._store_and_renew_lease, name="benchmark"
        )
        try:
            while (code := process.poll(TICK)) is None:
                self._take_in(events)
                self._look_after(process)
        finally:
            process.kill()
        self._take_in(events)
        self._printed = next((line for line in reversed(printed.lines()) if line.strip()), "")
        self._store_and_renew_lease()
        return code

    def _answer_requests(self) -> bool:
        """Send the process's questions to the model. False if the job is to be stopped."""
        wanted = [
            json.loads(line) for line in self._path_in_folder("requests.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        chats = BenchmarkChats(self._context, self._job_id)
        try:
            return self._send_all_chats(chats, wanted)
        except BudgetReached:
            with reading(self._context.database) as session:
                chats.check_budget(session)  # again, because pending calls have returned since
            raise

    def _send_all_chats(self, chats: BenchmarkChats, wanted: Sequence[JSON]) -> bool:
        """Send all of these, as many at once as the model takes. False if the job is to be stopped."""
        pool = ThreadPoolExecutor(chats.at_once)
        asked = [pool.submit(chats.ask, each["key"], each["text"], each["max_tokens"]) for each in wanted]
        pending = {*asked}
        try:
            while pending:
                done, pending = wait(pending, TICK, return_when="FIRST_EXCEPTION")
                for each in done:
                    each.result()
                self._told.append({"event": "asked", "done": len(wanted) - len(pending), "of": len(wanted)})
                if self._store_and_renew_lease() == states.CANCELLING or self._context.stopping.is_set():
                    return False
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            pending = {each for each in pending if not each.cancelled()}
            while pending:  # chats in progress; this worker keeps the job until they are over
                _, pending = wait(pending, TICK)
                self._store_and_renew_lease()
            answered = sum(not each.cancelled() and each.exception() is None for each in asked)
            self._told.append({"event": "asked", "done": answered, "of": len(wanted)})
        return True

    # ---- What it tells -----------------------------------------------------------

    def _take_in(self, events: FileTail) -> None:
        for line in events.lines():
            try:
                event = json.loads(line)
            except ValueError:  # cut off by a kill
                continue
            self._told.append(event)
            if event.get("event") == "failed":
                self._reason = event["message"]

    def _look_after(self, process: JobProcess) -> None:
        """Store what is new, and end the process if requested."""
        wanted = self._store_and_renew_lease() == states.CANCELLING or self._context.stopping.is_set()
        if self._stopping_since is None and wanted:
            self._stopping_since = time.monotonic()
            process.cancel()
        if self._stopping_since is not None and time.monotonic() - self._stopping_since > GRACE:
            process.kill()

    def _store_and_renew_lease(self) -> str:
        """Store what is new, renew the lease when due, and return the job's status. Raises Lost.

        While the database is unavailable, the process continues and nothing is lost.
        """
        try:
            if self._told or time.monotonic() >= self._renew_at:
                with writing(self._context.database) as session:
                    status = self._write_events(session)
                self._after_write()
                return status
            with reading(self._context.database) as session:
                row = BENCHMARK.get(session, self._job_id)
                if row.lease_owner != self._context.owner:
                    raise BenchmarkLeaseLost
                return str(row.status)
        except DATABASE_AWAY as error:
            log.warning("the database is away, the benchmark goes on", job=self._job_id, error=reason_of(error))
            return states.RUNNING

    def _store_events_and_change(self, also: Callable[[Session], T]) -> T:
        """Store what is new and do something else in the same transaction. Raises Lost, and what `also` raises."""

        def work(session: Session) -> T:
            self._write_events(session)
            return also(session)

        found = transact_with_retry(self._context.database, work, AWAY)
        self._after_write()
        return found

    def _write_events(self, session: Session) -> str:
        values = {name: value for event in self._told for name, value in _row_changes(event).items()}
        status = BENCHMARK.renew(session, self._job_id, self._context.owner, self._lease, **values)
        if status is None:
            raise BenchmarkLeaseLost
        row = BENCHMARK.get(session, self._job_id)
        lifecycle.store_results(session, row, [each for each in self._told if each.get("event") == "task"])
        return status

    def _after_write(self) -> None:
        self._told = []
        self._renew_at = time.monotonic() + self._lease / 3

    def _path_in_folder(self, name: str) -> Path:
        return self._folder / name


def _row_changes(event: Mapping[str, Any]) -> dict[str, Any]:
    """The changes that an event makes to the job's row."""
    match event.get("event"):
        case "started":
            return {"device": str(event["device"])[:120]}
        case "progress":
            far = f": {event['done']} of {event['of']}" if "of" in event else ""
            return {"step": f"{event['task']}{far}"}
        case "asked":
            return {"step": f"{event['done']} of {event['of']} chats"}
        case _:
            return {}
