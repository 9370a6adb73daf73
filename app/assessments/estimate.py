"""Estimates of an assessment before it starts: calls, tokens, money, time. From past calls in societies, or typical
ones.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.assessments.spec import AssessmentSpec
from app.models import LanguageModel
from app.rounds.estimate import ModelCapacity, channel_of
from app.society.config import SocietyConfig
from app.society.estimate import SCRIPTED_A_SECOND, ChatStatistics, call_statistics, totals_of_calls

RATINGS = 4  # by each rater of a question: two of either answer


class AssessmentEstimate(NamedTuple):
    """The expected totals. `cost` is in USD and None where a price is unknown; `basis`: past calls by model."""

    questions: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    seconds: float
    basis: Mapping[str, int]


def calls_by_model(questions: int, model: str, base: str, raters: Sequence[str]) -> dict[str, int]:
    """The number of calls of each model: an answer of the two that are compared, and the ratings of the raters."""
    calls: dict[str, int] = {}
    for name, often in ((model, 1), (base, 1), *((rater, RATINGS) for rater in raters)):
        calls[name] = calls.get(name, 0) + often * questions
    return calls


def estimate(
    questions: int,
    calls: Mapping[str, int],
    habits: Mapping[str, ChatStatistics],
    capacities: Mapping[str, ModelCapacity],
) -> AssessmentEstimate:
    """The estimate of an assessment with that many calls of each model. Habits and capacities are by model name."""
    totals, tokens = totals_of_calls(calls, habits, capacities)
    seconds = [calls[name] * habits[name].latency / capacities[name].at_once for name in tokens]
    return AssessmentEstimate(
        questions=questions,
        seconds=max([totals.calls / SCRIPTED_A_SECOND, *seconds]),
        **totals._asdict(),
    )


def habit_of(session: Session, model: LanguageModel) -> ChatStatistics:
    """The averages of a model's calls, as in societies of the default settings."""
    return call_statistics(session, model, SocietyConfig(seed=0))


def estimate_for(
    session: Session, spec: AssessmentSpec, models: Mapping[str, Sequence[LanguageModel]], questions: int
) -> AssessmentEstimate:
    """The estimate of an assessment with the models that each field of its spec names."""
    known = {model.name: model for named in models.values() for model in named}
    habits = {name: habit_of(session, model) for name, model in known.items()}
    capacities = {name: channel_of(model) for name, model in known.items()}
    return estimate(questions, calls_by_model(questions, spec.model, spec.base, spec.raters), habits, capacities)
