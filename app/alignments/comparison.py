"""The first and the last society of an alignment, compared interaction by interaction. Pure.

Both have the same config and seed, so an agent has the same place in both and is asked the same question in the same
iteration: two such interactions are a pair. Agents are resampled, as the answers of one agent are not independent.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from app.analysis.bootstrap import Figure, mean_figure
from app.society.interaction import Interaction, Observation

FEW_AGENTS = "fewer than 10 agents"
DRAFTS, REVISIONS = "drafts", "revisions"


class SocietyDifference(NamedTuple):
    """Mean ratings in both societies, over the pairs rated in both, and the mean of their differences."""

    aspect: str  # alignment | engagement
    of: str  # drafts | revisions
    first: Figure
    last: Figure
    difference: Figure


def society_differences(
    first: Iterable[Interaction], last: Iterable[Interaction], agents: Collection[int]
) -> list[SocietyDifference]:
    """The ratings of these agents in both societies; empty without a pair."""
    begun = {(each.iteration, each.agent): each for each in first if each.agent in agents}
    ended = {(each.iteration, each.agent): each for each in last if each.agent in agents}
    pairs = sorted(begun.keys() & ended.keys())
    if not pairs:
        return []
    return [
        _difference(aspect, of, [(agent, begun[at, agent], ended[at, agent]) for at, agent in pairs])
        for aspect in ("alignment", "engagement")
        for of in (DRAFTS, REVISIONS)
    ]


def _difference(aspect: str, of: str, pairs: Sequence[tuple[int, Interaction, Interaction]]) -> SocietyDifference:
    found = [(agent, _rating(old, aspect, of), _rating(new, aspect, of)) for agent, old, new in pairs]
    rated = [(agent, old, new) for agent, old, new in found if old is not None and new is not None]
    units = np.array([agent for agent, _, _ in rated], np.int64)
    first, last = (np.array([each[place] for each in rated], float) for place in (1, 2))
    figures = [mean_figure(values, units) for values in (first, last, last - first)]
    named = [each._replace(no_interval=each.no_interval and FEW_AGENTS) for each in figures]
    return SocietyDifference(aspect, of, *named)


def _rating(interaction: Interaction, aspect: str, of: str) -> float | None:
    observed: Observation = interaction.before if of == DRAFTS else interaction.after
    return observed.alignment if aspect == "alignment" else observed.engagement
