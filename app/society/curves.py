"""The curves of a society: mean ratings of drafts and of revisions by iteration, from 1."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.core.errors import Phrase
from app.jobs import states
from app.jobs.curves import Curve
from app.models import Society
from app.society import store
from app.society.statistics import AFTER, ASPECTS, BEFORE, iteration_figures

_TITLES = {
    ("alignment", BEFORE): Phrase("Alignment of drafts"),
    ("alignment", AFTER): Phrase("Alignment of revisions"),
    ("engagement", BEFORE): Phrase("Engagement of drafts"),
    ("engagement", AFTER): Phrase("Engagement of revisions"),
}


def curves(session: Session, row: Society) -> Sequence[Curve]:
    """The curves of a society over its finished iterations; some may be empty."""
    before = row.iteration if row.status in states.LIVE else None
    found = iteration_figures(store.read_ratings(session, row.id, before=before))
    points = [
        (each.iteration + 1, aspect, when, getattr(getattr(each, aspect), when).value)
        for each in found
        if each.iteration is not None
        for aspect in ASPECTS
        for when in (BEFORE, AFTER)
    ]
    return [
        Curve(
            f"{aspect}_{when}",
            title,
            Phrase("Iteration"),
            [(at, value) for at, of, then, value in points if (of, then) == (aspect, when) and value is not None],
        )
        for (aspect, when), title in _TITLES.items()
    ]
