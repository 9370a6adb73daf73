"""Supervised fine-tuning: only the moves of the kept seats become more likely.

Source: the filtered behaviour cloning of Liao, Tomlin & Klein 2024, arXiv 2406.18872, where the rows were filtered
before they came here.
"""

from training.methods.base import FromCheckpoint, Method


class SftConfig(FromCheckpoint):
    """The fields of every method that starts from a checkpoint, and no others."""


METHOD = Method(
    name="sft",
    title="Continue from a model",
    summary="The moves in the dataset become more likely.",
    config=SftConfig,
    loss="sft",
)
