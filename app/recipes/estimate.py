"""Estimate of a run before it starts: matches, calls, tokens, money and time of each step, as far as known.

Models that steps make are assumed to behave like those that they come from. The time of a training or a benchmark
cannot be known beforehand.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.assessments import estimate as assessments
from app.assessments.spec import AssessmentSpec
from app.benchmarks.spec import BenchmarkSpec
from app.core.errors import AppError
from app.finetuning.config import LOCAL
from app.finetuning.spec import TrainingSpec
from app.jobs.spec import JobSpec
from app.models import LanguageModel
from app.recipes.made import Made, with_made
from app.recipes.operations import EvaluateSpec
from app.recipes.plan import PlannedStep, RecipePlan
from app.recipes.step_files import files_of, played_material
from app.registry import get_model
from app.rounds import estimate as rounds
from app.rounds.lifecycle import USUAL_MATCHES
from app.rounds.spec import RoundSpec
from app.society.estimate import ChatStatistics
from app.society.lifecycle import estimated
from app.society.spec import SocietySpec

_JOBS = ("round", "training", "evaluate", "benchmark", "society", "assessment")


@dataclass(frozen=True, slots=True)
class StepAmount:
    """The amounts of a step. `cost` is in USD, None if a price is unknown; `seconds` is None if unknown."""

    matches: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    seconds: float | None = 0.0

    def __add__(self, other: "StepAmount") -> "StepAmount":
        pairs = ((getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
        return StepAmount(*(None if None in pair else sum(pair) for pair in pairs))  # type: ignore[arg-type]


class StepEstimate(NamedTuple):
    """A step as written, how often it is done, and the total amounts."""

    name: str
    do: str
    times: int
    amount: StepAmount


@dataclass(frozen=True, slots=True)
class RecipeEstimate:
    """The amounts of a run: per step, and in total as far as known. `unknown`: steps whose time is not known."""

    steps: Sequence[StepEstimate]
    jobs: int
    matches: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    seconds: float
    unknown: Sequence[str]


def estimate(session: Session, plan: RecipePlan, texts: Mapping[str, str]) -> RecipeEstimate:
    """The estimate for a run of these steps; `texts` are those of the files that it names."""
    reckoner = _Reckoner(session, plan, texts)
    found: dict[int, StepEstimate] = {}
    for step in plan.steps:
        before = found.get(step.index, StepEstimate(step.step.name, step.step.do, 0, StepAmount()))
        amount = before.amount + reckoner.amount(step)
        found[step.index] = before._replace(times=before.times + 1, amount=amount)
    steps = [found[index] for index in sorted(found)]
    amounts = [each.amount for each in steps]
    costs = [each.cost for each in amounts]
    return RecipeEstimate(
        steps=steps,
        jobs=sum(each.times for each in steps if each.do in _JOBS),
        matches=sum(each.matches for each in amounts),
        calls=sum(each.calls for each in amounts),
        prompt_tokens=sum(each.prompt_tokens for each in amounts),
        completion_tokens=sum(each.completion_tokens for each in amounts),
        cost=None if None in costs else sum(each for each in costs if each is not None),
        seconds=sum(each.seconds or 0.0 for each in amounts),
        unknown=[each.name for each in steps if each.amount.seconds is None],
    )


class _Reckoner:
    """Estimates the amounts of steps; what is known of a model is read once."""

    def __init__(self, session: Session, plan: RecipePlan, texts: Mapping[str, str]) -> None:
        self._session, self._plan, self._texts = session, plan, texts
        self._habits: dict[tuple[str, str], rounds.CallStatistics] = {}
        self._chats: dict[str, ChatStatistics] = {}

    def amount(self, step: PlannedStep) -> StepAmount:
        """The amounts of one step."""
        try:
            if isinstance(step.draft, RoundSpec | EvaluateSpec | SocietySpec):
                return self._of_played(step.kind.spec.read(with_made(step.fields, self._stand_in)))
            if isinstance(step.draft, AssessmentSpec):
                return self._of_assessment(step, step.draft)
            if isinstance(step.draft, BenchmarkSpec):
                return self._of_benchmark(step)
        except AppError:  # for example two agents from one model
            return StepAmount(cost=None, seconds=None)
        if isinstance(step.draft, TrainingSpec):
            return StepAmount(cost=0.0 if step.draft.backend == LOCAL else None, seconds=None)
        return StepAmount()

    def _of_played(self, spec: JobSpec) -> StepAmount:
        """The amounts of a round, an evaluation or a society of existing models."""
        if isinstance(spec, RoundSpec | EvaluateSpec):
            return self._of_round(spec)
        if not isinstance(spec, SocietySpec):
            return StepAmount()
        found = estimated(self._session, spec, **files_of(spec, self._texts))
        return StepAmount(0, found.calls, found.prompt_tokens, found.completion_tokens, found.cost, found.seconds)

    def _stand_in(self, key: str, made: Made) -> str:
        """The model that a made model comes from, used in its place in the estimate; a number for other things."""
        if made.output == "model":
            return self._base_model_name(key)
        return key if made.output == "figures" else str(1 + self._plan.by_key[key].place)

    def _base_model_name(self, key: str) -> str:
        """The registry's model that a training begins from, if need be through other trainings."""
        step = self._plan.by_key[key]
        base: Any = step.fields.get("base")
        while isinstance(base, Made):
            step = self._plan.by_key[base.keys[0]]
            base = step.fields.get("base")
        return str(step.fields["name"] if base is None else base)

    def _model_by_name(self, name: str) -> LanguageModel:
        return get_model(self._session, name)

    def _of_round(self, spec: RoundSpec | EvaluateSpec) -> StepAmount:
        if isinstance(spec, RoundSpec):
            pair, matches = spec.seats, spec.matches or USUAL_MATCHES
            if spec.matches is None and spec.material is not None:
                matches = self._matches_for_all_pieces(spec)
        else:
            pair, matches = (spec.model, spec.against or spec.model), spec.matches
        models = {name: self._model_by_name(name) for name in pair}
        for name, model in models.items():
            if (name, spec.game) not in self._habits:
                self._habits[name, spec.game] = rounds.habit_of(self._session, model, spec.game, dict(spec.config))
        habits = {name: self._habits[name, spec.game] for name in models}
        channels = {name: rounds.channel_of(model) for name, model in models.items()}
        found = rounds.estimate([pair], matches, habits, channels)
        cost = found.cost if found.basis else 0.0
        return StepAmount(found.matches, found.calls, found.prompt_tokens, found.completion_tokens, cost, found.seconds)

    def _matches_for_all_pieces(self, spec: RoundSpec) -> int:
        """The number of matches that play each piece of a named list once."""
        material = played_material(spec, self._texts)
        return USUAL_MATCHES if material is None else len(material.items) * (2 if spec.swap_seats else 1)

    def _of_benchmark(self, step: PlannedStep) -> StepAmount:
        """For a model behind an API, the number of questions cannot be known beforehand."""
        model = self._model_by_name(with_made(step.fields["model"], self._stand_in))
        return StepAmount(cost=0.0 if model.kind == LOCAL else None, seconds=None)

    def _of_assessment(self, step: PlannedStep, draft: AssessmentSpec) -> StepAmount:
        questions = len(files_of(draft, self._texts)["questions"].questions)
        named = {field: with_made(step.fields.get(field), self._stand_in) for field in ("model", "base", "raters")}
        calls = assessments.calls_by_model(questions, **named)
        models = {name: self._model_by_name(name) for name in calls}
        for name, model in models.items():
            if name not in self._chats:
                self._chats[name] = assessments.habit_of(self._session, model)
        channels = {name: rounds.channel_of(model) for name, model in models.items()}
        found = assessments.estimate(questions, calls, self._chats, channels)
        return StepAmount(0, found.calls, found.prompt_tokens, found.completion_tokens, found.cost, found.seconds)
