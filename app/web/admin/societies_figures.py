"""The figures of a society for its pages, computed off the event loop and cached until the society grows."""

from collections.abc import Sequence
from functools import partial

from sqlalchemy.orm import Session

from app.analysis.chart import Chart
from app.core.errors import Invalid, Phrase
from app.core.extensions import db
from app.games.base import JSON
from app.jobs import states
from app.models import Society
from app.society import store
from app.society.charts import society_charts
from app.society.comparisons import MIXING, rated_rows
from app.society.grid import ratings_grid
from app.society.job import SOCIETY
from app.society.statistics import DataFigures, IterationFigures, data_figures, iteration_figures
from app.web.admin.rounds_analysis import cached
from app.web.chart_language import page_language
from app.web.threads import in_worker_thread

MOST = 50_000  # interactions that are read with their texts while somebody waits for the page


def charts_of(row: Society) -> list[Chart]:
    """The charts of a society. While it runs they show the finished iterations."""
    return society_charts(str(row.id), figures_of(row), int(row.config["iterations"]), page_language())


def figures_of(row: Society) -> list[IterationFigures]:
    """The ratings of each iteration and of all of them."""
    before = row.iteration if row.status in states.LIVE else None
    found: list[IterationFigures] = cached(
        _cache_key(row, "ratings", before),
        partial(in_worker_thread, db.engine, _read_iteration_figures, row.id, before),
    )
    return found


def data_of(row: Society, mixing: str) -> Sequence[DataFigures]:
    """The data that a society would give. Raises Invalid for a society that is too large for a page."""
    check_size(row, "data")
    found: Sequence[DataFigures] = cached(
        _cache_key(row, "data", mixing), partial(in_worker_thread, db.engine, _data, row.id, mixing)
    )
    return found


def grid_of(row: Society, iteration: int) -> JSON:
    """The ratings by agent of an iteration, counted from 0, and of the iterations around it."""
    found: JSON = in_worker_thread(db.engine, _read_ratings_grid, row.id, iteration)
    return found


def check_size(row: Society, command: str) -> None:
    """Raises Invalid, which names the command, for a society with too many texts for a page to wait for."""
    if row.interactions > MOST:
        raise Invalid(
            "interactions",
            expected=Phrase("at most %(most)s to be read while a page waits", most=MOST),
            got=row.interactions,
            remedy=Phrase("`%(command)s` has no such limit", command=f"flask society {command} {row.id}"),
        )


def _cache_key(row: Society, what: str, part: object) -> tuple[object, ...]:
    # The key includes the creation time: in a restored database, the number may be another society's.
    over = None if row.status in states.LIVE and what == "ratings" else row.interactions
    return (str(db.engine.url), "society", what, row.id, row.created_at, part, over)


def _read_iteration_figures(session: Session, number: int, before: int | None) -> list[IterationFigures]:
    return iteration_figures(store.read_ratings(session, number, before=before))


def _data(session: Session, number: int, mixing: str) -> Sequence[DataFigures]:
    return data_figures(rated_rows(store.read_interactions(session, number), MIXING[mixing]))


def _read_ratings_grid(session: Session, number: int, iteration: int) -> JSON:
    return ratings_grid(session, SOCIETY.get(session, number), iteration)
