"""What an evaluation says of one model: its own figures, and its score beside that of the model that came first."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure, Floats, ratio_figure
from app.analysis.metrics import ModelMetrics
from app.analysis.reading import matches_of
from app.analysis.rounds import RoundAnalysis, analyse
from app.games.match_table import MatchTable
from app.games.taboo.outcomes import ROLES

# By game, the columns of a model's own part in matches against another player, under the names that they have where it
# plays against itself; by role where roles differ. Columns that are of the match as a whole stay.
_OWN: Mapping[str, Mapping[tuple[str, str | None], str]] = {
    "negotiation": {
        (name, None): name for name in ("score_mean", "score_median", "agreed_score_mean", "agreed_score_median")
    },
    "taboo": {
        (name, role): f"{role}_{column}"
        for role in ROLES
        for name, column in (("score_mean", "score_mean"), ("win_rate", "wins_rate"))
    },
}
_OF_BOTH: Mapping[str, tuple[str, ...]] = {
    "negotiation": (
        "agreement_rate", "agreed_pareto_rate", "pareto_rate", "messages_mean", "abort_rate", "violations_mean",
        "unspoken_rate",
    ),
    "taboo": ("turns_mean", "messages_mean", "abort_rate", "violations_mean"),
}  # fmt: skip


def figures_of_model(session: Session, round_id: int, model: str, first: tuple[int, str] | None) -> dict[str, Any]:
    """The figures of a model in an evaluation that is over, by column, as JSON.

    Against itself they are those of the round; against another player, the scores are the model's own. `first` is the
    same evaluation of the campaign's base, by its round and the base's name: in a negotiation `score_ratio` says how
    many times the base's mean score the model's is. None for the base itself.
    """
    [found] = analyse(session, [round_id])
    columns = dict(found.metrics.columns) if len(found.players) == 1 else _own(found, model)
    if first is not None and found.game == "negotiation":
        mine, base = (matches_of(session, [number]) for number in (round_id, first[0]))
        columns["score_ratio"] = ratio_figure(own_scores(mine, model), own_scores(base, first[1]), mine.units)
    return {name: figure._asdict() for name, figure in columns.items()}


def _own(found: RoundAnalysis, model: str) -> dict[str, Figure]:
    parts: list[ModelMetrics] = [part for part in found.metrics.parts if part.player == model]
    own = {
        title: part.columns[name]
        for part in parts
        for (name, role), title in _OWN[found.game].items()
        if role == part.role and name in part.columns
    }
    whole = {name: found.metrics.columns[name] for name in _OF_BOTH[found.game] if name in found.metrics.columns}
    return own | whole


def own_scores(matches: MatchTable, model: str) -> Floats:
    """What a model got in each match, the mean of both seats where it sat in both: (n,), by the matches' index."""
    seats = matches.player == (matches.players.index(model) if model in matches.players else -1)
    scores: Floats = np.where(seats, matches.utility, 0).sum(1) / np.maximum(seats.sum(1), 1)
    return scores
