"""A model's scores over several tasks in one figure: their geometric mean, with its standard error. Pure.

Source: Cheng et al. 2024, arXiv 2404.10642, which compares models by it.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

Z = 1.959963984540054  # of an interval that holds 95 %
# Words in the names of metrics that are shares of items or means of these, where higher is better: acc_norm,
# exact_match, r@1, bleu_acc. Others, such as word_perplexity, mcc, brier_score or bleu_max, have scales of their own.
_SHARES = {"acc", "accuracy", "exact", "em", "f1", "mrr", "r", "pass", "precision", "recall"}


class MeasuredScore(NamedTuple):
    """A score, from 0 to 1, and its standard error, None if unknown."""

    value: float
    stderr: float | None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the score, by the normal distribution; None without a standard error."""
        if self.stderr is None:
            return None
        return max(0.0, self.value - Z * self.stderr), min(1.0, self.value + Z * self.stderr)


def is_share(metric: str, value: float) -> bool:
    """Whether a score goes from 0 to 1, higher being better, so that it can be given in percent and averaged."""
    return not _SHARES.isdisjoint(re.split(r"[_@]", metric)) and 0 <= value <= 1


def geometric_mean(scores: Sequence[MeasuredScore]) -> MeasuredScore:
    """The geometric mean of scores that were measured independently.

    Its standard error is that of the delta method: the logarithm of the mean is the mean of the logarithms, and that of
    a score x with standard error s has the standard error s/x, so G·√Σ(s/x)²/k for k scores. If a score is 0, the mean
    is 0 without a standard error; it also has none if a score has none. Raises ValueError without scores.
    """
    if not scores:
        raise ValueError("expected scores, got none")
    if any(each.value <= 0 for each in scores):
        return MeasuredScore(0.0, None)
    mean = math.exp(math.fsum(math.log(each.value) for each in scores) / len(scores))
    relative = [each.stderr / each.value for each in scores if each.stderr is not None]
    if len(relative) < len(scores):
        return MeasuredScore(mean, None)
    return MeasuredScore(mean, mean * math.hypot(*relative) / len(scores))


def common_tasks(of_each: Collection[Mapping[str, MeasuredScore]]) -> list[str]:
    """The tasks that all of these models have, in the order of the first one's."""
    first = next(iter(of_each), {})
    return [task for task in first if all(task in scores for scores in of_each)]
