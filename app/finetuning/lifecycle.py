"""The life of a training job: created, leased, cancelled, resumed, ended. Nothing here commits.

`app/jobs/states.py` defines the order of the states.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase, refusals_of
from app.datasets import store
from app.datasets.store import find_dataset
from app.finetuning.backends import Backend, find_backend
from app.finetuning.charges import settle_trained
from app.finetuning.config import (
    LOCAL,
    REFERENCE,
    SFT_DATA,
    check_policies,
    check_rows,
    check_supervised,
    find_method,
)
from app.finetuning.files import JobFiles
from app.finetuning.job import TRAINING, refuse_taken
from app.finetuning.recipients import check_recipient
from app.finetuning.spec import TrainingSpec
from app.jobs import states
from app.jobs.holding import hold
from app.jobs.kind import Requester, fail
from app.jobs.kind import finish as finish_job
from app.models import Dataset, LanguageModel, TrainingJob
from app.players.prompts import USUAL_STYLE
from app.registry import check_not_archived, get_model
from app.registry.training_charges import price_of_training
from training.methods.base import Need

MOST_DEATHS = 5  # a job whose worker or training died this often, with no new step between, is given up


def create(
    session: Session,
    training: TrainingSpec,
    *,
    queued: bool,
    home: Path | None = None,
    goes_on: bool = False,
    requester: Requester | None = None,
) -> TrainingJob:
    """Create a waiting job, for workers if it is `queued`.

    What is requested is checked, and refused, by `find_parts`.
    """
    dataset, base, reference, supervised = find_parts(session, training, home, goes_on=goes_on)
    pinned = {
        "dataset": str(dataset.id),
        "reference": None if reference is None else reference.name,
        "sft_data": None if supervised is None else str(supervised.id),
    }
    hold(session, filter(None, (dataset, supervised, base, reference)))
    row = TRAINING.new_row(
        queued=queued,
        requester=requester,
        spec=training.model_copy(update=pinned).to_json(),
        name=training.name,
        method=training.method,
        backend=training.backend,
        dataset_id=dataset.id,
        base_id=None if base is None else base.id,
        config={
            **training.config,
            **({} if reference is None else {REFERENCE: reference.name}),
            **({} if supervised is None else {SFT_DATA: supervised.id}),
        },
        lease_count=0,
        log="",
        **training.budget.columns,
    )
    session.add(row)
    session.flush()
    return row


class TrainingParts(NamedTuple):
    """What a training is made of; a reference only if it is not the base."""

    dataset: Dataset
    base: LanguageModel | None
    reference: LanguageModel | None
    supervised: Dataset | None


def find_parts(
    session: Session, training: TrainingSpec, home: Path | None = None, *, goes_on: bool = False
) -> TrainingParts:
    """What a requested training is made of, checked.

    With `home`, the files that it needs are checked as well. Raises NotFound for an unknown dataset or base, Conflict
    for a taken name or an archived base, and Invalid for anything else that cannot be trained. With `goes_on`, the
    training belongs to a job that has already started, and may use a base archived meanwhile.
    """
    method, backend = training.method, find_backend(training.backend)
    dataset = find_dataset(session, training.dataset)
    store.check_usable(dataset)
    base = _find_usable_model(session, backend, "base", training.base, goes_on)
    check_recipient(session, dataset, base)
    refuse_taken(session, training.name)
    reference = _find_usable_model(session, backend, "reference", training.reference, goes_on)
    if reference is base:
        reference = None  # the base is the reference anyway
    supervised = find_supervised(session, home, method, training.sft_data)
    if supervised is not None:
        check_recipient(session, supervised, base, SFT_DATA)
    if home is not None:
        backend.check_files(home, dataset, base, training.name)
    called = dataset.reference
    played_by = reference or base
    if played_by is not None and "sha256" in played_by.options and Need.REWARDS in find_method(method).needs:
        policies = [policy for policy, _ in dataset.figures.get("rewards", {}).get("policies", ())]
        check_policies(policies, str(played_by.options["sha256"]), called, played_by.name)
    first = None if home is None else store.first_row(home, dataset)
    check_rows(method, dataset.kind, first, called)
    if first is not None:
        backend.check_row(first, called)
    if base is not None and training.backend != LOCAL and training.budget.usd and price_of_training(base) is None:
        raise Invalid(
            "budget.usd",
            expected=Phrase("a base whose price of trained tokens is known"),
            got=Phrase("%(name)s without price_training", name=base.name),
            remedy=Phrase("give it one, or set a budget of tokens"),
        )
    return TrainingParts(dataset, base, reference, supervised)


def _find_usable_model(
    session: Session, backend: Backend, field: str, name: str | None, goes_on: bool
) -> LanguageModel | None:
    if not name:
        return None
    with refusals_of(field):
        found = get_model(session, name)
        if not goes_on:
            check_not_archived(found)
    backend.check_base(found, field)
    return found


def find_supervised(session: Session, home: Path | None, method: str, called: str | None) -> Dataset | None:
    """The dataset whose supervised rows are mixed in; with `home`, its file is checked.

    Raises NotFound for an unknown one, and Invalid if the method cannot mix it in.
    """
    check_supervised(method, called)
    if called is None:
        return None
    found = find_dataset(session, called, SFT_DATA)
    store.check_usable(found, SFT_DATA)
    check_supervised(method, found.reference, found.kind)
    if home is not None:
        store.path_of(home, found, SFT_DATA)
    return found


# ---- While a worker has it --------------------------------------------------------


def count_death(session: Session, job_id: int) -> int:
    """Count a killed training; the number of deaths, including those of workers, since the job last reached a new
    step.
    """
    row = TRAINING.get(session, job_id)
    session.refresh(row, with_for_update=True)
    row.lease_count += 1
    session.flush()
    return row.lease_count


def finish(session: Session, files: JobFiles, owner: str, *, cancelled_or_not: bool = False) -> None:
    """Register the model of a job, and end the job. Raises Conflict if the name was taken meanwhile.

    A job that is being cancelled ends as cancelled, unless its model is to be registered `cancelled_or_not`.
    """
    row = TRAINING.locked(session, files.job_id, owner)
    if row is None:
        return
    if row.status == states.CANCELLING and not cancelled_or_not:
        TRAINING.release(session, row.id, owner)
        return
    trained = find_backend(row.backend).register(session, row, files, *_plays(session, row))
    row.model_id, row.registered_step = trained.model.id, trained.step
    settle_trained(session, row)
    finish_job(row)
    row.lease_owner = row.lease_until = None
    session.flush()


# ---- While a vendor trains ----------------------------------------------------------


def store_remote(session: Session, job_id: int, owner: str, **values: Any) -> None:
    """Store a vendor's report on a job: values of its `remote_` columns, of `trained_tokens` and of `error`."""
    row = TRAINING.locked(session, job_id, owner)
    if row is None:
        return
    for name, value in values.items():
        setattr(row, name, value)
    session.flush()


def count_failure(session: Session, job_id: int, owner: str, waits_for: str) -> int:
    """Count a failed call; the number of failed calls in a row. Lists and pages show what the job `waits_for`."""
    row = TRAINING.locked(session, job_id, owner)
    if row is None:
        return 0
    row.remote_failures, row.error = row.remote_failures + 1, waits_for
    session.flush()
    return row.remote_failures


def release_until_next_poll(session: Session, job_id: int, owner: str, seconds: float, seen: str) -> None:
    """Release a job that continues at a vendor; after `seconds` a worker polls it again.

    `seen` is its status at the last poll: a later request to cancel is handled without waiting.
    """
    row = TRAINING.locked(session, job_id, owner)
    if row is None:
        return
    now = datetime.now(UTC)
    row.poll_at = now + timedelta(seconds=seconds) if row.status in (states.RUNNING, seen) else None
    row.lease_owner, row.lease_until = None, now
    session.flush()


def give_up(session: Session, job_id: int, owner: str, error: str) -> None:
    """Stop a job with `error`, whether or not it was being cancelled: a vendor may still run it."""
    row = TRAINING.locked(session, job_id, owner)
    if row is None:
        return
    fail(row, error)
    row.lease_owner, row.lease_until = None, datetime.now(UTC)
    session.flush()


def _plays(session: Session, row: TrainingJob) -> tuple[list[str], str]:
    """The games and the prompt style of a job's model: its base's, or those of its dataset if it started from scratch.

    The games of imported rows are unknown: the model is registered for all of them, in the default style.
    """
    if row.base_id is not None:
        base = session.get_one(LanguageModel, row.base_id)
        return list(base.games), base.prompt_style or USUAL_STYLE
    cut_by = session.get_one(Dataset, row.dataset_id).spec
    return sorted(cut_by["prompts"]), cut_by["style"] or USUAL_STYLE
