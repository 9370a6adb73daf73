"""Scores of a task: means with standard errors. Loads no torch.

Source: the definitions of lm-evaluation-harness, https://github.com/EleutherAI/lm-evaluation-harness, for `acc`,
`acc_norm` and the standard error of a mean.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

# The metric of a task: the first of these that it has, else the first it reports.
HEADLINES = ("acc", "exact_match", "r@1")


class TaskScore(NamedTuple):
    """A mean, None if it is not a finite number, and its standard error, None if unknown."""

    value: float | None
    stderr: float | None


class TaskResult(NamedTuple):
    """The scores of a task: `n` items, the headline's name, and every score by the name of its metric.

    `source` is what scored it, with its version; `version` that of the task.
    """

    task: str
    n: int
    metric: str
    scores: Mapping[str, TaskScore]
    source: str
    version: str


def mean_score(values: Sequence[float]) -> TaskScore:
    """The mean of the items' values; its standard error uses the sample standard deviation."""
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return TaskScore(fmean(values), error)


def choice_scores(
    log_likelihoods: Sequence[Sequence[float]], choices: Sequence[Sequence[str]], answers: Sequence[int]
) -> dict[str, TaskScore]:
    """`acc` and `acc_norm` of questions, each given by the log-likelihood of each of its choices in nats.

    A question is right if its answer is the likeliest choice: for `acc` by the plain value, for `acc_norm` per
    character.
    """
    plain = [float(_largest(each) == answer) for each, answer in zip(log_likelihoods, answers, strict=True)]
    by_character = [
        [value / len(text) for value, text in zip(values, texts, strict=True)]
        for values, texts in zip(log_likelihoods, choices, strict=True)
    ]
    normed = [float(_largest(each) == answer) for each, answer in zip(by_character, answers, strict=True)]
    return {"acc": mean_score(plain), "acc_norm": mean_score(normed)}


def headline(names: Sequence[str]) -> str:
    """The metric by which a task counts, out of those that have a number."""
    return next((name for name in HEADLINES if name in names), names[0])


def _largest(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)
