"""Datasets that hold withdrawn data: nothing may be trained on them, and their files are deleted.

The row, the hash and the origin of its rows stay. A dataset is marked in the transaction in which the person withdraws;
the files are deleted afterwards, by the same process or by upkeep.
"""

import shutil
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.core.files import ARCHIVES, REMOVED
from app.datasets.store import FOLDER
from app.models import Dataset, DatasetRow, Removal

_MATCHES_AT_ONCE = 500  # in one statement


def mark_unusable(session: Session, match_ids: Collection[str]) -> Sequence[Dataset]:
    """Mark the datasets with rows of these matches, or with the same bytes as one that has them; return all, by
    number.
    """
    held: set[int] = set()
    ids = sorted(match_ids)
    for part in (ids[first : first + _MATCHES_AT_ONCE] for first in range(0, len(ids), _MATCHES_AT_ONCE)):
        held.update(session.scalars(select(DatasetRow.dataset_id).where(DatasetRow.match_id.in_(part)).distinct()))
    hashes = select(Dataset.sha256).where(Dataset.id.in_(held))
    which = or_(Dataset.id.in_(held), Dataset.sha256.in_(hashes))
    found = session.scalars(select(Dataset).where(which).order_by(Dataset.id).with_for_update()).all()
    for row in found:
        row.unusable_at = row.unusable_at or datetime.now(UTC)
    session.flush()
    return found


def delete_files(session: Session, home: Path) -> list[str]:
    """Delete the existing files of all unusable datasets, and return the names of those deleted."""
    hashes = session.scalars(select(Dataset.sha256).where(Dataset.unusable_at.is_not(None)).distinct())
    gone = []
    for path in (home / FOLDER / f"{sha256}.jsonl" for sha256 in sorted(hashes)):
        if path.exists():
            path.unlink(missing_ok=True)
            gone.append(path.name)
    _delete_removed(session, home)
    return gone


def _delete_removed(session: Session, home: Path) -> None:
    """Delete what was kept when such datasets were removed; upkeep records it on their removals."""
    numbers = select(Dataset.id).where(Dataset.unusable_at.is_not(None))
    which = (Removal.kind == "dataset", Removal.number.in_(numbers), Removal.archive.is_not(None))
    for removal in session.scalars(select(Removal).where(*which)):
        (home / ARCHIVES / str(removal.archive)).unlink(missing_ok=True)
        shutil.rmtree(home / REMOVED / str(removal.id), ignore_errors=True)
