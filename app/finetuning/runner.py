"""Running one job in one worker: it takes the lease and calls the runner of the job's backend.

The runner for trainings in a process is here: it starts the training, follows its reports, ends it on request, and
registers the model.

The worker may be a Celery task or a command in a terminal. A job that was killed at any point resumes from its own run
folder, and a complete checkpoint is registered without training again.
"""

import json
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import structlog

from app.core.disk import is_full, low_disk
from app.core.errors import AppError
from app.core.extensions import DATABASE_AWAY, reading, writing
from app.core.internal_errors import internal_error, unexplained
from app.finetuning import charges, lifecycle
from app.finetuning.backends import ProcessBackend, RunningTraining, find_backend
from app.finetuning.event_writer import TrainingEventWriter, TrainingLeaseLost
from app.finetuning.files import JobFiles
from app.finetuning.job import TRAINING
from app.games.base import JSON
from app.jobs import states
from app.jobs.context import JobContext
from app.jobs.process import GRACE, INTERRUPTED, FileTail
from app.jobs.spending import BudgetReached

TICK = 0.5  # seconds between checks for the training's events and for a request to stop the job
_BUDGET_EVERY = 2.0  # seconds between checks of what was spent
PAUSE = 1.0  # seconds before a killed training is restarted

log = structlog.get_logger()


class _TrainingFailed(AppError):
    """The training has reported why it cannot continue."""


def run(context: JobContext, job_id: int) -> None:
    """Run a job until it is over, unless another worker is running it."""
    run_job(context, job_id)


def run_job(context: JobContext, job_id: int, notify: Callable[[list[JSON]], None] = lambda _events: None) -> bool:
    """Run a job until it is over, or it or the worker is stopped. False if there was nothing to do.

    `notify` is called with the job's new events after each transaction. All errors are stored on the job's row.
    """
    lease = context.settings.TRAIN_LEASE
    with writing(context.database) as session:
        if not TRAINING.take(session, job_id, context.owner, lease):
            return False
        runner = find_backend(TRAINING.get(session, job_id).backend).runner
    try:
        record = TrainingEventWriter(context.database, job_id, context.owner, lease, notify)
        module, _, function = runner.partition(":")
        getattr(import_module(module), function)(context, job_id, record)
    except TrainingLeaseLost:
        log.warning("a training job went to somebody else", job=job_id)
    return True


def follow_process(context: JobContext, job_id: int, record: TrainingEventWriter) -> None:
    """Run a job of a ProcessBackend until it is over, or it or the worker is stopped. Raises TrainingLeaseLost."""
    _TrainingRunner(context, job_id, record).work()


class _TrainingRunner:
    """See `follow_process`."""

    def __init__(self, context: JobContext, job_id: int, record: TrainingEventWriter) -> None:
        self._context = context
        self._job_id = job_id
        self._record = record
        self._stopping_since: float | None = None
        self._look_at_budget = 0.0  # the next time to do so, by `time.monotonic`
        self._reached: str | None = None  # the budget, in a line
        self._is_error = False  # whether `_last` is an error
        self._reason: str | None = None  # the failure reported by the training
        self._last = ""  # the last printed line, or the first one marked as an error

    def work(self) -> None:
        """Run the job until it is over or stopped, then register the model or release the job. Raises Lost."""
        error = None
        try:
            if self._until_made():
                self._record.settle(lambda session: lifecycle.finish(session, self._files, self._context.owner))
                return
        except (AppError, OSError) as problem:
            full = isinstance(problem, OSError) and is_full(problem)
            error = self._disk_is_full() if full else " ".join(str(problem).split())
        except (TrainingLeaseLost, *DATABASE_AWAY):  # away for long: upkeep calls a worker once it is back
            raise
        except Exception as problem:
            error = internal_error("a worker at a training broke", problem, job=self._job_id)
        self._record.settle(lambda session: TRAINING.release(session, self._job_id, self._context.owner, error))

    def _until_made(self) -> bool:
        """Train, restarting after kills. True once the checkpoint exists; False if the job is to be stopped."""
        with reading(self._context.database) as session:
            row = TRAINING.get(session, self._job_id)
            settings = self._context.settings
            launcher, devices = settings.TRAINING_LAUNCHER, settings.TRAINING_DEVICES
            self._files = JobFiles(settings.home, row.id, row.name, launcher, devices, settings.api_hosts)
            method, deaths = row.method, row.lease_count
            self._files.prepare()
            self._backend = _process_backend(row.backend)
            if self._backend.collect(self._files):
                self._files.refuse_foreign_output()
                return True
            self._may_spend = TRAINING.may_spend(row)
            self._backend.check()
            self._backend.prepare(session, row, self._files)
        self._events = FileTail(self._files.progress, whole=True)
        self._count = 0
        self._catch_up()
        self._check_budget()
        while not self._backend.collect(self._files):
            if deaths >= lifecycle.MOST_DEATHS:
                raise AppError(
                    f"the training or its worker was killed {deaths} times without a new step between, probably for"
                    " lack of memory; lower batch and raise accumulation by as much"
                )
            if deaths and self._context.stopping.wait(PAUSE):
                return False
            if not self._lives(method):
                deaths = self._record.settle(lambda session: lifecycle.count_death(session, self._job_id))
            self._check_budget()
            if self._stopping_since is not None:
                return False
        return True

    def _check_budget(self) -> None:
        """Raises BudgetReached if the training at a vendor has used up its budget."""
        self._count_spending()
        if self._reached is not None and not self._backend.collect(self._files):
            raise BudgetReached(self._reached)

    def _count_spending(self) -> None:
        """Count what a vendor has trained so far, and check it against the budgets."""
        settings, owner = self._context.settings, self._context.owner
        if self._may_spend:
            self._reached = self._record.settle(
                lambda session: charges.count_trained(session, self._job_id, owner, settings)
            )
        self._look_at_budget = time.monotonic() + _BUDGET_EVERY

    def _lives(self, method: str) -> bool:
        """Run the training once. False if it was killed; raises _Failed if it has ended without its checkpoint."""
        self._printed = FileTail(self._files.log, whole=False)
        self._reason, self._last, self._is_error = None, "", False
        training = self._backend.start(method, self._files, self._record.keep)
        try:
            while (code := training.poll(TICK)) is None:
                self._read_output()
                self._look_after(training)
        finally:
            training.kill()
        self._read_output()
        if self._backend.collect(self._files) or self._stopping_since is not None:
            return True
        if code < 0 or code == INTERRUPTED:
            return False
        raise _TrainingFailed(self._reason or self._unexplained(code))

    def _unexplained(self, code: int) -> str:
        """Why a training ended that could not store the reason."""
        if not self._last and (code == 0 or low_disk(self._context.settings) is not None):
            return self._disk_is_full()
        return unexplained("the training", code, self._last)

    def _disk_is_full(self) -> str:
        return f"the disk of {self._context.settings.home} is full; make room and resume the job"

    def _look_after(self, training: RunningTraining) -> None:
        """Store what is new, and end the training when requested."""
        wanted = self._record.keep() == states.CANCELLING or self._context.stopping.is_set()
        if time.monotonic() >= self._look_at_budget:
            self._count_spending()
        wanted = wanted or self._reached is not None
        if self._stopping_since is None and wanted:
            self._stopping_since = time.monotonic()
            training.cancel()
        if self._stopping_since is not None and time.monotonic() - self._stopping_since > GRACE:
            training.kill()

    # ---- What it reports ---------------------------------------------------------

    def _catch_up(self) -> None:
        """Read the events written while no worker was running, and continue their numbering."""
        lines = self._events.lines()
        self._count = max(0, self._record.following - len(lines))  # the file may be another machine's
        self._take_in(lines)

    def _read_output(self) -> None:
        """Take in new events and output."""
        self._take_in(self._events.lines())
        for text in filter(str.strip, self._printed.lines()):
            printed = text.removeprefix("error: ")
            if not self._is_error:
                self._last, self._is_error = printed, printed != text
            if printed != self._reason:  # already in the log
                self._record.say(text)

    def _take_in(self, lines: list[str]) -> None:
        for text in lines:
            number, self._count = self._count, self._count + 1
            if number < self._record.following:
                continue
            event = _read_event_line(text)
            if event is not None:
                self._record.add(number, event)
                self._reason = event["message"] if event["event"] == "failed" else None


def _process_backend(name: str) -> ProcessBackend:
    found: Any = find_backend(name)
    backend: ProcessBackend = found
    return backend


def _read_event_line(text: str) -> JSON | None:
    """An event, or None for a line cut off by a kill."""
    try:
        event = json.loads(text)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None
