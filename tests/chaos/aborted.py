"""Why matches were aborted, by cause, and which causes no storm excuses."""

import re
from collections import Counter
from collections.abc import Iterable

from sqlalchemy import Engine, select

from app.core.extensions import reading
from app.core.failures import OUR_FAULT
from app.matches.events import Aborted, from_json
from app.models import EventRow

RULES = "the model broke the rules five times at a turn"
SLOW = "the model took too long"
SILENT = "the model's server gave no answer"
DIED = "workers died at the turn"
DATABASE = "the database was away"
BROKEN = "something of ours broke"
# A model that breaks the rules does so by itself. All else in a storm is done by it, passes, and can be waited out.
EXCUSED = (RULES,)
_DATABASE = re.compile(r"\b(OperationalError|InterfaceError|InternalError|TimeoutError: QueuePool)\b")


def cause_of(aborted: Aborted) -> str:
    """The cause that a match's end names."""
    if aborted.fault == OUR_FAULT:
        if "workers died" in aborted.detail:
            return DIED
        return DATABASE if _DATABASE.search(aborted.detail) else BROKEN
    if "refused attempts" in aborted.detail:
        return RULES
    return SLOW if aborted.detail.startswith("no answer within") else SILENT


def aborted_by_cause(database: Engine) -> Counter[str]:
    """How many matches of a database were aborted, by cause."""
    with reading(database) as session:
        bodies = session.scalars(select(EventRow.body).where(EventRow.kind == "aborted")).all()
    return Counter(cause_of(event) for event in map(from_json, bodies) if isinstance(event, Aborted))


def table(matches: int, causes: Counter[str]) -> str:
    """As Markdown, for docs/results.md."""
    lines = ["| matches | aborted | by cause |", "|---|---|---|"]
    named = "; ".join(f"{cause}: {number}" for cause, number in causes.most_common()) or "none"
    lines.append(f"| {matches} | {causes.total()} | {named} |")
    return "\n".join(lines)


def unexcused(causes: Counter[str]) -> Iterable[str]:
    """A line for each cause of ours that could have been waited out."""
    return (f"{number} matches aborted: {cause}" for cause, number in causes.items() if cause not in EXCUSED)
