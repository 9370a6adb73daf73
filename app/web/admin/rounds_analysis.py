"""Analyses of rounds and of other matches for pages, in words.

They are computed off the event loop, and cached until another match is over.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from flask_babel import gettext
from gevent.lock import BoundedSemaphore
from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.analysis.chart import Chart
from app.analysis.crossplay import CrossPlay, cross_play
from app.analysis.matches import MatchAnalysis, analyse_matches
from app.analysis.reading import extent
from app.analysis.rounds import RoundAnalysis, analyse
from app.analysis.themes import THEMES
from app.core.errors import Invalid, Phrase
from app.core.extensions import db
from app.games.metrics import Metric, Use
from app.matches.filter import MatchFilter, check_known
from app.models import RoundRow
from app.web.admin.rounds_result import result_of
from app.web.threads import in_worker_thread

_MOST_CACHED = 200
_TILES = 8  # two rows of them
_MOST = 200_000  # matches of a filter up to which a page counts all
SAMPLE = 5_000  # matches that it counts otherwise
_known: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
_one_at_a_time = BoundedSemaphore(1)  # so that ten pages that ask for the same compute it once


class TitledFigure(NamedTuple):
    """A figure with its title."""

    name: str
    label: Any
    figure: Figure

    @property
    def is_share(self) -> bool:
        """Whether it is a share of something, from 0 to 1."""
        return self.name.endswith(("_rate", "_share"))


def labels_of(metrics: Iterable[Metric]) -> dict[str, str]:
    """The headings of table columns in the page's language, by the metrics' names."""
    return {each.name: gettext(each.heading) for each in metrics}


def notes_of(metrics: Iterable[Metric]) -> list[str]:
    """The sentences below a table of these metrics in the page's language, each once."""
    return [gettext(note) for note in dict.fromkeys(each.note for each in metrics if each.note)]


def analysis_of(rows: Sequence[RoundRow], most: int | None = None) -> dict[int, RoundAnalysis]:
    """The analyses of rounds by number, cached until more matches are over.

    With `most`, each is based on about that many matches.
    """
    engine = db.engine
    # The key includes the creation time: in a restored database, the number may be another round's.
    keys = {row.id: (str(engine.url), "round", row.id, row.created_at, row.finished, row.status, most) for row in rows}
    return {number: cached(key, partial(in_worker_thread, engine, _one, number, most)) for number, key in keys.items()}


def matrix_of(matrix_id: int, rows: Sequence[RoundRow]) -> CrossPlay:
    """The matrix of the cross-play that these rounds belong to."""
    engine = db.engine
    key = (str(engine.url), "matrix", matrix_id, *((row.created_at, row.finished) for row in rows))
    found: CrossPlay = cached(key, partial(in_worker_thread, engine, cross_play, matrix_id))
    return found


class ChosenAnalyses(NamedTuple):
    """The analyses of chosen matches, and whether these are only a sample of them."""

    analyses: list[MatchAnalysis]
    sampled: bool


def analyses_of(choice: MatchFilter, *, whole: bool) -> ChosenAnalyses:
    """The analyses of the matches that a filter selects, one for each game and λ; made again when more are over.

    If there are more than SAMPLE matches, a sample is analysed, unless `whole` is set. Raises NotFound as
    `analyse_matches` does, and Invalid if `whole` asks for more than a page may wait for.
    """
    engine, most = db.engine, _MOST if whole else SAMPLE
    over, last = in_worker_thread(engine, _extent, choice, most)
    if whole and over > _MOST:
        raise Invalid(
            "matches",
            expected=Phrase("at most %(most)s of them on a page", most=_MOST),
            got=Phrase("more"),
            remedy=Phrase("`flask analyze` takes the same choice without a limit"),
        )
    key = (str(engine.url), "matches", choice, most, over, last)
    sampled = over > most
    make = partial(in_worker_thread, engine, analyse_matches, choice, most if sampled else None)
    return ChosenAnalyses(cached(key, make), sampled)


def _extent(session: Session, choice: MatchFilter, most: int) -> tuple[int, datetime | None]:
    check_known(session, choice)
    return extent(session, choice, most)


def _one(session: Session, number: int, most: int | None) -> RoundAnalysis:
    return analyse(session, [number], most)[0]


def cached(key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """What `make` returns, computed once for each key; the least recently used results are dropped."""
    with _one_at_a_time:
        if key not in _known:
            _known[key] = make()
        _known.move_to_end(key)
        while len(_known) > _MOST_CACHED:
            _known.popitem(last=False)
        return _known[key]


def with_specs(chart: Chart) -> tuple[Chart, dict[str, Any]]:
    """A chart, and its spec by theme, for a page that carries both."""
    return chart, {theme: chart.spec(theme, titled=False) for theme in THEMES}


def tiles(analysis: MatchAnalysis) -> list[TitledFigure]:
    """The most informative figures about matches."""
    return [each for each, _ in _shown_figures(analysis, analysis.defined.shown(Use.TILE))][:_TILES]


def table(analysis: MatchAnalysis) -> list[tuple[TitledFigure, Figure | None]]:
    """All columns of an analysis, each with its value for the transcripts above the mean score, if there is one."""
    return _shown_figures(analysis, analysis.defined.ranked)


def _shown_figures(analysis: MatchAnalysis, metrics: Sequence[Metric]) -> list[tuple[TitledFigure, Figure | None]]:
    columns, pooled = analysis.metrics.columns, is_pooled(analysis)
    return [
        (TitledFigure(each.name, gettext(each.heading), columns[each.name]), columns.get(f"above_{each.name}"))
        for each in metrics
        if each.name in columns and not (pooled and each.pooled)
    ]


def is_pooled(analysis: MatchAnalysis) -> bool:
    """Whether the scores of both seats together are those of different models."""
    return len(analysis.players) > 1


def page_part(analysis: MatchAnalysis) -> dict[str, Any]:
    """What the page of an analysis shows: its result, its tiles, all of its figures, and its notes."""
    return {
        "analysis": analysis,
        "result": result_of(analysis),
        "tiles": tiles(analysis),
        "table": table(analysis),
        "parts": labels_of(analysis.defined.of_models),
        "result_columns": labels_of(analysis.defined.shown_of_models(Use.RESULT)),
        "notes": notes_of(analysis.defined.columns.values()),
    }
