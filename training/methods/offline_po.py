"""Offline policy optimisation: moves become more or less likely by their rewards, with a clipped ratio.

Source: the offline reinforcement learning of Self-Play of Adversarial Language Game, arXiv 2404.10642; the role-based
advantages are those of SPIRAL, arXiv 2506.24119.
"""

from typing import Literal

from pydantic import Field

from training.methods.base import LearningRate, Method, Need
from training.methods.reference import KlWeight, WithReference
from training.methods.supervised import WithSupervisedRows


class OfflinePoConfig(WithReference, WithSupervisedRows):
    """The fields of a method with a reference model and supervised rows, and those of the loss and its advantages."""

    learning_rate: LearningRate = 2e-6
    kl: KlWeight = 0.2
    clip_range: float = Field(
        default=0.2,
        gt=0,
        lt=1,
        title="Clip range",
        description="How far from 1 the ratio to the reference's probability is clipped (ε).",
    )
    sft_weight: float = Field(
        default=0.5,
        ge=0,
        allow_inf_nan=False,
        title="Weight of supervised rows",
        description="Weight of the loss of supervised rows: those of `sft_data`, and of type `sft` (α).",
    )
    advantage: Literal["reward", "role"] = Field(
        default="reward",
        title="Advantage",
        description="What counts as a reward: as it is given, or less the running mean of its game and role.",
    )
    decay: float = Field(
        default=0.95,
        ge=0,
        lt=1,
        title="Decay of the running mean",
        description="The share of a role's running mean that is kept when a row is added.",
    )


METHOD = Method(
    name="offline-po",
    title="Learn from rewards",
    summary="Moves with high rewards become more likely, no further from the model that played them than a clip range.",
    config=OfflinePoConfig,
    loss="offline_po",
    needs=frozenset({Need.REFERENCE_MODEL, Need.REWARDS}),
)
