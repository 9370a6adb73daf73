"""Stable Alignment: the best of several rated responses is learnt, and pushed apart from lower-rated ones.

Source: arXiv 2305.16960. The defaults are the published recipe as far as they do not depend on memory; `PRESETS` has
the whole recipe, and follows the published code where the recipe says nothing.
"""

from pydantic import Field

from training.methods.base import TRUNCATE, Epochs, LearningRate, Method, Need, Packing, Switch
from training.methods.supervised import WithSupervisedRows


class StableAlignmentConfig(WithSupervisedRows):
    """The fields of a method with supervised rows, and those of the loss."""

    epochs: Epochs = 7.0
    learning_rate: LearningRate = 2e-5
    packing: Packing = True
    rating_scale: float = Field(
        default=7.0,
        gt=0,
        allow_inf_nan=False,
        title="Rating scale",
        description="The highest rating; the difference of two is divided by it.",
    )
    margin: float = Field(
        default=10.0,
        ge=0,
        allow_inf_nan=False,
        title="Margin",
        description="How much the losses of the best and the worst possible rating should differ.",
    )
    max_flow: Switch = Field(
        default=False,
        title="Largest term only",
        description="Whether only the pair with the largest term counts, instead of the mean over pairs.",
    )
    ratio: float = Field(
        default=0.2,
        gt=0,
        allow_inf_nan=False,
        title="Weight of the comparison",
        description="Weight of what sets the best response apart from the others.",
    )
    num_comp: int = Field(
        default=3,
        ge=2,
        title="Responses",
        description="Responses of a query that are compared, the best one included, at most.",
        json_schema_extra={"unit": "responses"},
    )


PRESETS = {
    "published": {
        "epochs": 7, "rating_scale": 7, "margin": 10, "max_flow": "false", "ratio": 0.2, "num_comp": 3,
        "learning_rate": 2e-5, "batch": 1, "accumulation": 8, "max_length": 360, "too_long": TRUNCATE,
    },
    "code": {
        "rating_scale": 7, "margin": 1, "max_flow": "false", "ratio": 0.5, "num_comp": 3, "max_length": 512,
        "too_long": TRUNCATE,
    },
}  # fmt: skip

METHOD = Method(
    name="stable-alignment",
    title="Learn from ratings",
    summary="The best rated response to a query becomes more likely than the others.",
    config=StableAlignmentConfig,
    loss="stable_alignment",
    needs=frozenset({Need.COMPARISONS}),
    presets=PRESETS,
)
