"""Keeping models, datasets and rounds from being removed while something that uses them is being created.

A removal locks the row and checks once more what depends on it. A user of the row holds it: then either the removal
waits and sees what was created, or the user waits and sees the removal.
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Phrase


def check_not_removed(kind: str, row: Any, subject: Phrase) -> None:
    """Raises Conflict where the content of a row with a column `removed_at` was removed."""
    if row.removed_at is not None:
        raise Conflict(
            kind,
            expected=Phrase("one that is still there"),
            got=Phrase("one that was removed on %(day)s", day=f"{row.removed_at:%Y-%m-%d}"),
            remedy=Phrase("`flask storage removed` says how to put it back"),
            subject=subject,
        )


def hold(session: Session, rows: Iterable[Any]) -> None:
    """Hold rows with a column `removed_at` until the transaction ends. Raises Conflict for one that was removed.

    Rows are always locked in the same order, which prevents deadlocks.
    """
    for row in sorted({*rows}, key=lambda each: (each.__tablename__, each.id)):
        kind = row.__tablename__.removeprefix("language_")
        try:
            session.refresh(row, ["removed_at"], with_for_update={"read": True, "key_share": True})
        except InvalidRequestError:  # removing a model that nothing was made with deletes its row
            raise Conflict(
                kind, expected=Phrase("one that is still there"), got=Phrase("one that was just removed")
            ) from None
        check_not_removed(kind, row, Phrase(f"{kind} %(number)s", number=row.id))
