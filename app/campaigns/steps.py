"""The steps of a campaign: those of its recipe, on its stored material."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.campaigns.job import CAMPAIGN
from app.campaigns.lifecycle import spec_of
from app.campaigns.recipe import recipe_of
from app.models import Campaign, LanguageModel
from app.recipes.engine import StepEngine
from app.recipes.operations import EvaluateSpec
from app.recipes.plan import RecipePlan, plan
from app.recipes.step_actions import StepInputs
from app.rounds.lifecycle import Material
from app.rounds.spec import RoundSpec


@dataclass(frozen=True)
class KeptMaterial(StepInputs):
    """The stored material of a campaign, to play with and to evaluate on; None for a game without material."""

    play: Material | None
    evaluation: Material | None

    def played(self, _spec: RoundSpec) -> Material | None:
        """The same for every round."""
        return self.play

    def held_out(self, _spec: EvaluateSpec) -> Material | None:
        """The same for every evaluation."""
        return self.evaluation


def kept_material(row: Campaign) -> KeptMaterial:
    """The material of a campaign."""
    source = f"campaign {row.id}"
    parts = (Material(source, items) if items else None for items in (row.material["play"], row.material["held_out"]))
    return KeptMaterial(*parts)


def plan_of(session: Session, row: Campaign) -> RecipePlan:
    """All steps of a campaign, in order."""
    style = session.get_one(LanguageModel, row.base_id).prompt_style
    return plan(recipe_of(spec_of(row.spec), row.name, style), run=row.name)


_ENGINE = StepEngine(kind=CAMPAIGN, plan_of=plan_of, inputs_of=kept_material, called=lambda row: f"campaign {row.name}")
run, take_steps = _ENGINE.run, _ENGINE.take_steps
