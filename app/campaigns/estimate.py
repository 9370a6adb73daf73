"""The estimate of a campaign before it starts: that of the recipe it amounts to."""

from sqlalchemy.orm import Session

from app.campaigns.creation import CREATION
from app.campaigns.lifecycle import with_matches
from app.campaigns.recipe import recipe_of
from app.campaigns.spec import CampaignSpec
from app.jobs.creation import JobRequest
from app.recipes import estimate
from app.recipes.estimate import RecipeEstimate
from app.recipes.plan import plan
from app.registry import find_round_model


def estimate_for(session: Session, request: JobRequest[CampaignSpec]) -> RecipeEstimate:
    """The estimate of a requested campaign, by step. Raises AppError for one that cannot be."""
    spec, material, _ = CREATION.prepared(session, request).known
    base = find_round_model(session, spec.game, spec.base, "base")
    recipe = recipe_of(with_matches(spec, material[0]), spec.name or "campaign", base.prompt_style)
    return estimate.estimate(session, plan(recipe), {})
