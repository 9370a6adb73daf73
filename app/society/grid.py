"""A society's ratings by agent and iteration: only numbers, so that a page can step through all of them."""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.games.base import JSON
from app.models import Society, SocietyInteraction
from app.society import store

SHOWN = ("alignment_after", "alignment_before", "engagement_after", "engagement_before")
UNREAD, FAILED = 0, -1  # stand for an unreadable rating, and for a failed interaction
_CELLS = 25_000  # agents times iterations in one answer, which is then some 300 kB


def iterations_begun(session: Session, society_id: int) -> int:
    """The number of iterations up to the last one with a finished interaction."""
    table = SocietyInteraction
    over = select(func.max(table.iteration)).where(table.society_id == society_id, table.status != store.OPEN)
    last = session.scalar(over)
    return 0 if last is None else last + 1


def ratings_grid(session: Session, row: Society, iteration: int) -> JSON:
    """The ratings of an iteration, and of as many around it as fit into one response.

    `first` is the first iteration in the response, from 0, `span` the number of iterations in every response except the
    last. `ratings` has, for each of SHOWN, an entry per iteration, which has an entry per agent: tenths of a rating, 10
    to 70; UNREAD; FAILED; None for one that is not over.
    """
    agents = int(row.config["size"]) ** 2
    begun = iterations_begun(session, row.id)
    span = max(1, _CELLS // agents)
    first = iteration // span * span
    count = max(0, min(begun - first, span))
    ratings: dict[str, list[list[int | None]]] = {name: [[None] * agents for _ in range(count)] for name in SHOWN}
    table = SocietyInteraction
    columns = [getattr(table, name) for name in SHOWN]
    found = select(table.iteration, table.agent, table.status, *columns).where(
        table.society_id == row.id,
        table.status != store.OPEN,
        table.iteration >= first,
        table.iteration < first + count,
    )
    for at, agent, status, *values in session.execute(found):
        for name, value in zip(SHOWN, values, strict=True):
            ratings[name][at - first][agent] = FAILED if status == store.FAILED else _tenths(value)
    return {"first": first, "span": span, "begun": begun, "ratings": ratings}


def _tenths(rating: float | None) -> int:
    return UNREAD if rating is None else round(10 * rating)
