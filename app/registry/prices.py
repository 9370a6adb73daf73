"""What the tokens of registered models cost, as their rows say, and whether a budget in money can be kept with them."""

from collections.abc import Iterable, Mapping
from typing import Any

from app.core.errors import Invalid, Phrase
from app.jobs.spec import JobBudget
from app.models import LanguageModel


def prices_of_model(model: LanguageModel) -> tuple[float, float] | None:
    """USD for a million tokens of prompts and of completions; what runs here costs nothing; None: unknown."""
    if model.kind != "api":
        return 0.0, 0.0
    found: Mapping[str, Any] = model.options
    if found.get("price_in") is None or found.get("price_out") is None:
        return None
    return float(found["price_in"]), float(found["price_out"])


def check_budget(budget: JobBudget, models: Iterable[LanguageModel]) -> None:
    """Raises Invalid for a budget in money where a model's prices are unknown."""
    unknown = next((model.name for model in models if prices_of_model(model) is None), None)
    if budget.usd is not None and unknown is not None:
        raise Invalid(
            "budget.usd",
            expected=Phrase("models whose prices are known"),
            got=Phrase("%(name)s without price_in and price_out", name=unknown),
            remedy=Phrase("give it prices, or set a budget of tokens"),
        )
