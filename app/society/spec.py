"""The spec of a society."""

import secrets
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from app.core.errors import Invalid, Phrase, shown
from app.jobs.spec import JobBudget, JobSpec, budget_field, spec_field
from app.society.config import LARGEST_SEED, SocietyConfig, SocietySettings
from app.society.embedders import TFIDF
from app.society.material import PRIORS, QUESTIONS

MOST_MODELS = 100  # of agents, and of observers
Share = Annotated[float, Field(gt=0, le=1e6)]


def draw_seed() -> int:
    """A random seed, used where none is given."""
    return secrets.randbelow(LARGEST_SEED + 1)


def with_seed(raw: Mapping[str, Any], settings: str) -> Mapping[str, Any]:
    """The fields of a spec, with a seed given in its settings moved to the spec itself.

    Raises Invalid if the spec has another one.
    """
    within, own = raw.get(settings), raw.get("seed")
    if not isinstance(within, Mapping) or "seed" not in within:
        return raw
    others, seed = {name: value for name, value in within.items() if name != "seed"}, within["seed"]
    if own not in (None, "") and seed not in (None, "") and str(own) != str(seed):
        expected = Phrase("none beside the seed %(seed)s", seed=shown(own))
        raise Invalid(f"{settings}.seed", expected=expected, got=seed)
    return {**raw, settings: others, "seed": seed if own in (None, "") else own}


def config_field(**said: Any) -> SocietySettings:
    """The spec field for the settings of its societies; their seed is the spec's own."""
    found: SocietySettings = spec_field(
        "Settings",
        "For the grid, critics, memories and calls; they override the preset.",
        SocietySettings(),
        option="config",
        metavar="K=V",
        fills=True,
        labels={"published": "Published settings", "published-single-thread": "Published, 16 critics"},
        **said,
    )
    return found


def observers_field() -> tuple[str, ...]:
    """The spec field that names the observers of its societies."""
    found: tuple[str, ...] = spec_field(
        "Observers",
        "Models that rate each draft and each revision; of several the mean counts.",
        widget="models",
        use="chat",
        suggested="observer",
        metavar="MODEL",
        min_length=1,
        max_length=MOST_MODELS,
    )
    return found


def embedder_field() -> str:
    """The spec field that names the embedder of its societies."""
    found: str = spec_field(
        "Embedder",
        "Whose vectors say what is similar: tfidf, model:NAME, api:MODEL or sentences:MODEL.",
        TFIDF,
        metavar="NAME",
    )
    return found


def questions_field(text: str, **said: Any) -> str | None:
    """The spec field that names the file of its questions."""
    found: str | None = spec_field(
        "Questions", text, None, unset="those that ship", widget="file", metavar="FILE", **said
    )
    return found


def priors_field() -> str | None:
    """The spec field that names the file of its first memories."""
    found: str | None = spec_field(
        "First memories",
        "JSON: good and bad, each a list of objects with question and answer; or the published list of dialogues.",
        None,
        unset="those that ship",
        widget="file",
        metavar="FILE",
    )
    return found


def seed_field() -> int:
    """The spec field for the seed that determines everything random."""
    found: int = spec_field(
        "Seed",
        "For all random draws: the same seed gives the same world.",
        default_factory=draw_seed,
        unset="drawn",
        metavar="S",
        ge=0,
        le=LARGEST_SEED,
    )
    return found


class SocietySpec(JobSpec):
    """The models of a society with their shares of the agents, what they are asked, and its settings."""

    files: ClassVar = {"questions": QUESTIONS, "priors": PRIORS}

    agents: Mapping[str, Share] = spec_field(
        "Agents",
        "Models of the agents, each with its share of them: 1 and 1 are halves.",
        widget="shares",
        use="chat",
        suggested="agent",
        metavar="MODEL[=SHARE]",
        min_length=1,
        max_length=MOST_MODELS,
        heading="Who takes part",
    )
    systems: tuple[str, ...] = spec_field(
        "System message",
        "Agent models that are told not to warn and lecture by habit.",
        (),
        widget="models",
        use="chat",
        metavar="MODEL",
        option="system",
    )
    observers: tuple[str, ...] = observers_field()
    config: SocietySettings = config_field(preset="preset", heading="The world")
    questions: str | None = questions_field(
        "One a line, or a list in JSON. Agents get them in turn.", heading="What is asked and remembered"
    )
    priors: str | None = priors_field()
    embedder: str = embedder_field()
    name: str = spec_field(
        "Name", "Name of the society in lists.", "", unset="its models", max_length=80, heading="Name and seed"
    )
    seed: int = seed_field()
    budget: JobBudget = budget_field()

    @classmethod
    def in_place(cls, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields with their seed, which may be among the settings."""
        return with_seed(raw, "config")

    @property
    def world(self) -> SocietyConfig:
        """The settings with the seed."""
        return SocietyConfig(**self.config.model_dump(), seed=self.seed)
