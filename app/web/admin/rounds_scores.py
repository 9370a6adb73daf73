"""Scores of rounds for lists, cached and counted off the event loop, because a round may have 100,000 matches."""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Engine

from app.analysis.headline import RoundHeadline, headline
from app.models import RoundRow
from app.rounds.listing import MeanScores, score
from app.web.threads import in_worker_thread

_MOST_CACHED = 2000
_known: OrderedDict[tuple[str, int, datetime, int], "ListedScores"] = OrderedDict()


class ListedScores(NamedTuple):
    """A round's scores in a list: how its matches ended, and for two different models what each scored."""

    score: MeanScores
    headline: RoundHeadline | None


def scores(engine: Engine, rows: Sequence[RoundRow]) -> dict[int, ListedScores]:
    """The scores of rounds by number, cached until more of their matches are over."""
    place = str(engine.url)
    keys = {row.id: (place, row.id, row.created_at, row.finished) for row in rows}
    new = [row.id for row in rows if keys[row.id] not in _known]
    if new:
        for number, counted in in_worker_thread(engine, _read_listed_scores, new).items():
            _known[keys[number]] = counted
    found = {number: _known[key] for number, key in keys.items()}
    while len(_known) > _MOST_CACHED:
        _known.popitem(last=False)
    return found


def _read_listed_scores(session: Any, numbers: Sequence[int]) -> dict[int, ListedScores]:
    return {
        number: ListedScores(score(session, number), headline(session, session.get_one(RoundRow, number)))
        for number in numbers
    }
