"""How the models of a round are sampled: laid over each model's own options."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.core.errors import Invalid, Phrase
from app.core.validation import whole_number
from app.games.base import JSON
from app.models import LanguageModel
from app.players.base import PlayerSpec
from app.registry import player_spec

_KNOWN = ("temperature", "top_k", "max_tokens")


def read_sampling(raw: Mapping[str, Any]) -> JSON:
    """Read `temperature` (0, which is greedy, to 2), `top_k` and `max_tokens`; None is left out. Raises Invalid."""
    if unknown := sorted(set(raw) - set(_KNOWN)):
        raise Invalid("sampling", expected=Phrase("only %(names)s", names=", ".join(_KNOWN)), got=unknown[0])
    read: JSON = {}
    if raw.get("temperature") is not None:
        read["temperature"] = _temperature(raw["temperature"])
    for name, most in (("top_k", 100_000), ("max_tokens", 100_000)):
        if raw.get(name) is not None:
            read[name] = whole_number(raw[name], name, 1, most)
    return read


def _temperature(raw: Any) -> float:
    try:
        value = float("nan") if isinstance(raw, bool) else float(raw)
    except (TypeError, ValueError):
        value = float("nan")
    if not 0 <= value <= 2:
        raise Invalid("temperature", expected=Phrase("a number from 0 (greedy) to 2"), got=raw)
    return value


def spec_of(model: LanguageModel, sampling: JSON) -> PlayerSpec:
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
