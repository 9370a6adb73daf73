"""Published recipes as values of a campaign's fields, each of which can be given otherwise."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from app.campaigns.spec import EACH_ONCE
from app.core.errors import Invalid, either
from app.datasets.filters import ABOVE_AVG


class Preset(NamedTuple):
    """A recipe. `fields` are what `spec.read_spec` reads, `summary` says them in a sentence."""

    title: str
    summary: str
    fields: Mapping[str, Any]


PRESETS: Mapping[str, Preset] = {
    # Source: Liao, Tomlin & Klein 2024, arXiv 2406.18872. Its learning rate is a multiple of one that OpenAI does not
    # tell; this is the method's own.
    "lm-selfplay": Preset(
        "Filtered self-play",
        "Ten rounds of 500 matches; each model learns for three epochs from what scored above the average.",
        {
            "iterations": 10,
            "matches": 500,
            "filter": ABOVE_AVG,
            "method": "sft",
            "training": {"epochs": 3, "batch": 1, "learning_rate": 5e-5},
            "sampling": {"temperature": 1.0, "max_tokens": 200},
        },
    ),
    # Source: Cheng et al. 2024, arXiv 2404.10642. 64 batches of 2 are its 8 of 2 on 8 GPUs.
    "spag": Preset(
        "Imitation, then rewards",
        "After imitating a teacher or a dataset, three epochs in which each piece of material is played once and moves"
        " are learnt by their rewards.",
        {
            "iterations": 3,
            "matches": EACH_ONCE,
            "method": "offline-po",
            "training": {"epochs": 1, "learning_rate": 2e-6, "batch": 2, "accumulation": 64},
            "start_method": "sft-kl",
            "start_training": {"epochs": 1, "learning_rate": 5e-6, "batch": 2, "accumulation": 64},
            "sampling": {"temperature": 1.2, "top_k": 50, "max_tokens": 256},
            "evaluation_temperature": 0,
        },
    ),
}
_PARTS = ("training", "start_training", "sampling")  # whose own fields may each be given otherwise


def with_preset(name: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of a campaign, with a preset's values for all else. Raises Invalid for an unknown preset.

    A preset's fields of a training are those of its method, so another method has none of them.
    """
    typed = {field: value for field, value in given.items() if value is not None}
    if name is None:
        return typed
    if name not in PRESETS:
        raise Invalid("preset", expected=either(PRESETS), got=name)
    fields = PRESETS[name].fields
    found = {**fields, **typed}
    for part in _PARTS:
        found[part] = {**fields.get(part, {}), **(typed.get(part) or {})}
    for part, method in (("training", "method"), ("start_training", "start_method")):
        if found.get(method) != fields.get(method):
            found[part] = dict(typed.get(part) or {})
    return found
