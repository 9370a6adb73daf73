"""The running mean score of a round over its matches in the order in which they ended, with its interval."""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.analysis.bootstrap import LEAST, NORMAL
from app.analysis.chart import HEIGHT, WIDTH, Chart, Description, Spec
from app.analysis.language import ENGLISH, Language
from app.analysis.losses import MOST_DRAWN
from app.analysis.reading import sampled_indexes
from app.analysis.themes import Palette
from app.core.errors import Phrase
from app.jobs.curves import Curve
from app.matches.filter import is_over
from app.models import MatchRow, RoundRow
from app.models.types import is_among

_LISTED = 20  # means listed in the table
_MOST_READ = 5_000  # matches


class RunningMean(NamedTuple):
    """The mean score of a seat over the first `matches`, and its 95 % interval from ten matches on.

    The interval is that of the normal distribution, over matches: the two seats of a match count once, with their mean.
    """

    matches: int
    mean: float
    low: float | None
    high: float | None


def running_means(session: Session, round_id: int) -> list[RunningMean]:
    """The means after matches in the order of their ends: at most MOST_DRAWN, evenly spaced, with the last."""
    row = session.get_one(RoundRow, round_id)
    indexes = sampled_indexes(row, _MOST_READ)
    over = [MatchRow.round_id == round_id, is_over()]
    chosen = over if indexes is None else [*over, is_among(MatchRow.index, indexes)]
    columns = select(MatchRow.utility_0, MatchRow.utility_1).where(*chosen)
    rows = session.execute(columns.order_by(MatchRow.ended_at, MatchRow.index)).all()
    scores = [((first or 0) + (second or 0)) / 2 for first, second in rows]
    return means_of(scores, 1.0 if indexes is None or not rows else row.finished / len(rows))


def means_of(scores: Sequence[float], stands_for: float = 1.0) -> list[RunningMean]:
    """The mean after each of at most MOST_DRAWN evenly spaced numbers of matches, including the last.

    `scores` are in the order of the matches' ends; in a sample, each `stands_for` that many matches.
    """
    every = -(-len(scores) // MOST_DRAWN) or 1
    found, squares, mean = [], 0.0, 0.0
    for total, score in enumerate(scores, 1):
        before = mean
        mean += (score - mean) / total
        squares += (score - before) * (score - mean)  # Welford 1962: exact also for means that are far from 0
        if (len(scores) - total) % every == 0:
            half = NORMAL * sqrt(squares / (total - 1) / total / stands_for) if total >= LEAST else None
            found.append(
                RunningMean(
                    round(total * stands_for), mean, *((None, None) if half is None else (mean - half, mean + half))
                )
            )
    return found


def mean_chart(name: str, means: Sequence[RunningMean], language: Language = ENGLISH) -> Chart | None:
    """The running mean of a round, with its interval as a band; None before a second match has finished."""
    if len(means) < 2:
        return None
    gettext = language.gettext
    data = [each._asdict() for each in means]
    x, y = gettext("Finished matches"), gettext("Mean score so far")

    def draw(colours: Palette) -> Spec:
        place = {"field": "matches", "type": "quantitative", "title": x, "scale": {"nice": False, "zero": False}}
        low = {"field": "low", "type": "quantitative", "title": y, "scale": {"zero": False}}
        band = {
            "transform": [{"filter": {"field": "low", "valid": True}}],
            "mark": {"type": "area", "color": colours.first, "opacity": 0.2, "aria": False},
            "encoding": {"y": low, "y2": {"field": "high"}},
        }
        line = {
            "mark": {"type": "line", "color": colours.first, "strokeWidth": 2},
            "encoding": {
                "y": {"field": "mean", "type": "quantitative", "title": y, "scale": {"zero": False}},
                "tooltip": [
                    {"field": "matches", "title": x},
                    {"field": "mean", "title": y, "type": "quantitative", "format": ".4~g"},
                ],
            },
        }
        return {
            "width": WIDTH,
            "height": HEIGHT,
            "data": {"values": data},
            "encoding": {"x": place},
            "layer": [*([band] if means[-1].low is not None else []), line],
        }

    last = means[-1]
    sentence = gettext(
        "Mean score of a seat over the matches in the order in which they ended: %(mean)s after %(matches)s.",
        mean=language.decimals(last.mean, 2),
        matches=last.matches,
    )
    if last.low is not None and last.high is not None:
        low, high = language.decimals(last.low, 2), language.decimals(last.high, 2)
        sentence += " " + gettext(
            "The band is its 95 %% interval, %(low)s to %(high)s at the end; matches that end early may differ from"
            " those that end late.",
            low=low,
            high=high,
        )
    rows = [
        (str(each.matches), *("" if end is None else language.decimals(end, 2) for end in each[1:]))
        for each in means[:: -(-len(means) // _LISTED)]
    ]
    header = (x, y, gettext("95 %% from"), gettext("95 %% to"))
    title = gettext("The mean as the round went on")
    return Chart(name, title, Description(sentence, header, rows), draw, data, language)


def curves(session: Session, row: RoundRow) -> Sequence[Curve]:
    """The curve of a round."""
    points = [(each.matches, each.mean) for each in running_means(session, row.id)]
    return [Curve("score", Phrase("Mean score so far"), Phrase("Finished matches"), points)]
