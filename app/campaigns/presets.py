"""Published recipes as values of a campaign's fields, each of which can be overridden."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from app.core.validation import choice_of
from app.datasets.filters import ABOVE_AVG

EACH_ONCE = "all"  # matches: one for each piece of the material played


class Preset(NamedTuple):
    """A recipe. `fields` are those of a `CampaignSpec`, `summary` says them in a sentence."""

    title: str
    summary: str
    fields: Mapping[str, Any]


PRESETS: Mapping[str, Preset] = {
    # Source: Liao, Tomlin & Klein 2024, arXiv 2406.18872. Its learning rate is a multiple of one that OpenAI does not
    # disclose; this is the method's own.
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
            "lenient": False,
        },
    ),
    # Source: Cheng et al. 2024, arXiv 2404.10642. 64 batches of 2 equal its 8 of 2 on 8 GPUs.
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
            "lenient": False,
        },
    ),
}
_TRAININGS = {"training": "method", "start_training": "start_method"}  # the field of each training's method
_START = ("start_method", "start_training")  # only for the steps before the rounds


def find_preset(name: Any) -> Preset:
    """The preset of that name. Raises Invalid."""
    return choice_of(PRESETS, name, "preset")


def with_preset(name: Any, given: Mapping[str, Any], *, starts: bool) -> dict[str, Any]:
    """The given fields of a campaign, with a preset's values for all others.

    `starts`: whether something comes before its rounds. The training fields of a preset are those of its method, so
    another method gets none of them. Raises Invalid for an unknown preset.
    """
    preset = find_preset(name).fields
    fields = {field: value for field, value in preset.items() if starts or field not in _START}
    for part, method in _TRAININGS.items():
        if method in given and given[method] != fields.get(method):
            fields.pop(part, None)
    parts = [part for part in fields if isinstance(fields[part], Mapping) and isinstance(given.get(part), Mapping)]
    return {**fields, **given, **{part: {**fields[part], **given[part]} for part in parts}}
