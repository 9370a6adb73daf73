"""Running one job at a vendor in one worker: upload, create, and check until the model is registered.

Each check takes about a second. A queued job is released after it and taken again when the next check is due, so that
no worker is held for hours; a command in a terminal stays and waits. The vendor's ids are stored before anything else
is done. A process may be killed at any line: before the first call, a token is stored and then sent with every request,
and by it the next worker finds what the vendor already has of the job before it sends anything again. If a very late
request created a second job, each check looks for the other one and cancels it, so a lost answer never leads to paying
for a second job. Each upload is recorded before it begins, so that a cancelled job can wait for a late one and delete
it. The budgets count a training from its token on.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.disk import is_full
from app.core.errors import AppError
from app.core.extensions import DATABASE_AWAY, reading
from app.core.files import private_folder, replace_file
from app.core.internal_errors import internal_error
from app.datasets import store
from app.finetuning import charges, lifecycle, listing
from app.finetuning.event_writer import TrainingEventWriter, TrainingLeaseLost
from app.finetuning.files import JobFiles
from app.finetuning.job import CANCELLED, FAILED, OVER, SUCCEEDED, TRAINING
from app.finetuning.runner import TICK
from app.finetuning.vendors.answers import VendorEvent, VendorJob
from app.finetuning.vendors.backend import VendorBackend
from app.finetuning.vendors.client import VendorAway, VendorClient, VendorRefused
from app.finetuning.vendors.estimate import count_tokens, estimate
from app.finetuning.vendors.request import VendorRequest
from app.finetuning.vendors.rows import vendor_rows
from app.games.base import JSON
from app.jobs import states
from app.jobs.context import JobContext
from app.models import Dataset, LanguageModel, TrainingCharge, TrainingJob
from app.players.api.addresses import host_of
from app.players.api.options import ApiOptions, read_options
from app.registry.training_charges import price_of_training

MOST_FAILURES = 30  # unanswered calls in a row after which a job is given up
LONGEST_PAUSE = 600.0  # seconds between two of them
_UNKNOWN = 404
# Our events: an upload begins; these files are known; an unanswered upload is awaited.
_UPLOADING, _UPLOADED, _AWAITED = "uploading", "uploaded", "awaited"
LATE_LOOKS = 6  # checks for an unanswered upload that may still arrive, before a job counts as cancelled
_MOST_EVENTS = 3  # tries to read a job's events, before it goes on without them
_MOST_DELETIONS = 5  # attempts to delete a file before a job counts as over despite it
_CLOCKS = 86_400.0  # seconds by which the vendor's clock may differ from ours

T = TypeVar("T")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor's part in the steps of a job."""

    backend: VendorBackend
    client: type[VendorClient]
    going_on: tuple[str, ...]  # the vendor's statuses for an unfinished job; a finished one has ours
    body: Callable[[VendorRequest], JSON]  # of the request that creates a job


def follow_vendor(vendor: Vendor, context: JobContext, job_id: int, record: TrainingEventWriter) -> None:
    """Take the steps of a job that are due, or all of them if no other worker will. Raises TrainingLeaseLost."""
    _VendorRunner(vendor, context, job_id, record).work()


@dataclass(frozen=True, slots=True)
class _JobState:
    """The current values of a job's row."""

    status: str
    queued: bool
    config: JSON
    created: float  # seconds since 1970
    token: str | None
    file_id: str | None
    remote_id: str | None
    remote_status: str | None
    failures: int


class _VendorRunner:
    """See `follow_vendor`."""

    def __init__(self, vendor: Vendor, context: JobContext, job_id: int, record: TrainingEventWriter) -> None:
        self._description = vendor
        self._context = context
        self._job_id = job_id
        self._record = record
        self._client: VendorClient | None = None

    def work(self) -> None:
        """Check until the job is over or left for a later check. Raises TrainingLeaseLost."""
        try:
            while (pause := self._take_possible_steps()) is not None:
                state = self._read_job_state()
                if state.queued or not self._wait(pause):
                    seconds = pause if state.queued else 0.0
                    self._change_job_with_events(lifecycle.release_until_next_poll, seconds, self._seen)
                    return
        except (TrainingLeaseLost, *DATABASE_AWAY):
            raise
        except (AppError, OSError) as problem:
            full = isinstance(problem, OSError) and is_full(problem)
            home = self._context.settings.home
            error = f"the disk of {home} is full; make room and resume the job" if full else str(problem)
            self._change_job_with_events(lifecycle.give_up, " ".join(error.split()))
        except Exception as problem:
            self._change_job_with_events(
                lifecycle.give_up, internal_error("a worker at a training broke", problem, job=self._job_id)
            )
        finally:
            if self._client is not None:
                self._client.close()

    def _take_possible_steps(self) -> float | None:
        """Take the steps that are possible; the seconds until the next check, None when the job is over."""
        poll = self._context.settings.TRAIN_POLL
        try:
            return None if self._step() else poll
        except VendorAway as away:
            failures = self._change_job_with_events(lifecycle.count_failure, f"{away}; asking again")
            if failures >= MOST_FAILURES:
                raise AppError(
                    f"{away}; {failures} calls in a row brought no answer, and the job may go on there: resume this"
                    " one to look again"
                ) from None
            self._record.say(f"{away}; asking again")
            return min(LONGEST_PAUSE, max(away.wait or 0.0, poll * 2.0 ** (failures - 1)))

    def _step(self) -> bool:
        """Advance the job to the vendor's state. Whether the job is over."""
        state = self._read_job_state()
        self._seen = state.status
        self._load_job_and_client()
        fresh = state.token is None
        if fresh:
            if state.status == states.CANCELLING:
                return self._cancelled()
            self._charge_estimate(state, uuid.uuid4().hex)
            state = self._read_job_state()
        if state.remote_id is not None:
            return self._look_at(state, state.remote_id)
        job = None if fresh else self._find(state)
        if job is None:
            return self._have_vendor_create_job(state, fresh)
        if state.status == states.CANCELLING:
            job = self._vendor_answer(self._vendor.cancel, job.id)
        return self._take_in(job)

    def _look_at(self, state: _JobState, remote_id: str) -> bool:
        """Check the vendor's job, or have it cancelled. Whether the job is over."""
        over = state.remote_status in OVER
        call = self._vendor.cancel if state.status == states.CANCELLING and not over else self._vendor.retrieve
        try:
            found = self._vendor_answer(call, remote_id)
        except VendorRefused as refused:
            if refused.answer_status == _UNKNOWN:
                raise AppError(self._unknown(remote_id, refused)) from None
            raise
        return self._take_in(found)

    def _have_vendor_create_job(self, state: _JobState, fresh: bool) -> bool:
        """Have the vendor create the job. True if ours is over because it was to be cancelled."""
        try:
            job = self._upload_and_create_job(state, fresh)
        except VendorRefused:
            if fresh:  # else an earlier request may have arrived
                self._change_job_with_events(charges.settle_charge, None, made=False)
            raise
        if job is not None:
            return self._take_in(job)
        return False if self._awaits_upload(state) else self._cancelled()

    # ---- Before the vendor trains ------------------------------------------------------

    def _load_job_and_client(self) -> None:
        """Read the job's dataset, base and options, and open the client. Raises Invalid and KeyRefused."""
        if self._client is not None:
            return
        with reading(self._context.database) as session:
            row = TRAINING.get(session, self._job_id)
            self._files = JobFiles(self._context.settings.home, row.id, row.name)
            self._dataset = session.get_one(Dataset, row.dataset_id)
            base = session.get_one(LanguageModel, row.base_id)
            self._method, self._backend = row.method, row.backend
            made_base = select(TrainingJob.id).where(
                TrainingJob.model_id == base.id, TrainingJob.backend == row.backend
            )
            self._is_tuned = session.scalar(made_base) is not None
            self._price = price_of_training(base)
            self._options: ApiOptions = read_options(base.options)
        self._client = self._description.client(self._options, self._context.settings.api_hosts)

    def _charge_estimate(self, state: _JobState, token: str) -> None:
        """Charge the training's estimate to the budgets, and store the token; nothing if that was done before.

        Raises BudgetReached, and Invalid for rows that the vendor would not accept.
        """
        settings = self._context.settings
        with reading(self._context.database) as session:
            if session.get(TrainingCharge, token) is not None:
                return
        epochs = partial(self._description.backend.epochs, state.config)
        expected = estimate(count_tokens(self._rows_for_vendor()), epochs, self._price)
        with reading(self._context.database) as session:
            row = TRAINING.get(session, self._job_id)
            base = session.get_one(LanguageModel, row.base_id)
            line = charges.uncounted(settings, row, base, expected)
        self._record_event("estimate", message=expected.words)
        if line is not None:
            self._record_event("warning", message=line)
        if not self._change_job_with_events(charges.begin, settings, token, expected):
            raise TrainingLeaseLost

    def _rows_for_vendor(self) -> Iterator[bytes]:
        """The rows in the vendor's format. Raises NotFound and Invalid."""
        called = self._dataset.reference
        lines = _dataset_lines(self._context.settings.home, self._dataset)
        return self._while_renewing(vendor_rows(lines, called, self._description.backend.rows))

    def _find(self, state: _JobState) -> VendorJob | None:
        """The job that an earlier worker created without storing the answer; None if there is none.

        If two were created because one request was very late, the first one counts.
        """
        found = self._vendor_answer(self._vendor.find_jobs, *self._marks(state))
        mine = [each for each in found if each.status != CANCELLED] or found
        if not mine:
            return None
        self._store_created(mine[0], again=True)
        return mine[0]

    @staticmethod
    def _marks(state: _JobState) -> tuple[str, str | None, float]:
        """The marks that identify the vendor's jobs created for ours."""
        return str(state.token), state.file_id, state.created - _CLOCKS

    def _store_created(self, job: VendorJob, *, again: bool) -> None:
        """Store the vendor's id; `again`: an earlier request got no answer, and may create another job."""
        host = host_of(self._options.base_url)
        self._record_event("created", device=host, job=job.id, file=job.training_file, again=again)
        self._store(remote_job_id=job.id)

    def _cancel_others(self, state: _JobState, ours: str) -> None:
        """Cancel jobs created by requests that were thought lost."""
        for other in self._vendor_answer(self._vendor.find_jobs, *self._marks(state)):
            if other.id == ours or other.status in OVER:
                continue
            self._record.say(f"{other.id} was created beside {ours}, cancelling it")
            try:
                self._vendor_answer(self._vendor.cancel, other.id)
            except VendorRefused as refused:
                self._record.say(f"{other.id} could not be cancelled, and may be charged: {refused}")

    def _upload_and_create_job(self, state: _JobState, fresh: bool) -> VendorJob | None:
        """Upload the file if it is missing, and create the vendor's job; None if ours is to be cancelled."""
        uploaded = False
        file_id = state.file_id
        if file_id is None and not fresh:
            file_id = next(iter(self._find_uploads(state)), None)
            if file_id is not None:
                self._store(remote_file_id=file_id)
        if self._is_cancelling():
            return None
        self._charge_estimate(state, str(state.token))
        if file_id is None:
            file_id, uploaded = self._upload(state), True
        while not self._is_cancelling():
            try:
                return self._created(state, file_id, again=not fresh)
            except VendorRefused as refused:
                if uploaded or self._vendor_answer(self._vendor.has_file, file_id):
                    self._delete_file(file_id)
                    raise
                self._record.say(f"the uploaded file is gone ({refused}), uploading it again")
                file_id, uploaded = self._upload(state), True
        return None

    def _created(self, state: _JobState, file_id: str, *, again: bool) -> VendorJob:
        request = VendorRequest(
            self._options.model, self._is_tuned, file_id, self._method, state.config, str(state.token)
        )
        call = self._call_in_thread(self._vendor.create, self._description.body(request))
        try:
            job = self._wait_for(call)
            self._store_created(job, again=again)
        except TrainingLeaseLost:
            twice = "a training that was created twice may go on"
            self._leave_to_the_other(lambda: call.result().id, "remote_job_id", self._vendor.cancel, twice)
            raise
        return job

    def _leave_to_the_other(
        self, made: Callable[[], str], column: str, undo: Callable[[str], object], failed: str
    ) -> None:
        """Another worker took the job during a call: undo what the call made, unless the other worker has found it.

        `column` holds the vendor's id for it, and `failed` is logged if it may now exist twice.
        """
        try:
            remote_id = made()
            with reading(self._context.database) as session:
                theirs = getattr(TRAINING.get(session, self._job_id), column)
            if theirs != remote_id:
                undo(remote_id)
        except AppError as error:
            log.warning(failed, job=self._job_id, error=str(error))

    def _upload(self, state: _JobState) -> str:
        """Write the rows in the vendor's format, upload them, and store the file's id; that id."""
        private_folder(self._files.folder.parent)
        private_folder(self._files.folder)
        path, name = self._files.folder / f"{self._backend}.jsonl", self._file_name(state)
        replace_file(path, self._rows_for_vendor(), private=True)
        self._record_event(_UPLOADING, message=name)
        self._is_cancelling()  # stores the event before anything is sent
        call = self._call_in_thread(self._vendor.upload, path, name)
        try:
            file_id = self._wait_for(call)
            self._record_event(_UPLOADED, message=name, files=[file_id])
            self._store(remote_file_id=file_id)
        except TrainingLeaseLost:
            twice = "a file that was uploaded twice may be at the vendor"
            self._leave_to_the_other(call.result, "remote_file_id", self._vendor.delete_file, twice)
            raise
        return file_id

    def _find_uploads(self, state: _JobState) -> list[str]:
        """A job's files at the vendor, including those of uploads that got no answer."""
        name = self._file_name(state)
        found = self._vendor_answer(self._vendor.find_files, name)
        if found:
            self._record_event(_UPLOADED, message=name, files=found)
        return found

    def _unanswered_uploads(self, state: _JobState) -> int:
        """The number of a job's uploads that have begun and whose file is unknown."""
        name = self._file_name(state)
        mine = [each for each in self._stored_events() if each.get("message") == name]
        known = {file_id for each in mine if each["event"] == _UPLOADED for file_id in each["files"]}
        return len([each for each in mine if each["event"] == _UPLOADING]) - len(known)

    def _awaits_upload(self, state: _JobState) -> bool:
        """Whether an upload of a job that is being cancelled may still arrive and is to be looked for again.

        Uploads that have arrived are deleted.
        """
        for file_id in self._find_uploads(state) if self._unanswered_uploads(state) > 0 else ():
            self._delete_file(file_id)
        if self._unanswered_uploads(state) <= 0:
            return False
        seconds = LATE_LOOKS * self._context.settings.TRAIN_POLL
        waits = [each for each in self._stored_events() if each["event"] == _AWAITED and each["token"] == state.token]
        if not waits:
            message = f"an upload may still arrive there, looking for it for {seconds:g} seconds to delete it"
            self._record_event(_AWAITED, message=message, token=state.token)
        return not waits or time.time() < waits[0]["at"] + seconds

    @staticmethod
    def _file_name(state: _JobState) -> str:
        """The file's name at the vendor, unique to the job."""
        return f"parlor-{state.token}.jsonl"

    # ---- While it trains -----------------------------------------------------------------

    def _take_in(self, job: VendorJob) -> bool:
        """Store the vendor's progress, and end our job when the vendor's has ended. Whether it is over."""
        before = self._read_job_state()
        events = self._stored_events()
        for event in self._new_events(job.id, events, before.failures):
            self._tell_vendors(event)
        created = next((each for each in reversed(events) if each["event"] == "created"), {})
        if created.get("again"):
            self._cancel_others(before, job.id)
        status = self._status(job, before.remote_status)
        lacks_model = status == SUCCEEDED and job.fine_tuned_model is None
        over = status in OVER and not lacks_model
        if over:
            self._change_job_with_events(charges.settle_charge, job.trained_tokens, made=status == SUCCEEDED)
            self._delete_files(before)
        self._store(
            remote_status=status,
            **({} if lacks_model else {"remote_failures": 0, "error": None}),
            **({} if job.trained_tokens is None or not over else {"trained_tokens": job.trained_tokens}),
            **({"remote_model": job.fine_tuned_model} if job.fine_tuned_model and status == SUCCEEDED else {}),
        )
        if lacks_model:
            raise VendorAway(f"expected the name of the model that {job.id} has made, got none")
        if not over:
            return False
        if status == SUCCEEDED:
            tokens = "" if job.trained_tokens is None else f", {job.trained_tokens} trained tokens"
            self._record_event("succeeded", message=f"{job.fine_tuned_model}{tokens}")
            owner = self._context.owner
            self._record.settle(lambda session: lifecycle.finish(session, self._files, owner, cancelled_or_not=True))
        elif status == FAILED:
            raise AppError(self._failure_reason(job))
        elif not self._is_cancelling():
            raise AppError(f"{job.id} was cancelled at {host_of(self._options.base_url)}; resume it to train again")
        else:
            return self._cancelled()
        return True

    def _new_events(self, job_id: str, known: Sequence[JSON], failures: int) -> list[VendorEvent]:
        """The vendor's new events; none if it lists none, which does not stop a job.

        Raises VendorAway if the vendor is to be asked again.
        """
        try:
            return self._vendor_answer(self._vendor.events, job_id, {each["id"] for each in known if "id" in each})
        except (VendorAway, VendorRefused) as error:
            if isinstance(error, VendorAway) and failures < _MOST_EVENTS:
                raise
            line = f"going on without what the vendor tells of it: {error}"
        if not any(each.get("message") == line for each in known):
            self._record_event("warning", message=line)
        return []

    def _status(self, job: VendorJob, before: str | None) -> str:
        """The job's status in the vendor's words, logged when it changes."""
        status = self._vendor.clean(job.status or "no status")[:80]
        if status != before:
            self._record_event("status", message=status)
            if status not in (*self._description.going_on, *OVER):
                self._record_event("warning", message=f"{status} is no status that is known here; looking on")
        return status

    def _failure_reason(self, job: VendorJob) -> str:
        """Why a job has failed, in the vendor's words."""
        error = job.error
        said = None if error is None else (error.message or error.code)
        if said is None:  # some say it in an event
            said = next((each["message"] for each in reversed(self._stored_events()) if each.get("is_error")), None)
        where = host_of(self._options.base_url)
        return self._vendor.clean(f"{where} has ended {job.id}: {said or 'it gave no reason'}")

    def _unknown(self, remote_id: str, refused: VendorRefused) -> str:
        """The error for a job that the vendor does not know: most likely another account created it."""
        return self._vendor.clean(
            f"{remote_id} is not known with {self._vendor.account}, it may go on and be charged; resume this job with"
            f" the account that has created it, or start over with a new job ({refused})"
        )

    def _delete_files(self, state: _JobState) -> None:
        """Delete the uploaded file, and files left by uploads whose answers were lost. Raises VendorAway."""
        insists = state.failures < _MOST_DELETIONS
        lost: list[str] = []
        if self._unanswered_uploads(state) > 0:
            try:
                lost = self._find_uploads(state)
            except (VendorAway, VendorRefused) as error:
                if isinstance(error, VendorAway) and insists:
                    raise
                self._record.say(f"uploads without an answer could not be looked for: {error}")
        for file_id in dict.fromkeys([*([] if state.file_id is None else [state.file_id]), *lost]):
            self._delete_file(file_id, insists=insists)

    def _delete_file(self, file_id: str, *, insists: bool = False) -> None:
        """Delete an uploaded file: people's words stay at the vendor no longer than the training; the job's folder has
        a copy.

        Raises VendorAway if it is to be tried again.
        """
        try:
            self._vendor_answer(self._vendor.delete_file, file_id)
        except (VendorAway, VendorRefused) as error:
            if isinstance(error, VendorAway) and insists:
                raise
            if error.answer_status != _UNKNOWN:
                self._record.say(f"the uploaded file {file_id} could not be deleted: {error}")
                return
        self._store(remote_file_id=None)

    def _stored_events(self) -> Sequence[JSON]:
        with reading(self._context.database) as session:
            return listing.events_of(session, self._job_id)

    def _tell_vendors(self, event: VendorEvent) -> None:
        """Record an event of the vendor's: as a step if it has a step's figures, else as a line.

        A loss that is not finite is left out: neither JSON nor a database that reads it can hold one.
        """
        found = event.data
        facts: JSON = {"id": event.id, "at": time.time() if event.created_at is None else event.created_at}
        if found is None or None in (found.step, found.total_steps, found.train_loss):
            facts |= {"event": "vendor", "message": self._vendor.clean(event.message or "an event without a text")}
            if (event.level or "").lower() == "error":
                facts["is_error"] = True
        else:
            facts |= {"event": "step", "step": found.step, "steps": found.total_steps, "loss": found.train_loss}
        self._record.add(self._record.following, facts)

    def _record_event(self, kind: str, **facts: Any) -> None:
        self._record.add(self._record.following, {"event": kind, "at": time.time(), **facts})

    # ---- What all steps share ------------------------------------------------------------

    @property
    def _vendor(self) -> VendorClient:
        if self._client is None:
            raise RuntimeError("expected a client that was opened, got none")
        return self._client

    def _vendor_answer(self, call: Callable[..., T], *arguments: Any) -> T:
        """The result of a call to the vendor; the lease is renewed during the call."""
        return self._wait_for(self._call_in_thread(call, *arguments))

    @staticmethod
    def _call_in_thread(call: Callable[..., T], *arguments: Any) -> Future[T]:
        """Make a call in a thread."""
        future: Future[T] = Future()

        def work() -> None:
            try:
                future.set_result(call(*arguments))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=work, name="vendor", daemon=True).start()
        return future

    def _wait_for(self, call: Future[T]) -> T:
        """The call's result. Raises TrainingLeaseLost as soon as another worker holds the lease."""
        self._record.keep()
        while not wait([call], TICK).done:
            self._record.keep()
        return call.result()

    def _while_renewing(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The pieces; the lease is renewed between them."""
        renewed = time.monotonic()
        for piece in pieces:
            if time.monotonic() - renewed > TICK:
                self._record.keep()
                renewed = time.monotonic()
            yield piece

    def _wait(self, seconds: float) -> bool:
        """Wait in a terminal until the next check, or until the job is cancelled. False when the worker stops."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._is_cancelling() and self._seen != states.CANCELLING:  # it may have come during the check
                return True
            if self._context.stopping.wait(min(TICK, left)):
                return False
        return not self._context.stopping.is_set()

    def _is_cancelling(self) -> bool:
        return self._record.keep() == states.CANCELLING

    def _cancelled(self) -> bool:
        """Cancel our job: nothing is running at the vendor."""
        self._delete_files(self._read_job_state())
        self._change_job_with_events(charges.settle_charge, None, made=False)
        self._store(remote_status=CANCELLED, error=None)
        self._record.settle(lambda session: TRAINING.release(session, self._job_id, self._context.owner))
        return True

    def _store(self, **values: Any) -> None:
        self._change_job_with_events(lifecycle.store_remote, **values)

    def _change_job_with_events(self, change: Callable[..., T], *arguments: Any, **values: Any) -> T:
        """Change the job in the database, in one transaction with its pending events."""

        def work(session: Session) -> T:
            return change(session, self._job_id, self._context.owner, *arguments, **values)

        return self._record.settle(work)

    def _read_job_state(self) -> _JobState:
        with reading(self._context.database) as session:
            row: TrainingJob = TRAINING.get(session, self._job_id)
            return _JobState(
                row.status,
                row.queued,
                row.config,
                row.created_at.timestamp(),
                row.remote_token,
                row.remote_file_id,
                row.remote_job_id,
                row.remote_status,
                row.remote_failures,
            )


def _dataset_lines(home: Path, dataset: Dataset) -> Iterator[bytes]:
    """The lines of a dataset's file. Raises NotFound and Invalid if it is missing or was changed."""
    rest = b""
    for piece in store.content(home, dataset):
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    if rest:
        yield rest
