"""A small language model trained from scratch, with the words of the rows as its vocabulary."""

from typing import Self

from pydantic import Field, model_validator

from training.methods.base import Batch, Config, FieldFault, LearningRate, Method


class TinyConfig(Config):
    """The fields of every method, and the shape of the model."""

    width: int = Field(
        default=128, ge=8, title="Width", description="Width of the model: a multiple of twice the heads."
    )
    layers: int = Field(default=6, ge=1, title="Layers", description="Layers of the model.")
    heads: int = Field(default=4, ge=1, title="Heads", description="Attention heads of a layer.")
    length: int = Field(
        default=512,
        ge=8,
        title="Length",
        description="The longest sequence that the model can take.",
        json_schema_extra={"unit": "tokens"},
    )
    min_count: int = Field(
        default=2,
        ge=1,
        title="Minimum word count",
        description="How often a word must occur in the rows to be in the vocabulary.",
    )
    max_words: int = Field(
        default=8000,
        ge=1,
        title="Words",
        description="Words of the vocabulary, at most: the most frequent ones.",
        json_schema_extra={"unit": "words"},
    )
    batch: Batch = 32
    learning_rate: LearningRate = 3e-3

    @model_validator(mode="after")
    def _heads_divide_the_width(self) -> Self:
        if self.width % (2 * self.heads):
            expected = f"a multiple of twice the heads ({2 * self.heads})"
            raise FieldFault("width", expected=expected, got=str(self.width))
        return self


METHOD = Method(
    name="tiny",
    title="From scratch",
    summary="A small model that knows the words of the dataset and no others.",
    config=TinyConfig,
    loss="sft",
    new_model="training.tiny",
)
