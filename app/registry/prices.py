"""The token prices of registered models, from their rows, and whether they suffice for a budget in money."""

from collections.abc import Iterable, Mapping
from typing import Any

from app.core.errors import Invalid, Phrase
from app.jobs.call_costs import FREE, Prices
from app.jobs.spec import JobBudget
from app.models import LanguageModel

PRICES = ("price_in", "price_out", "price_cached", "price_cache_write", "price_reasoning")  # in the order of Prices


def prices_of_model(model: LanguageModel) -> Prices | None:
    """The prices of its tokens; a model that runs here is free; None: unknown."""
    if model.kind != "api":
        return FREE
    own = own_prices(model)
    prompt, completion, *further = map(own.get, PRICES)
    return None if prompt is None or completion is None else Prices(prompt, completion, *further)


def own_prices(model: LanguageModel) -> dict[str, float]:
    """The prices set on its row, by option name."""
    return {name: float(model.options[name]) for name in PRICES if model.options.get(name) is not None}


def price_words(prices: Mapping[str, Any]) -> str:
    """Prices by option name, in words for commands: $1.25 in, $10 out."""
    words = zip(PRICES, ("in", "out", "cached", "into the cache", "of reasoning"), strict=True)
    return ", ".join(f"${float(prices[name]):.10g} {word}" for name, word in words if prices.get(name) is not None)


def known_cost(row: Any, *, priced: bool) -> float | None:
    """The cost of a job's calls; None unless it is known for all of them.

    `priced`: whether today's prices of all its models are known, which decides for a job of an earlier release.
    """
    return row.cost if (priced if row.unpriced_calls is None else row.unpriced_calls == 0) else None


def check_budget(budget: JobBudget, models: Iterable[LanguageModel]) -> None:
    """Raises Invalid for a budget in money if a model has no known prices and its server reports no costs."""
    unknown = next((each.name for each in models if prices_of_model(each) is None and not _says_costs(each)), None)
    if budget.usd is not None and unknown is not None:
        raise Invalid(
            "budget.usd",
            expected=Phrase("models whose prices are known"),
            got=Phrase("%(name)s without price_in and price_out", name=unknown),
            remedy=Phrase("give it prices, or set a budget of tokens"),
        )


def _says_costs(model: LanguageModel) -> bool:
    """Whether a model's server reports the cost of a call, as it did in the latest test call."""
    result = (model.test_request.result if model.test_request is not None else None) or {}
    return result.get("cost_source") == "server"
