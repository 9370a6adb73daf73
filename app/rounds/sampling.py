"""The prompting and sampling options of a round, which override each model's own."""

from collections.abc import Iterable
from dataclasses import replace

from app.core.errors import Invalid, Phrase
from app.games.base import JSON
from app.models import LanguageModel
from app.players.api.server_errors import FORMAT_FIELD
from app.players.api.server_findings import Extent, read_findings
from app.players.api.structured import JSON_SCHEMA, check_extra
from app.players.base import PlayerSpec
from app.players.prompts import has_json_form
from app.registry import player_spec
from app.rounds.spec import STRUCTURED

_FOUND = {
    "local": Phrase("a local model"),
    "ignored": Phrase("its server ignores them"),
    "refused": Phrase("its server refuses them"),
    "not tried": Phrase("not tested"),
}


def player_of(model: LanguageModel, sampling: JSON) -> PlayerSpec:
    """The player of a model, with the round's options applied. For a scripted player they have no effect."""
    spec = player_spec(model)
    if spec.kind == "scripted" or not sampling:
        return spec
    laid = {name: value for name, value in sampling.items() if name != STRUCTURED}
    if spec.kind == "api" and "top_k" in laid:  # not a field of the vendor's API, but of most compatible servers
        laid["extra"] = {**(spec.options.get("extra") or {}), "top_k": laid.pop("top_k")}
    return replace(spec, options={**spec.options, **laid}, structured=sampling.get(STRUCTURED, False))


def check_structured(game: str, models: Iterable[LanguageModel]) -> None:
    """Raises Invalid if moves of a game, or of one of the models, cannot be requested as JSON.

    A server's support is known from the model's test call, and from what it has refused since. Scripted players are not
    sent requests.
    """
    if not has_json_form(game):
        raise Invalid(STRUCTURED, expected=Phrase("a game whose moves can be asked for as JSON"), got=game)
    for model in models:
        check_extra(JSON_SCHEMA, model.options.get("extra") or {})
        state = "local" if model.kind == "local" else _keeps_to_schemas(model)
        if model.kind == "scripted" or state == "yes":
            continue
        test = Phrase("make its test call: `flask model test %(name)s`", name=model.name)
        raise Invalid(
            STRUCTURED,
            expected=Phrase("models whose servers keep to JSON Schemas, as a test call finds out"),
            got=Phrase("%(name)s (%(found)s)", name=model.name, found=_FOUND[state]),
            remedy=test if state == "not tried" else Phrase("ask for moves as text"),
        )


def _keeps_to_schemas(model: LanguageModel) -> Extent:
    """What is known about whether a model's server follows JSON Schemas."""
    if FORMAT_FIELD in model.options.get("refused_fields", ()):
        return "refused"
    found = read_findings(model.findings)
    return "not tried" if found is None else found.structured_output
