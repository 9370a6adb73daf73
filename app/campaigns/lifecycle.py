"""Creating campaigns, and reading what belongs to one. Nothing here commits.

`app/campaigns/job.py` covers the rest of a campaign's life.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.campaigns.job import CAMPAIGN
from app.campaigns.material import Parted
from app.campaigns.presets import EACH_ONCE
from app.campaigns.recipe import recipe_of
from app.campaigns.spec import FIRST_FIELDS, MOST_MATCHES, CampaignSpec
from app.campaigns.start_data import StartData
from app.core.errors import Conflict, Invalid, NotFound, Phrase, shown
from app.finetuning.backends import find_backend
from app.finetuning.config import LOCAL, check_model_name
from app.jobs import states
from app.jobs.holding import hold
from app.jobs.kind import Requester
from app.jobs.spec import VERSION
from app.models import Campaign, LanguageModel
from app.recipes.faults import RecipeFault
from app.recipes.outline import Outline
from app.recipes.recipe_file import RecipeFile
from app.registry import find_round_model
from app.registry.prices import check_budget
from app.rounds.lifecycle import Material

START_MATCHES = "start_matches"  # in a row's spec, beside the requested fields: the matches of its starting dataset


def create(
    session: Session,
    spec: CampaignSpec,
    material: Parted,
    start: StartData | None = None,
    *,
    queued: bool,
    requester: Requester | None = None,
) -> Campaign:
    """Create a waiting campaign, for workers if `queued`.

    Its models will be called NAME-1, NAME-2 and so on; without a name it is given one. `material` is the result of
    `material.parted` and `start` that of `start_data.read_start_data`; as both take up to a second, they are computed
    before a transaction. Raises NotFound for an unknown base, Conflict for a name that is taken, and Invalid for
    anything else that cannot be run.
    """
    play, held = material
    base = find_round_model(session, spec.game, spec.base, "base")
    find_backend(LOCAL).check_base(base)
    spec = with_matches(spec, play)
    for field, partners in (("partners", spec.partners), ("play_with", spec.play_with)):
        for partner in partners:
            _check_player(session, spec, field, partner)
    if spec.teacher is not None:
        _check_teacher(session, spec, spec.teacher, base)
    players = {*spec.partners, *spec.play_with, *filter(None, [spec.teacher])}
    check_budget(spec.budget, [find_round_model(session, spec.game, each) for each in sorted(players)])
    name = spec.name or _default_name(session, spec)
    names = [model_name(name, number) for number in range(1, spec.total + 1)]
    for each in names:
        check_model_name(each)
    taken = session.scalar(select(LanguageModel.name).where(LanguageModel.name.in_(names)).limit(1))
    duplicate = session.scalar(
        select(Campaign.id).where(Campaign.name == name, Campaign.status.in_(states.LIVE)).limit(1)
    )
    if taken is not None or duplicate is not None:
        got = (
            Phrase("%(name)s, whose model %(model)s already exists", name=shown(name), model=taken)
            if taken
            else Phrase("%(name)s, used by unfinished campaign %(campaign)s", name=shown(name), campaign=duplicate)
        )
        raise Conflict("name", expected=Phrase("one that is not taken"), got=got)
    whole = spec.model_copy(update={"name": name, "material": play.source})
    _check_steps(recipe_of(whole, name, base.prompt_style))
    hold(session, (base, *(find_round_model(session, spec.game, each) for each in players)))
    row = CAMPAIGN.new_row(
        queued=queued,
        requester=requester,
        name=name,
        game=spec.game,
        base_id=base.id,
        spec={**whole.to_json(), **({} if start is None else {START_MATCHES: start._asdict()})},
        material={"play": list(play.items), "held_out": list(held.items)},
        iterations=spec.total,
        **spec.budget.columns,
    )
    session.add(row)
    session.flush()
    return row


def _check_steps(recipe: RecipeFile) -> None:
    """Raises Invalid for a campaign of more steps than a recipe may have."""
    try:
        Outline(recipe, recipe.inputs)
    except RecipeFault as fault:
        raise Invalid(
            "iterations", **{**fault.error.parts, "remedy": Phrase("ask for fewer, or for fewer partners")}
        ) from None


def spec_of(stored: Mapping[str, Any]) -> CampaignSpec:
    """The spec in a campaign's row, written by any release; early ones stored more than the fields of a spec."""
    known = {VERSION, *FIRST_FIELDS, *CampaignSpec.model_fields}
    return CampaignSpec.of_json({name: value for name, value in stored.items() if name in known})


def with_matches(spec: CampaignSpec, play: Material) -> CampaignSpec:
    """The spec with the number of matches in a round. Raises Invalid if a partner would get no matches."""
    if spec.matches == EACH_ONCE and not play.items:
        expected = Phrase("a number, as %(game)s has no material", game=spec.game)
        raise Invalid("matches", expected=expected, got=EACH_ONCE)
    matches = spec.matches_of_round or min(len(play.items), MOST_MATCHES)
    found = spec.model_copy(update={"matches": matches})
    few = next((name for name, number in found.matches_against.items() if not number), None)
    if few is not None:
        expected = Phrase("a share that is at least 2 of %(matches)s matches", matches=matches)
        raise Invalid("play_with", expected=expected, got=Phrase("%(name)s with less", name=few))
    return found


def _check_player(session: Session, spec: CampaignSpec, field: str, name: str) -> LanguageModel:
    """The model of a partner. Raises Invalid for one that does not play, and for the base, which learns."""
    try:
        found = find_round_model(session, spec.game, name, field)
    except NotFound as error:
        raise Invalid(field, **{**error.parts, "remedy": Phrase("or none")}) from None
    if name == spec.base:
        raise Invalid(field, expected=Phrase("a model other than the base, or none"), got=name)
    return found


def _check_teacher(session: Session, spec: CampaignSpec, name: str, base: LanguageModel) -> None:
    """Raises Invalid for a teacher whose prompts have a style that the base is never given."""
    teacher = _check_player(session, spec, "teacher", name)
    if teacher.prompt_style not in (None, base.prompt_style):
        raise Invalid(
            "teacher",
            expected=Phrase("a model with the prompt style of the base, %(style)s", style=base.prompt_style),
            got=Phrase("%(name)s with %(style)s", name=name, style=teacher.prompt_style),
            remedy=Phrase("clone it with that style"),
        )


def _default_name(session: Session, spec: CampaignSpec) -> str:
    """The name of an unnamed campaign: its base, its objective if that is a word, and a free number."""
    objective = spec.config.get("objective")
    about = f"{spec.base}-{objective}" if isinstance(objective, str) else spec.base
    number = (session.scalar(select(func.max(Campaign.id))) or 0) + 1
    return f"{about[:60]}-c{number}"


def model_name(campaign: str, number: int) -> str:
    """The name of an iteration's model."""
    return f"{campaign}-{number}"
