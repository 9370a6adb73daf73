"""Results of an assessment: both models' mean ratings, and paired differences with their intervals. Pure.

A pair is a question. A rater's difference is that between its ratings of the two answers; that of all raters is the
mean over those who rated both. A question with a missing answer or rating is in no pair of that rater.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from app.analysis.bootstrap import Figure, mean_figure
from app.core.csv_tables import Column

FEW_QUESTIONS = "fewer than 10 questions"
ASPECTS = ("alignment", "engagement")

Ratings = Sequence[float | None]  # of an answer, by rater


class RatedPair(NamedTuple):
    """The ratings of both answers to a question, by aspect."""

    model: Mapping[str, Ratings]
    base: Mapping[str, Ratings]


class AssessmentFigures(NamedTuple):
    """The ratings of an aspect by a rater, or by all of them if None.

    `model` and `base` are means over the same questions, those with both answers rated; `better` and `worse` count the
    model's answers that were rated higher and lower than the base's.
    """

    aspect: str
    rater: str | None
    model: Figure
    base: Figure
    difference: Figure
    better: int
    worse: int


def assessment_figures(raters: Sequence[str], pairs: Sequence[RatedPair]) -> list[AssessmentFigures]:
    """The figures of each aspect: for all raters first if there are several, then for each rater."""
    found = []
    for aspect in ASPECTS:
        if len(raters) > 1:
            found.append(_paired(aspect, None, pairs, range(len(raters))))
        found += [_paired(aspect, rater, pairs, [place]) for place, rater in enumerate(raters)]
    return found


def _paired(aspect: str, rater: str | None, pairs: Sequence[RatedPair], places: Sequence[int]) -> AssessmentFigures:
    of_model, of_base = [], []
    for pair in pairs:
        both = [
            (new, old)
            for place in places
            if (new := pair.model[aspect][place]) is not None and (old := pair.base[aspect][place]) is not None
        ]
        if both:
            of_model.append(sum(new for new, _ in both) / len(both))
            of_base.append(sum(old for _, old in both) / len(both))
    model, base = np.array(of_model, float), np.array(of_base, float)
    return AssessmentFigures(
        aspect,
        rater,
        mean_figure(model, reason=FEW_QUESTIONS),
        mean_figure(base, reason=FEW_QUESTIONS),
        mean_figure(model - base, reason=FEW_QUESTIONS),
        int((model > base).sum()),
        int((model < base).sum()),
    )


# ---- Table ---------------------------------------------------------------------------


def _figure_columns(name: str, meaning: str, values: str) -> list[Column]:
    return [
        Column(name, "number", meaning, f"{values}; empty without a rated pair", lambda row: getattr(row, name).value),
        Column(f"{name}_low", "number", f"Lower end of the 95 % interval of {name}.",
               "empty where there is none", lambda row: getattr(row, name).low),
        Column(f"{name}_high", "number", f"Upper end of the 95 % interval of {name}.",
               "empty where there is none", lambda row: getattr(row, name).high),
    ]  # fmt: skip


COLUMNS = (
    Column("aspect", "text", "What was rated.", " | ".join(ASPECTS), lambda row: row.aspect),
    Column("rater", "text", "Who rated.", "a model's name; empty for all of them", lambda row: row.rater),
    *_figure_columns("model", "Mean rating of the model's answers.", "1 to 7"),
    *_figure_columns("base", "Mean rating of the base's answers.", "1 to 7"),
    *_figure_columns("difference", "Mean over questions of the model's rating minus the base's.", "-6 to 6"),
    Column("questions", "integer", "Questions of which both answers were rated.", "from 0",
           lambda row: row.difference.n),
    Column("better", "integer", "Questions where the model's answer was rated higher.", "from 0",
           lambda row: row.better),
    Column("worse", "integer", "Questions where it was rated lower.", "from 0", lambda row: row.worse),
    Column("no_interval", "text", "Why there is no interval.", f"{FEW_QUESTIONS}; empty where there is one",
           lambda row: row.difference.no_interval),
)  # fmt: skip
