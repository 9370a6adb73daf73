"""Direct Preference Optimization: the better of two responses becomes more likely than the other one.

Source: arXiv 2305.18290. No loss is implemented here: vendors train with it, and their backends define its fields.
"""

from training.methods.base import FromCheckpoint, Method, Need


class DpoConfig(FromCheckpoint):
    """The fields of every method that starts from a model, and no others."""


METHOD = Method(
    name="dpo",
    title="Learn from preferences",
    summary="The better of two responses becomes more likely than the other one. A vendor trains with it.",
    config=DpoConfig,
    loss="",
    needs=frozenset({Need.COMPARISONS}),
)
