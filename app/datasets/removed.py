"""What is no longer known about datasets because rounds with rows in them were removed. Only reads."""

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import Removal
from app.rounds.job import ROUND


def removed_rounds(session: Session, datasets: Collection[int]) -> list[int]:
    """The rounds with rows in these datasets that are removed now, in order: nobody can see who played them, or on what
    material.
    """
    wanted = {*map(str, datasets)}
    which = select(Removal).where(Removal.kind == ROUND.name, Removal.in_force.is_(True)).order_by(Removal.number)
    return [each.number for each in session.scalars(which) if wanted & {*each.dataset_rows}]
