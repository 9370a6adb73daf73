"""Settings that papers have published, all of them in paper_settings.json: those of presets, recipes and defaults."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.alignments.spec import presets
from app.benchmarks.tasks import PRESETS as BENCHMARKS
from app.campaigns.presets import PRESETS as CAMPAIGNS
from app.core.config import ROOT
from app.games import find_game
from app.games.negotiation.contexts import POINTS
from app.games.negotiation.rules import PRESETS as WEIGHTS
from app.games.rewards import DECAY, shares
from app.matches.engine import BAD_ATTEMPTS
from app.model_calls.question_templates import SAMPLING_PRESETS
from app.society.comparisons import GOOD_FROM, MIXING
from app.society.config import LARGEST_RATING, SETTINGS, SocietySettings
from app.society.embedders.api import THRESHOLDS
from training.methods import all_methods

RECIPES = ROOT / "training" / "configs" / "recipes"
TABLE = json.loads(Path(__file__).with_name("paper_settings.json").read_text(encoding="utf-8"))
NEGOTIATION, TABOO = find_game("negotiation"), find_game("taboo")
PRODUCT: Mapping[str, Any] = {
    "negotiation": {
        "weights": WEIGHTS,
        "points": POINTS,
        "moves of a match": NEGOTIATION.config({}).model_dump()["limit"],
        "tokens of a move": NEGOTIATION.most_tokens,
        "refused attempts that abort a match": BAD_ATTEMPTS,
    },
    "taboo": {
        "turns of a side": TABOO.config({}).model_dump()["max_turns"],
        "tokens of a move": TABOO.most_tokens,
        "decay": DECAY,
        "shares of three moves": pytest.approx(shares(3, DECAY), abs=1e-4),
        "sampling": TABOO.sampling,
    },
    **{name: each.fields for name, each in CAMPAIGNS.items()},
    **{
        name: {field: each["default"] for field, each in method.job_fields.items()}
        for name, method in all_methods().items()
    },
    "recipes": {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in RECIPES.glob("*.yaml")},
    "benchmarks": BENCHMARKS,
    "society": SocietySettings.read({"preset": "published"}),
    "recall distances": THRESHOLDS,
    "ratings": {"settings": [*SETTINGS], "highest": LARGEST_RATING, "of a realignment, above": GOOD_FROM},
    "mixing": MIXING,
    "alignment": {name: each.training for name, each in presets().items()},
    "answers": SAMPLING_PRESETS,
}


def published() -> Iterator[tuple[str, str, str, Any]]:
    """Paper, section, setting and value."""
    for paper, sections in TABLE.items():
        for section, settings in sections.items():
            yield from ((paper, section, name, value) for name, value in settings.items())


def in_product(name: str) -> Any:
    """A setting by its path."""
    found: Any = PRODUCT
    for part in name.split("."):
        found = found[part] if isinstance(found, Mapping) else getattr(found, part)
    return found


@pytest.mark.parametrize(("paper", "section", "name", "value"), [*published()])
def test_a_published_setting_is_the_default_or_in_the_preset(paper: str, section: str, name: str, value: Any) -> None:
    found = in_product(name)
    assert ([*found] if isinstance(found, tuple) else found) == value, f"{paper}, {section}"


# What no paper says: OpenAI tells no learning rate, only multiples of it; and how rows are laid out in memory.
OWN = {
    "lm-selfplay.training.learning_rate", "alignment.published.batch", "alignment.published.too_long",
    *(f"{name}.lenient" for name in CAMPAIGNS),
}  # fmt: skip


@pytest.mark.parametrize("name", [*CAMPAIGNS, "alignment.published"])
def test_the_table_has_every_value_of_a_published_preset(name: str) -> None:
    listed = {each for _, _, each, _ in published()}
    fields = {
        ".".join(filter(None, (name, field, inner)))
        for field, value in in_product(name).items()
        for inner in (value if isinstance(value, Mapping) else ("",))
    }
    assert fields - listed == OWN & fields
