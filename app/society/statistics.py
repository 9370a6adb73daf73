"""Figures of a society: ratings before and after revising, by iteration, and the contents of its data."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.analysis.bootstrap import Figure, mean_figure
from app.core.csv_tables import Column
from app.society.comparisons import MIXED_OUT, NOT_BETTER, REASONS, ROW_TYPES, RowTally, SocietyData
from app.society.interaction import Interaction, Observation

FEW_RATINGS = "fewer than 10 ratings"
BEFORE, AFTER, CHANGE = "before", "after", "change"
ASPECTS = ("alignment", "engagement")


class AspectFigures(NamedTuple):
    """Mean ratings of drafts, of revisions, and of the change between them, each over the readable ratings."""

    before: Figure
    after: Figure
    change: Figure  # over interactions with both ratings readable


@dataclass(frozen=True, slots=True)
class IterationFigures:
    """The ratings of one iteration, or of all iterations if it is None; then agents are resampled, not ratings."""

    iteration: int | None
    interactions: int
    alignment: AspectFigures
    engagement: AspectFigures


@dataclass(frozen=True, slots=True)
class DataFigures:
    """Figures for one type of rows from one model, or from all models if `model` is None."""

    row_type: str
    model: str | None
    tally: RowTally


def iteration_figures(interactions: Iterable[Interaction]) -> list[IterationFigures]:
    """The figures of each iteration in order, then of all together; empty if there are no interactions."""
    by_iteration: dict[int, list[Interaction]] = defaultdict(list)
    for each in interactions:
        by_iteration[each.iteration].append(each)
    if not by_iteration:
        return []
    every = [each for _, found in sorted(by_iteration.items()) for each in found]
    return [
        *(_iteration_figures(number, found) for number, found in sorted(by_iteration.items())),
        _iteration_figures(None, every),
    ]


def data_figures(data: SocietyData) -> list[DataFigures]:
    """Figures of a society's data: for each type of rows by model, then for all models if there are several."""
    found: list[DataFigures] = []
    for row_type in ROW_TYPES:
        tallies = {model: tally for (kind, model), tally in sorted(data.tallies.items()) if kind == row_type}
        found += [DataFigures(row_type, model, tally) for model, tally in tallies.items()]
        if len(tallies) > 1:
            found.append(DataFigures(row_type, None, _together(tallies)))
    return found


def _iteration_figures(number: int | None, found: Sequence[Interaction]) -> IterationFigures:
    # An agent's answers from several iterations go together; in one iteration each agent has one.
    agents = [each.agent for each in found] if number is None else None
    return IterationFigures(number, len(found), *(_aspect(found, name, agents) for name in ASPECTS))


def _aspect(found: Sequence[Interaction], name: str, agents: Sequence[int] | None) -> AspectFigures:
    before = [_rating(each.before, name) for each in found]
    after = [_rating(each.after, name) for each in found]
    change = [None if old is None or new is None else new - old for old, new in zip(before, after, strict=True)]
    return AspectFigures(*(_mean_rating(ratings, agents) for ratings in (before, after, change)))


def _rating(observed: Observation, name: str) -> float | None:
    return observed.alignment if name == "alignment" else observed.engagement


def _mean_rating(ratings: Sequence[float | None], agents: Sequence[int] | None) -> Figure:
    places = [place for place, rating in enumerate(ratings) if rating is not None]
    values = np.array([ratings[place] for place in places], float)
    if agents is None:
        return mean_figure(values, reason=FEW_RATINGS)
    units = np.array([agents[place] for place in places], np.int64)
    if len(np.unique(units)) < len(values):
        found = mean_figure(values, units)
        return found._replace(no_interval=found.no_interval and FEW_RATINGS)
    return mean_figure(values, reason=FEW_RATINGS)


def _together(tallies: Mapping[str, RowTally]) -> RowTally:
    whole = RowTally()
    for each in tallies.values():
        whole.found += each.found
        whole.kept += each.kept
        whole.ratings += each.ratings
        whole.dropped += each.dropped
    return whole


# ---- Tables --------------------------------------------------------------------------


def _iteration_columns() -> tuple[Column, ...]:
    columns = [
        Column("iteration", "integer", "The iteration.", "from 0; empty for all of them", lambda row: row.iteration),
        Column("interactions", "integer", "Interactions that are over.", "from 1", lambda row: row.interactions),
    ]
    for aspect in ASPECTS:
        for when, meaning in (
            (BEFORE, f"Mean {aspect} of the drafts."),
            (AFTER, f"Mean {aspect} of the revisions."),
            (CHANGE, f"What revising added to {aspect}, on average."),
        ):
            values = "from -6 to 6" if when == CHANGE else "from 1 to 7"
            columns += _figure_columns(aspect, when, meaning, f"{values}; empty where no rating could be read")
    return tuple(columns)


def _figure_columns(aspect: str, when: str, meaning: str, values: str) -> list[Column]:
    name = f"{aspect}_{when}"

    def figure(row: IterationFigures) -> Figure:
        found: Figure = getattr(getattr(row, aspect), when)
        return found

    return [
        Column(name, "number", meaning, values, lambda row: figure(row).value),
        Column(f"{name}_low", "number", f"Lower end of the 95 % interval of {name}.",
               "empty where there is none", lambda row: figure(row).low),
        Column(f"{name}_high", "number", f"Upper end of the 95 % interval of {name}.",
               "empty where there is none", lambda row: figure(row).high),
        Column(f"{name}_n", "integer", f"Of how many ratings {name} is taken.", "from 0", lambda row: figure(row).n),
    ]  # fmt: skip


def _reason_column(reason: str) -> Column:
    return Column(
        f"dropped_{_REASON_NAMES[reason]}",
        "integer",
        f"Responses that are in no row: {reason}.",
        "from 0",
        lambda row: row.tally.dropped[reason],
    )


_REASON_NAMES = {each: each.replace(" ", "_") for each in REASONS} | {
    NOT_BETTER: "not_better_than_draft", MIXED_OUT: "by_the_mixing_ratio",
}  # fmt: skip
ITERATION_COLUMNS = _iteration_columns()
DATA_COLUMNS = (
    Column("type", "text", "The type of rows.", " | ".join(ROW_TYPES), lambda row: row.row_type),
    Column("model", "text", "Who wrote the responses.", "a model's name; empty for all", lambda row: row.model),
    Column("found", "integer", "Responses available.", "from 1", lambda row: row.tally.found),
    Column("kept", "integer", "Responses that are in a row.", "from 0", lambda row: row.tally.kept),
    Column("dropped", "number", "The share of them that is in no row.", "0 to 1", lambda row: row.tally.dropped_share),
    Column("rating", "number", "Their mean rating.", "1 to 7; empty without one", lambda row: row.tally.mean_rating),
    *(_reason_column(reason) for reason in REASONS),
)
