"""What a society is: its grid, who criticises whom, what is remembered, and how its models are sampled. Pure.

The JSON Schema of `SocietyConfig` feeds the form, the command line and the validation. The defaults are the published
settings; `PRESETS` has others by name.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from app.core.errors import Invalid, Phrase, either
from app.core.validation import Schema, read_value

Setting = Literal["all_good", "all_bad", "half_half", "mixed_half_half"]
Label = Literal["good", "bad"]
GOOD: Label = "good"
BAD: Label = "bad"
LARGEST_SIZE = 40
LARGEST_RATING = 7
LARGEST_SEED = 2**32 - 1


class SocietyConfig(BaseModel):
    """The fields of a society. Models, questions, memories and the embedder belong to the job, not to it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: int = Field(
        default=10, ge=2, le=LARGEST_SIZE, title="Size", description="Agents on each side of the square grid."
    )
    iterations: int = Field(
        default=50,
        ge=1,
        le=1000,
        title="Iterations",
        description="Questions that each agent is asked, one after another.",
    )
    setting: Setting = Field(
        default="all_good",
        title="Setting",
        description="Which agents remember good answers at the start, and which bad ones.",
    )
    radius: float | None = Field(
        default=None,
        gt=0,
        title="Radius",
        description="How far away, by Euclidean distance on the grid, a neighbour may be.",
        json_schema_extra={"unset": "half the size"},
    )
    critics: int = Field(default=4, ge=1, title="Critics", description="Agents that rate each draft, at most.")
    global_interaction: bool = Field(
        default=True, title="Global interaction", description="Whether some of the critics come from anywhere."
    )
    dropout: float = Field(
        default=0.5,
        ge=0,
        lt=1,
        title="Dropout",
        description="Share of the neighbours that are left out where some critics come from anywhere.",
    )
    score_only: bool = Field(
        default=False, title="Ratings alone", description="Whether revisions see the mean rating and no reasons."
    )
    recall: bool = Field(
        default=True, title="Recall", description="Whether a similar question from memory, with its answer, is shown."
    )
    threshold: float | None = Field(
        default=None,
        gt=0,
        le=2,
        title="Recall distance",
        description="Cosine distance up to which a remembered question counts as similar.",
        json_schema_extra={"unset": "the embedder's own"},
    )
    first_memories: int = Field(
        default=50,
        ge=0,
        title="First memories",
        description="Questions and answers that each agent remembers at the start.",
    )
    temperature: float = Field(default=1.0, ge=0, le=2, title="Temperature", description="Of every call.")
    max_tokens: int = Field(default=256, ge=8, le=4096, title="Longest answer", description="Tokens of every call.")
    seed: int = Field(default=0, ge=0, le=LARGEST_SEED, title="Seed", description="The same seed gives the same world.")

    @model_validator(mode="after")
    def _enough_agents(self) -> Self:
        if self.critics >= self.size**2:
            raise ValueError(
                f"critics: expected fewer than the {self.size**2} agents of the grid, got {self.critics};"
                " choose fewer critics or a larger grid"
            )
        return self

    @property
    def agents(self) -> int:
        """How many agents there are."""
        return self.size**2

    @property
    def reach(self) -> float:
        """The radius that holds."""
        return self.size // 2 if self.radius is None else self.radius


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "published": {},
    "published-single-thread": {"critics": 16, "dropout": 0.8},
}


def read_config(raw: Mapping[str, Any], preset: str | None = None) -> SocietyConfig:
    """The config of a mapping, laid over a preset; numbers may have come as text, and null stands for the default.

    Raises Invalid, naming the field.
    """
    if preset is not None and preset not in PRESETS:
        raise Invalid("preset", expected=either(PRESETS), got=preset)
    if unknown := sorted(set(raw) - set(SocietyConfig.model_fields)):
        names = ", ".join(SocietyConfig.model_fields)
        raise Invalid("config", expected=Phrase("only %(names)s", names=names), got=unknown[0])
    schemas: Mapping[str, Schema] = SocietyConfig.model_json_schema()["properties"]
    given = {name: read_value(schemas[name], value, name) for name, value in raw.items() if value is not None}
    fields = {**PRESETS[preset or "published"], **given}
    _check_critics(fields)
    try:
        return SocietyConfig.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        # Numbers and words were checked before.
        raise Invalid(str(first["loc"][0]), expected=Phrase("true or false"), got=first["input"]) from None


def _check_critics(fields: Mapping[str, Any]) -> None:
    usual = SocietyConfig.model_fields
    size, critics = (fields.get(name, usual[name].default) for name in ("size", "critics"))
    if critics >= size**2:
        raise Invalid(
            "critics",
            expected=Phrase("fewer than the %(agents)s agents of the grid", agents=size**2),
            got=critics,
            remedy=Phrase("choose fewer critics or a larger grid"),
        )
