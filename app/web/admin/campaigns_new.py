"""Starting campaigns: what their form has beyond the spec."""

from flask import request
from flask_babel import lazy_gettext
from sqlalchemy.orm import Session

from app.campaigns import lifecycle
from app.campaigns.estimate import estimate_for
from app.campaigns.job import CAMPAIGN
from app.campaigns.material import whole
from app.campaigns.presets import PRESETS, find_preset
from app.campaigns.spec import START_FIELDS, CampaignSpec
from app.core.errors import AppError
from app.core.extensions import db
from app.games import GAMES, find_game
from app.games.base import JSON
from app.jobs.creation import JobRequest
from app.models import Campaign
from app.recipes.estimate import RecipeEstimate
from app.registry import round_models
from app.registry.named import LEARNER, USES
from app.web.admin.game_fields import material_field
from app.web.admin.job_form import FormWords, JobForm, register_form
from app.web.admin.spec_form import Form
from app.web.admin.spec_page import Asked
from app.web.forms import RefusedField
from app.web.seats import settings
from app.web.threads import in_worker_thread

_WEAK = "tiny-base"  # the shipped model that has much to learn


class _CampaignForm(JobForm[Campaign, CampaignSpec]):
    kind = CAMPAIGN
    spec = CampaignSpec
    published = PRESETS
    words = FormWords(
        title=lazy_gettext("New campaign"),
        intro=lazy_gettext(
            "A model plays against itself, learns from its better transcripts, and plays again with what it has"
            " learned. Workers run it; you can close this page."
        ),
        start=lazy_gettext("Start the campaign"),
        back=lazy_gettext("Back to the campaigns"),
        estimate=lazy_gettext("What it will take"),
        estimate_hint=lazy_gettext(
            "From past calls of these models, or typical ones; new models are assumed to play like the base. How long"
            " trainings take is not known beforehand."
        ),
    )
    estimate_template = "admin/recipe-estimate.html"

    def suggested(self, session: Session, given: JSON) -> JSON:
        """The weakest base, or else another that plays the game; with the values of a preset named in the address."""
        game = given.get("game") or next(iter(GAMES))
        bases = [row.name for row in round_models(session, game) if USES[LEARNER](row)]
        base = _WEAK if _WEAK in bases else next(iter(bases), "")
        preset = request.args.get("preset")
        return {**first_values(game, preset), "base": base, **given}

    def values(self, form: Form) -> JSON:
        """The form's values; without start data or a teacher, those of the training before the rounds are ignored."""
        found = super().values(form)
        start = found["start_data"] or found["teacher"]
        return found if start else {name: value for name, value in found.items() if name not in START_FIELDS}

    def estimated(self, session: Session, asked: Asked[CampaignSpec]) -> RecipeEstimate:  # noqa: ARG002 - in a thread
        request = JobRequest(asked.spec, asked.files, settings().home)
        found: RecipeEstimate = in_worker_thread(db.engine, estimate_for, request)
        return found

    def files_of(self, row: Campaign) -> JSON:
        """All material played with or held out; None if matches drew their own."""
        return {"material": whole(str(lifecycle.spec_of(row.spec).material), row.material)}

    def spec_of(self, session: Session, row: Campaign) -> JSON:  # noqa: ARG002 - as of every kind
        return lifecycle.spec_of(row.spec).to_json()

    def refusal(self, error: AppError, form: Form) -> RefusedField:
        if error.field in ("model", "option"):
            return RefusedField("base", error)
        if error.field in (None, "config"):
            return RefusedField(material_field(find_game(form["game"])), error)
        return super().refusal(error, form)


def first_values(game: str, preset: str | None = None) -> JSON:
    """The initial values of a game's form, except for its base. Raises Invalid."""
    fields = find_preset(preset).fields if preset else {}
    sampling = {**find_game(game).sampling, **fields.get("sampling", {})}
    return {"game": game, **fields, "sampling": sampling}


register_form(_CampaignForm())
