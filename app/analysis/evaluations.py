"""The figures of one model in an evaluation, and its score relative to the first model's."""

from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure, Floats, ratio_figure
from app.analysis.reading import matches_of
from app.analysis.rounds import RoundAnalysis, analyse
from app.games.match_table import MatchTable
from app.games.metrics import Use, Value


def figures_of_model(session: Session, round_id: int, model: str, first: tuple[int, str] | None) -> dict[str, Any]:
    """The figures of a model in a finished evaluation, by column, as JSON.

    Against itself they are those of the round; against another player, figures of seats are the model's own. `first` is
    the same evaluation of the campaign's base, as its round and the base's name, and gives the ratios of the model's
    means to the base's. None for the base itself.
    """
    [found] = analyse(session, [round_id])
    columns = dict(found.metrics.columns) if len(found.players) == 1 else _own(found, model)
    if first is not None and found.defined.ratios:
        mine, base = (matches_of(session, [number]) for number in (round_id, first[0]))
        for name, metric in found.defined.ratios.items():
            if metric.value is not None:
                over, under = own_means(mine, model, metric.value), own_means(base, first[1], metric.value)
                columns[name] = ratio_figure(over, under, mine.units)
    return {name: figure._asdict() for name, figure in columns.items()}


def _own(found: RoundAnalysis, model: str) -> dict[str, Figure]:
    """The model's own figures, under the names of the metrics of matches, and the figures of whole matches."""
    parts = {part.role: part.columns for part in found.metrics.parts if part.player == model}
    own, whole = {}, {}
    for name, metric in found.defined.columns.items():
        column, role = metric.own or ("", None)
        if column in parts.get(role, {}):
            own[name] = parts[role][column]
        elif Use.WHOLE in metric.uses and name in found.metrics.columns:
            whole[name] = found.metrics.columns[name]
    return own | whole


def own_means(matches: MatchTable, model: str, value: Value) -> Floats:
    """A model's value in each match, the mean of both seats where it sat in both: (n,), by the matches' index."""
    seats = matches.player == (matches.players.index(model) if model in matches.players else -1)
    means: Floats = np.where(seats, value(matches), 0).sum(1) / np.maximum(seats.sum(1), 1)
    return means
