"""Registers a dataset whose file has been written: its row, and the origin of each of the file's rows.

A hundred thousand rows take seconds, and on SQLite a writer blocks all others. So they are written in short
transactions, and the dataset becomes visible when the last of them is done. A refusal leaves neither rows nor file.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path

from sqlalchemy import Delete, delete, func, insert, or_, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Phrase, Unavailable, check_name
from app.core.extensions import DATABASE_AWAY, Transact, in_turn, lock_tables
from app.datasets.store import UnregisteredDataset, left_files, mark_of
from app.jobs.holding import hold
from app.models import Dataset, DatasetRow, MatchRow, Removal, RoundRow, SeatRow

_ROWS_AT_ONCE = 5_000  # in one transaction
_FORGOTTEN = timedelta(hours=1)  # without a new row: then a registration counts as abandoned
_LEFT = timedelta(days=1)  # likewise without a new line, or between a file and its row


def save(transact: Transact, draft: UnregisteredDataset, name: str) -> int:
    """Register a draft as the next version of the dataset with this name, with the origin of each row; return its
    number.

    Raises as `add`.
    """
    number = add(transact, draft, name)
    transact(lambda session: publish(session, number))
    return number


def add(transact: Transact, draft: UnregisteredDataset, name: str) -> int:
    """Store a draft in as many short transactions as it takes, and return its number. It is not visible until
    `publish`.

    Rows without a match here, such as those of an imported file, have no origin stored. Remains of datasets whose
    registration was killed are deleted first. Raises Invalid for an invalid name, and Conflict if the file, a round or
    a match was removed since the draft was made; nothing of the draft stays then.
    """
    number = None
    try:
        check_name("name", name)
        for forgotten, rows, sha256 in transact(_forgotten):
            _remove_dataset(transact, forgotten, rows, None if sha256 == draft.sha256 else draft.path.with_stem(sha256))
        number = transact(lambda session: _insert_incomplete_dataset(session, draft, name))
        mark_of(draft.path).unlink(missing_ok=True)
        every = enumerate((match_id, seat) for match_id, seats in draft.origins for seat in seats)
        origins = (each for each in every if each[1][0] is not None)
        while part := list(islice(origins, _ROWS_AT_ONCE)):
            in_turn(transact, partial(_insert_row_origins, dataset_id=number, part=part))
    except (Unavailable, *DATABASE_AWAY):
        raise  # the remains go when another dataset is registered
    except BaseException:
        with suppress(Unavailable, DBAPIError, NoConnection):
            discard(transact, draft, number)
        raise
    return number


def discard(transact: Transact, draft: UnregisteredDataset, number: int | None = None) -> None:
    """Delete the file of a draft, unless a dataset has it, and the rows that `add` has written under this number."""
    _remove_dataset(transact, number, draft.rows, draft.path)


def delete_left(transact: Transact, home: Path) -> None:
    """Delete the files of builds that were killed a day ago or earlier, before any row referred to them."""
    files, drafts = left_files(home, datetime.now(UTC) - _LEFT)
    for draft in drafts:
        draft.unlink(missing_ok=True)
    for path in files:
        transact(partial(_delete_with_file, dataset_id=None, path=path))


@contextmanager
def discarded_on_error(transact: Transact, draft: UnregisteredDataset | None) -> Iterator[None]:
    """A context for the steps before a draft is registered: if they raise, the draft's file is deleted."""
    try:
        yield
    except BaseException:
        if draft is not None:
            with suppress(Unavailable, DBAPIError, NoConnection):
                discard(transact, draft)
        raise


def publish(session: Session, dataset_id: int) -> Dataset:
    """Make a dataset visible, once all of its rows are stored. If a person has meanwhile withdrawn training consent for
    a match in it, it is unusable.
    """
    row = session.get_one(Dataset, dataset_id)
    row.complete = True
    if row.unusable_at is None and _holds_withdrawn(session, dataset_id):
        row.unusable_at = datetime.now(UTC)
    session.flush()
    return row


def _holds_withdrawn(session: Session, dataset_id: int) -> bool:
    seats = select(SeatRow.seat).join(DatasetRow, DatasetRow.match_id == SeatRow.match_id)
    withdrawn = seats.where(DatasetRow.dataset_id == dataset_id, SeatRow.training_consent.is_(False))
    return session.scalar(withdrawn.limit(1)) is not None


def _insert_incomplete_dataset(session: Session, draft: UnregisteredDataset, name: str) -> int:
    lock_tables(session, "dataset")
    latest = session.scalar(select(func.max(Dataset.version)).where(Dataset.name == name)) or 0
    if not draft.path.is_file():
        raise Conflict(
            "dataset",
            expected=Phrase("its file %(path)s", path=draft.path),
            got=Phrase("none, as another dataset with the same bytes was just removed"),
            remedy=Phrase("try again"),
        )
    row = Dataset(
        name=name,
        version=latest + 1,
        kind=draft.kind,
        spec=draft.spec,
        sha256=draft.sha256,
        size=draft.size,
        rows=draft.rows,
        words=draft.words,
        own_words=draft.own_words,
        figures=draft.figures,
        created_at=datetime.now(UTC),
        complete=False,
    )
    session.add(row)
    session.flush()
    return row.id


def _insert_row_origins(
    session: Session, dataset_id: int, part: Sequence[tuple[int, tuple[str | None, int | None]]]
) -> None:
    rows = [
        {"dataset_id": dataset_id, "place": place, "match_id": match_id, "seat": seat}
        for place, (match_id, seat) in part
    ]
    named = {match_id for _, (match_id, _) in part}
    session.get_one(Dataset, dataset_id).created_at = datetime.now(UTC)  # so that it is not considered abandoned
    rounds = select(MatchRow.round_id).where(MatchRow.id.in_(named)).distinct()
    hold(session, session.scalars(select(RoundRow).where(RoundRow.id.in_(rounds))))
    there = select(MatchRow.id).where(MatchRow.id.in_(named)).with_for_update(read=True, key_share=True)
    if gone := len(named) - len(session.scalars(there).all()):
        raise Conflict(
            "dataset",
            expected=Phrase("matches that stay while rows are cut from them"),
            got=Phrase("%(count)s that were removed", count=gone),
            remedy=Phrase("try again"),
        )
    session.execute(insert(DatasetRow), rows)


def _forgotten(session: Session) -> list[tuple[int, int, str]]:
    """Number, rows and hash of datasets whose registration was abandoned."""
    left = select(Dataset.id, Dataset.rows, Dataset.sha256).where(
        ~Dataset.complete, Dataset.created_at < datetime.now(UTC) - _FORGOTTEN
    )
    return [(row.id, row.rows, row.sha256) for row in session.execute(left)]


def _remove_dataset(transact: Transact, dataset_id: int | None, rows: int, path: Path | None) -> None:
    if dataset_id is not None:
        for first in range(0, rows, _ROWS_AT_ONCE):
            places = DatasetRow.place.between(first, first + _ROWS_AT_ONCE - 1)
            own = delete(DatasetRow).where(DatasetRow.dataset_id == dataset_id, places)
            in_turn(transact, partial(_delete, which=own))
    transact(partial(_delete_with_file, dataset_id=dataset_id, path=path))


def _delete(session: Session, which: Delete) -> None:
    session.execute(which)


def _delete_with_file(session: Session, dataset_id: int | None, path: Path | None) -> None:
    """Delete a dataset's row, and its file unless others have the same bytes, or a removal has yet to move them."""
    lock_tables(session, "dataset")  # like `_insert_incomplete_dataset`, which checks for the file
    if dataset_id is not None:
        session.execute(delete(Dataset).where(Dataset.id == dataset_id, ~Dataset.complete))
    if path is None:
        return
    moved = select(Removal.number).where(Removal.kind == "dataset", Removal.in_force.is_(True), Removal.moved)
    others = or_(Dataset.removed_at.is_(None), Dataset.id.not_in(moved))
    if session.scalar(select(Dataset.id).where(Dataset.sha256 == path.stem, others).limit(1)) is None:
        path.unlink(missing_ok=True)
    mark_of(path).unlink(missing_ok=True)
