"""What tokens cost at given prices. Pure."""

Prices = tuple[float, float]  # USD a million tokens, of prompts and of completions


def cost_of(prices: Prices, prompt_tokens: float, completion_tokens: float) -> float:
    """What so many tokens cost, in USD."""
    return (prompt_tokens * prices[0] + completion_tokens * prices[1]) / 1e6
