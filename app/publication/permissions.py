"""An experimenter's declarations that a model or a dataset from elsewhere may be passed on. Nothing here commits.

They do not cover people in studies here: no declaration replaces their consent.
"""

from datetime import UTC, datetime

from sqlalchemy.orm import Session

from app.core.errors import Invalid, Phrase
from app.models import Dataset, LanguageModel, ReleasePermission
from app.publication.licences import check_licence

LONGEST_REASON = 1000


def declare(
    session: Session, row: LanguageModel | Dataset, *, licence: str, reason: str, by: str | None
) -> ReleasePermission:
    """Store the licence of a model or dataset, and why it may be passed on. The latest declaration counts.

    Raises Invalid for an unknown licence or an empty reason.
    """
    said = " ".join(reason.split())
    if not 1 <= len(said) <= LONGEST_REASON:
        expected = Phrase("where it is from and why it may be passed on, in %(most)s characters", most=LONGEST_REASON)
        raise Invalid("reason", expected=expected, got=reason)
    permission = ReleasePermission(
        language_model_id=row.id if isinstance(row, LanguageModel) else None,
        dataset_id=row.id if isinstance(row, Dataset) else None,
        licence=check_licence(licence),
        reason=said,
        by=by,
        at=datetime.now(UTC),
    )
    session.add(permission)
    session.flush()
    return permission
