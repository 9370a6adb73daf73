"""The cost of a model call: as reported by its server, or else from its tokens and its model's prices. Pure.

Prompt tokens include cached tokens and those written to the cache; completion tokens include reasoning.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

CostSource = Literal["server", "prices", "estimate"]  # how the cost of a call is known
BYTES_A_TOKEN = 3.5  # in UTF-8; English texts have more, so estimates are rather too high


class Prices(NamedTuple):
    """USD per million tokens.

    If None, the prices of the cache are that of the prompt, and the price of reasoning is that of the answer.
    """

    prompt: float
    completion: float
    cached: float | None = None  # tokens read from the cache
    cache_write: float | None = None
    reasoning: float | None = None


FREE = Prices(0.0, 0.0)  # for models that run here


class TokenCounts(NamedTuple):
    """Tokens of one call, of several, or averaged per call."""

    prompt: float = 0
    completion: float = 0
    cached: float = 0
    cache_write: float = 0
    reasoning: float = 0

    def times(self, factor: float) -> "TokenCounts":
        """The counts multiplied by `factor`."""
        return TokenCounts(*(factor * count for count in self))


def cost_of(prices: Prices, tokens: TokenCounts) -> float:
    """The cost of tokens, in USD."""
    plain = tokens.prompt - tokens.cached - tokens.cache_write, tokens.completion - tokens.reasoning
    parts = (
        (plain[0], prices.prompt),
        (tokens.cached, prices.prompt if prices.cached is None else prices.cached),
        (tokens.cache_write, prices.prompt if prices.cache_write is None else prices.cache_write),
        (plain[1], prices.completion),
        (tokens.reasoning, prices.completion if prices.reasoning is None else prices.reasoning),
    )
    return sum(count * price for count, price in parts) / 1e6


def is_unpriced(cost: float | None, error: str | None, prices: Prices | None) -> bool:
    """Whether a call's cost is unknown; failed calls and calls of local models cost nothing."""
    return cost is None and error is None and prices != FREE


def estimated_tokens(texts: Iterable[str]) -> int:
    """The estimated number of tokens in texts whose tokens were not counted."""
    return round(sum(len(text.encode(errors="replace")) for text in texts) / BYTES_A_TOKEN)
