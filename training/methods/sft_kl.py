"""Imitation that stays near a reference model.

Source: Self-Play of Adversarial Language Game, arXiv 2404.10642, where a stronger model's winning moves are imitated.
"""

from training.methods.base import LearningRate, Method, Need
from training.methods.reference import KlWeight, WithReference


class SftKlConfig(WithReference):
    """The fields of a method with a reference model, and the weight of its term."""

    learning_rate: LearningRate = 5e-6
    kl: KlWeight = 0.1


METHOD = Method(
    name="sft-kl",
    title="Imitate, near a reference",
    summary="The moves in the dataset become more likely, and the model stays near the one it starts from.",
    config=SftKlConfig,
    loss="sft_kl",
    needs=frozenset({Need.REFERENCE_MODEL}),
)
