"""The steps of an alignment: those of its recipe, with its stored questions and first memories."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.alignments.job import ALIGNMENT
from app.alignments.recipe import recipe_of
from app.alignments.spec import AlignmentSpec
from app.assessments.spec import AssessmentSpec
from app.datasets import store
from app.jobs.spec import JobSpec
from app.models import Alignment
from app.recipes.engine import StepEngine
from app.recipes.plan import RecipePlan, plan
from app.recipes.step_actions import StepInputs
from app.society.material import PriorMemories, QuestionList
from training.methods.base import COMPARISONS


@dataclass(frozen=True)
class KeptQuestions(StepInputs):
    """The stored questions of an alignment, for its societies and for the assessment of both models."""

    questions: QuestionList
    priors: PriorMemories
    held_out_questions: QuestionList

    def files_of(self, spec: JobSpec) -> dict[str, Any]:
        """The questions and first memories that a society or an assessment is given, by field."""
        if isinstance(spec, AssessmentSpec):
            return {"questions": self.held_out_questions}
        return {"questions": self.questions, "priors": self.priors}


def kept_questions(row: Alignment) -> KeptQuestions:
    """The questions and first memories of an alignment."""
    source, pairs = row.material["priors"]
    priors = PriorMemories(source, {label: [tuple(each) for each in found] for label, found in pairs.items()})
    return KeptQuestions(QuestionList(*row.material["questions"]), priors, QuestionList(*row.material["held_out"]))


def plan_of(session: Session, row: Alignment) -> RecipePlan:
    """All steps of an alignment, in order."""
    spec = AlignmentSpec.of_json(row.spec)
    return plan(recipe_of(spec, row.name, rated=has_rated_demonstrations(session, spec)), run=row.name)


def has_rated_demonstrations(session: Session, spec: AlignmentSpec) -> bool:
    """Whether the demonstrations are rated responses, of which the best are learnt."""
    return spec.demonstrations is not None and store.find_dataset(session, spec.demonstrations).kind == COMPARISONS


_ENGINE = StepEngine(
    kind=ALIGNMENT, plan_of=plan_of, inputs_of=kept_questions, called=lambda row: f"alignment {row.name}"
)
run, take_steps = _ENGINE.run, _ENGINE.take_steps
