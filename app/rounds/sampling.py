"""How the models of a round are sampled: laid over each model's own options."""

from dataclasses import replace

from app.games.base import JSON
from app.models import LanguageModel
from app.players.base import PlayerSpec
from app.registry import player_spec


def player_of(model: LanguageModel, sampling: JSON) -> PlayerSpec:
    """The player of a model, sampled as the round says. A scripted player is not sampled."""
    spec = player_spec(model)
    if spec.kind == "scripted" or not sampling:
        return spec
    if spec.kind == "local":
        return replace(spec, options={**spec.options, **sampling})
    options = {**spec.options, **{name: value for name, value in sampling.items() if name != "top_k"}}
    if "top_k" in sampling:  # no field of the vendor's API, but of most servers that speak its language
        options["extra"] = {**(options.get("extra") or {}), "top_k": sampling["top_k"]}
    return replace(spec, options=options)
