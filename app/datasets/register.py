"""Registering a dataset whose file is there: its row, and the origin of each of the file's rows.

A hundred thousand rows take seconds, and on SQLite whoever writes keeps everybody else from it. So they are written in
short transactions, and the dataset is seen when the last of them is done.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice

from sqlalchemy import Delete, delete, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Phrase, check_name
from app.core.extensions import Transact, in_turn, lock_tables
from app.datasets.store import UnregisteredDataset
from app.jobs.holding import hold
from app.models import Dataset, DatasetRow, MatchRow, RoundRow, SeatRow

_ROWS_AT_ONCE = 5_000  # in one transaction
_FORGOTTEN = timedelta(hours=1)  # after which nobody is at registering a dataset any more


def save(transact: Transact, draft: UnregisteredDataset, name: str) -> int:
    """Register a draft as the next version of the dataset of that name, with the origin of each row. Its number.

    Raises Invalid for a name that cannot be one.
    """
    number = add(transact, draft, name)
    transact(lambda session: publish(session, number))
    return number


def add(transact: Transact, draft: UnregisteredDataset, name: str) -> int:
    """Write a draft down in as many short transactions as it takes. Nobody sees it until `publish`. Its number.

    Rows that no match here gave, as those of an imported file, are in no table.
    What was left of datasets that somebody was killed at goes first. Raises Invalid for a name that cannot be one.
    """
    check_name("name", name)
    for forgotten in transact(_forgotten):
        _remove(transact, *forgotten)
    number = transact(lambda session: _begun(session, draft, name))
    every = enumerate((match_id, seat) for match_id, seats in draft.origins for seat in seats)
    rows = (each for each in every if each[1][0] is not None)
    try:
        while part := list(islice(rows, _ROWS_AT_ONCE)):
            in_turn(transact, partial(_insert, dataset_id=number, part=part))
    except IntegrityError:  # a round was removed meanwhile, and its matches are gone
        raise Conflict(
            "dataset",
            expected=Phrase("matches that stay while rows are cut from them"),
            got=Phrase("some that were removed"),
            remedy=Phrase("try again"),
        ) from None
    return number


def publish(session: Session, dataset_id: int) -> Dataset:
    """Let a dataset be seen: all of its rows are there. If somebody has withdrawn meanwhile that models learn from a
    match in it, it is unusable.
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


def _begun(session: Session, draft: UnregisteredDataset, name: str) -> int:
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


def _insert(session: Session, dataset_id: int, part: Sequence[tuple[int, tuple[str | None, int | None]]]) -> None:
    rows = [
        {"dataset_id": dataset_id, "place": place, "match_id": match_id, "seat": seat}
        for place, (match_id, seat) in part
    ]
    named = {match_id for _, (match_id, _) in part}
    rounds = select(MatchRow.round_id).where(MatchRow.id.in_(named)).distinct()
    hold(session, session.scalars(select(RoundRow).where(RoundRow.id.in_(rounds))))
    session.execute(insert(DatasetRow), rows)


def _forgotten(session: Session) -> list[tuple[int, int]]:
    """Number and rows of datasets that nobody is registering any more."""
    left = select(Dataset.id, Dataset.rows).where(
        ~Dataset.complete, Dataset.created_at < datetime.now(UTC) - _FORGOTTEN
    )
    return [(row.id, row.rows) for row in session.execute(left)]


def _remove(transact: Transact, dataset_id: int, rows: int) -> None:
    for first in range(0, rows, _ROWS_AT_ONCE):
        places = DatasetRow.place.between(first, first + _ROWS_AT_ONCE - 1)
        in_turn(transact, partial(_delete, which=delete(DatasetRow).where(DatasetRow.dataset_id == dataset_id, places)))
    transact(lambda session: _delete(session, delete(Dataset).where(Dataset.id == dataset_id)))


def _delete(session: Session, which: Delete) -> None:
    session.execute(which)
