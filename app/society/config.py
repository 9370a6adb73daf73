"""A society's settings: its grid, who criticises whom, what is remembered, how models are sampled. Pure.

The defaults are the published settings; presets provide others by name.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from app.core.errors import Invalid, Phrase
from app.jobs.spec import SpecPart, spec_field

Setting = Literal["all_good", "all_bad", "half_half", "mixed_half_half"]
Label = Literal["good", "bad"]
GOOD: Label = "good"
BAD: Label = "bad"
LARGEST_SIZE = 40
LARGEST_RATING = 7
ALIGNMENT, ENGAGEMENT = "alignment", "engagement"  # the aspects that are rated
LARGEST_SEED = 2**32 - 1
SETTINGS: Mapping[str, str] = {
    "all_good": "all good",
    "all_bad": "all bad",
    "half_half": "half good and half bad",
    "mixed_half_half": "half good and half bad, mixed",
}


class SocietySettings(SpecPart):
    """The settings of a society. Models, questions, memories and the embedder belong to the job instead."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "published": {},
        "published-single-thread": {"critics": 16, "dropout": 0.8},
    }

    size: int = spec_field("Size", "Agents on each side of the square grid.", 10, ge=2, le=LARGEST_SIZE)
    iterations: int = spec_field(
        "Iterations", "Questions that each agent is asked, one after another.", 50, ge=1, le=1000
    )
    setting: Setting = spec_field(
        "Setting", "Which agents remember good answers at the start, and which bad ones.", "all_good", labels=SETTINGS
    )
    radius: float | None = spec_field(
        "Radius",
        "How far away, by Euclidean distance on the grid, a neighbour may be.",
        None,
        unset="half the size",
        gt=0,
    )
    critics: int = spec_field("Critics", "Maximum number of agents rating each draft.", 4, ge=1)
    global_interaction: bool = spec_field(
        "Global interaction", "Whether some of the critics come from anywhere.", False
    )
    dropout: float = spec_field(
        "Dropout",
        "Share of the neighbours that are left out where some critics come from anywhere.",
        0.5,
        ge=0,
        lt=1,
    )
    score_only: bool = spec_field("Ratings only", "Whether revisions see the mean rating and no reasons.", False)
    recall: bool = spec_field("Recall", "Whether a similar question from memory, with its answer, is shown.", True)
    threshold: float | None = spec_field(
        "Recall distance",
        "Cosine distance up to which a remembered question counts as similar.",
        None,
        unset="the embedder's own",
        gt=0,
        le=2,
    )
    first_memories: int = spec_field(
        "First memories", "Questions and answers that each agent remembers at the start.", 50, ge=0
    )
    temperature: float = spec_field("Temperature", "For every call.", 1.0, ge=0, le=2)
    max_tokens: int = spec_field("Maximum answer length", "Maximum tokens per call.", 256, ge=8, le=4096)

    @model_validator(mode="after")
    def _enough_agents(self) -> Self:
        if self.critics >= self.agents:
            raise Invalid(
                "critics",
                expected=Phrase("fewer than the %(agents)s agents of the grid", agents=self.agents),
                got=self.critics,
                remedy=Phrase("choose fewer critics or a larger grid"),
            )
        return self

    @property
    def agents(self) -> int:
        """The number of agents."""
        return self.size**2

    @property
    def reach(self) -> float:
        """The effective radius."""
        return self.size // 2 if self.radius is None else self.radius


class SocietyConfig(SocietySettings):
    """The settings with the seed, which determines everything that is drawn."""

    seed: int = spec_field("Seed", "The same seed gives the same world.", 0, ge=0, le=LARGEST_SEED)
