"""The filters that select a dataset's transcripts from finished matches. Pure.

Source: Liao, Tomlin & Klein 2024, arXiv 2406.18872 (filtered behaviour cloning).
"""

from collections import Counter

import numpy as np

from app.rounds.above_average import Booleans, Floats, above

ABOVE_AVG, ABOVE_AVG_NONZERO, NONZERO, ALL = "above_avg", "above_avg_nonzero", "nonzero", "all"
MODELS, PEOPLE, BOTH = "models", "people", "both"
SPEAKERS = (BOTH, MODELS, PEOPLE)
NO_CONTROL, RANDOM_ROWS, SHUFFLED_REWARDS = "none", "random_rows", "shuffled_rewards"
_PERSON = "person"


def keeps(filter_name: str, utilities: Floats, agreed: Booleans, mean: float, partner_weight: float) -> Booleans:
    """The seats whose transcripts a filter keeps: `utilities` (n, 2) by seat, `agreed` (n,); returns (n, 2).

    `mean` is that of the scores in `compared_with` of both seats of all finished matches of the round. All comparisons
    are strict; if a partner's point costs one's own, both seats of a deal of 0 to 0 are kept as well. `partner_weight`
    is 0 in games without one.
    """
    if filter_name == ALL:
        return np.ones(utilities.shape, bool)
    found: Booleans = above(utilities, agreed, np.array([0.0 if filter_name == NONZERO else mean]), partner_weight)[0]
    return found


def compared_with(filter_name: str, scores: Counter[float]) -> Counter[float]:
    """The scores whose mean a seat has to exceed, with how often each occurred: all, or those above 0."""
    if filter_name != ABOVE_AVG_NONZERO:
        return scores
    return Counter({score: number for score, number in scores.items() if score > 0})


def may_train(kind: str, consent: bool | None, source: str) -> bool:
    """Whether a seat's messages may be used for training: people must have consented, models need no consent.

    The publishers of imported dialogues have asked the people in them.
    """
    return kind != _PERSON or (source == "import" if consent is None else consent)


def is_of(speakers: str, kind: str) -> bool:
    """Whether moves of a person or a model belong to `models`, `people` or `both`."""
    return speakers == BOTH or (speakers == PEOPLE) == (kind == _PERSON)
