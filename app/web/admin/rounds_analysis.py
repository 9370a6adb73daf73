"""Analyses of rounds for pages: made off the event loop, kept as long as no further match is over, and put in words."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from flask_babel import lazy_gettext
from gevent.lock import BoundedSemaphore
from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.analysis.chart import Chart
from app.analysis.crossplay import CrossPlay, cross_play
from app.analysis.rounds import RoundAnalysis, analyse
from app.analysis.themes import THEMES
from app.extensions import db
from app.models import RoundRow
from app.web.admin.rounds_scores import in_worker_thread

_KEPT = 200
_TILES = 8  # two rows of them
_known: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
_one_at_a_time = BoundedSemaphore(1)  # so that ten pages that ask for the same have it made once

# What the columns of an analysis are called; what is left out of here is not shown.
SCORES = {
    "score_mean": lazy_gettext("Mean score"),
    "score_median": lazy_gettext("Median score"),
    "agreed_score_mean": lazy_gettext("Mean score of deals"),
    "agreed_score_median": lazy_gettext("Median score of deals"),
    "agreement_rate": lazy_gettext("Agreement"),
    "agreed_pareto_rate": lazy_gettext("Pareto-optimal, of deals"),
    "pareto_rate": lazy_gettext("Pareto-optimal, of all"),
    "abort_rate": lazy_gettext("Aborted"),
    "messages_mean": lazy_gettext("Messages in a match"),
    "tokens_mean": lazy_gettext("Tokens in a match"),
    "words_mean": lazy_gettext("Words in a match"),
}
MORE = {
    "violations_mean": lazy_gettext("Refused moves in a match"),
    "first_proposal_mean": lazy_gettext("Moves before the first proposal"),
    "unspoken_rate": lazy_gettext("Deals never said in the talk"),
    "above_share": lazy_gettext("Share of transcripts above the mean score"),
}
TABOO = {
    "attacker_wins_rate": lazy_gettext("Attacker wins"),
    "defender_wins_rate": lazy_gettext("Defender wins"),
    "rules_broken_rate": lazy_gettext("Attacker breaks the rules"),
    "tied_rate": lazy_gettext("Tied"),
    "abort_rate": lazy_gettext("Aborted"),
    "decided_attacker_wins_rate": lazy_gettext("Attacker wins, of decided games"),
    "attacker_score_mean": lazy_gettext("Mean score of attackers"),
    "defender_score_mean": lazy_gettext("Mean score of defenders"),
    "turns_mean": lazy_gettext("Turns in a match"),
    "messages_mean": lazy_gettext("Messages in a match"),
    "tokens_mean": lazy_gettext("Tokens in a match"),
    "words_mean": lazy_gettext("Words in a match"),
    "violations_mean": lazy_gettext("Refused moves in a match"),
}
PARTS = {
    "score_mean": lazy_gettext("Mean score"),
    "score_median": lazy_gettext("Median score"),
    "agreed_score_mean": lazy_gettext("Mean score of deals"),
    "agreed_score_median": lazy_gettext("Median score of deals"),
    "first_seat_score_mean": lazy_gettext("Mean score in the first seat"),
    "second_seat_score_mean": lazy_gettext("Mean score in the second seat"),
    "win_rate": lazy_gettext("Won"),
    "loss_rate": lazy_gettext("Lost"),
}
TILES = {
    "negotiation": (
        "score_mean", "agreed_score_mean", "agreement_rate", "agreed_pareto_rate", "pareto_rate", "messages_mean",
        "abort_rate", "above_share", "violations_mean", "words_mean",
    ),
    "taboo": (
        "attacker_wins_rate", "defender_wins_rate", "rules_broken_rate", "tied_rate", "decided_attacker_wins_rate",
        "turns_mean", "abort_rate", "violations_mean",
    ),
}  # fmt: skip


# Scores of both seats together: of two models that differ they say nothing about either.
POOLED = frozenset(("score_mean", "score_median", "agreed_score_mean", "agreed_score_median"))


class TitledFigure(NamedTuple):
    """A figure under what it is called."""

    name: str
    label: Any
    figure: Figure

    @property
    def is_share(self) -> bool:
        return is_share(self.name)


def is_share(name: str) -> bool:
    """Whether a column is a share of something, from 0 to 1."""
    return name.endswith(("_rate", "_share"))


def analysis_of(rows: Sequence[RoundRow]) -> dict[int, RoundAnalysis]:
    """The analyses of rounds by their numbers; what was made once is made again only when more matches are over."""
    engine = db.engine
    # When it was made is part of the key: in a database that was restored, another round may have the number.
    keys = {row.id: (str(engine.url), "round", row.id, row.created_at, row.finished, row.status) for row in rows}
    return {number: _kept(key, partial(in_worker_thread, engine, _one, number)) for number, key in keys.items()}


def matrix_of(matrix_id: int, rows: Sequence[RoundRow]) -> CrossPlay:
    """The matrix of a cross-play whose rounds these are."""
    engine = db.engine
    key = (str(engine.url), "matrix", matrix_id, *((row.created_at, row.finished) for row in rows))
    found: CrossPlay = _kept(key, partial(in_worker_thread, engine, cross_play, matrix_id))
    return found


def _one(session: Session, number: int) -> RoundAnalysis:
    return analyse(session, [number])[0]


def _kept(key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    with _one_at_a_time:
        if key not in _known:
            _known[key] = make()
        _known.move_to_end(key)
        while len(_known) > _KEPT:
            _known.popitem(last=False)
        return _known[key]


def with_specs(chart: Chart) -> tuple[Chart, dict[str, Any]]:
    """A chart, and its spec by theme, for a page that carries both."""
    return chart, {theme: chart.spec(theme, titled=False) for theme in THEMES}


def tiles(analysis: RoundAnalysis) -> list[TitledFigure]:
    """The figures that say most of a round."""
    labels = TABOO if analysis.game == "taboo" else {**SCORES, **MORE}
    return _shown(labels, analysis, TILES[analysis.game])[:_TILES]


def table(analysis: RoundAnalysis) -> list[tuple[TitledFigure, Figure | None]]:
    """All columns of a round, each with that of the transcripts above the mean score, where there is one."""
    columns = analysis.metrics.columns
    labels = TABOO if analysis.game == "taboo" else {**SCORES, **MORE}
    return [(each, columns.get(f"above_{each.name}")) for each in _shown(labels, analysis, tuple(labels))]


def _shown(labels: Mapping[str, Any], analysis: RoundAnalysis, names: Sequence[str]) -> list[TitledFigure]:
    columns, left_out = analysis.metrics.columns, POOLED if is_pooled(analysis) else ()
    return [
        TitledFigure(name, labels[name], columns[name]) for name in names if name in columns and name not in left_out
    ]


def is_pooled(analysis: RoundAnalysis) -> bool:
    """Whether the scores of both seats together are those of different models."""
    return len(analysis.players) > 1
