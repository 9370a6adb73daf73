"""The settings of an alignment, and how its questions are split."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from app.assessments.spec import MOST_RATERS, AnswerSampling, sampling_field
from app.core.errors import Invalid, either
from app.jobs.spec import JobBudget, JobSpec, budget_field, mapping_of_pairs, spec_field
from app.society.comparisons import CODE, RELEASED
from app.society.config import SocietySettings
from app.society.material import PRIORS, QUESTIONS
from app.society.spec import (
    MOST_MODELS,
    Share,
    config_field,
    embedder_field,
    observers_field,
    priors_field,
    questions_field,
    seed_field,
    with_seed,
)
from training.methods import all_methods

SFT, ALIGN = "sft", "stable-alignment"  # the methods of its trainings
PUBLISHED, PUBLISHED_CODE = "published", "code"
HELD_OUT_SHARE = 0.2


class AlignmentPreset(NamedTuple):
    """The settings of the second training, and how the society's rows are mixed for it."""

    training: Mapping[str, Any]
    mixing: str


def presets() -> dict[str, AlignmentPreset]:
    """The published recipe, and the defaults of its published code."""
    trainings = all_methods()[ALIGN].presets
    mixing = {PUBLISHED: RELEASED, PUBLISHED_CODE: CODE}
    return {name: AlignmentPreset(trainings[name], mixing[name]) for name in mixing}


class AlignmentSpec(JobSpec):
    """The model that learns, the agents of its societies, its two trainings, and the final comparison."""

    version: ClassVar[int] = 2
    files: ClassVar = {"questions": QUESTIONS, "priors": PRIORS, "held_out": QUESTIONS._replace(shipped=None)}

    base: str = spec_field(
        "Base",
        "A local model that answers chats: the one that learns.",
        widget="model",
        use="trained",
        suggested="trained",
        metavar="MODEL",
        heading="Learning model and first training",
    )
    demonstrations: str | None = spec_field(
        "Demonstrations",
        "Conversations for supervised training; of rated responses the best ones.",
        None,
        unset="none: the base enters the society unchanged",
        widget="dataset",
        metavar="D",
    )
    sft: Mapping[str, Any] = spec_field(
        "Fields of the first training",
        "On the demonstrations; one a line, such as epochs = 2.",
        {},
        widget="training",
        method=SFT,
        metavar="K=V",
        unless="demonstrations=",
    )
    share: float = spec_field(
        "Share of the model that learns",
        "Of the agents, relative to the shares below. Alone, it has them all.",
        1.0,
        metavar="S",
        gt=0,
        le=1e6,
        heading="Who else takes part",
    )
    agents: Mapping[str, Share] = spec_field(
        "Agents",
        "Further models of the agents, each with its share of them.",
        {},
        widget="shares",
        use="chat",
        metavar="MODEL[=SHARE]",
        max_length=MOST_MODELS - 1,
        unset="only the model that learns",
    )
    observers: tuple[str, ...] = observers_field()
    raters: tuple[str, ...] = spec_field(
        "Raters",
        "Models that make the final comparison.",
        (),
        widget="models",
        use="chat",
        metavar="NAME",
        max_length=MOST_RATERS,
        unset="the observers",
    )
    society: SocietySettings = config_field(preset="society-preset", heading="The societies")
    embedder: str = embedder_field()
    questions: str | None = questions_field("Of the societies. One a line, or a list in JSON.")
    priors: str | None = priors_field()
    preset: Literal["published", "code"] = spec_field(
        "Preset",
        "Fields of stable-alignment, and how the rows of the society are mixed.",
        PUBLISHED,
        labels={PUBLISHED: "as published", PUBLISHED_CODE: "the defaults of the published code"},
        heading="The training on the data of the first society",
    )
    train: Mapping[str, Any] = spec_field(
        "Fields of the second training",
        "They override the preset; one a line, such as batch = 8.",
        {},
        widget="training",
        method=ALIGN,
        metavar="K=V",
    )
    held_out: str | None = spec_field(
        "Held-out questions",
        "One a line, or a list in JSON; none that the societies are asked.",
        None,
        unset="a fifth of the questions, which the societies are then not asked",
        widget="file",
        metavar="FILE",
        heading="The final comparison",
    )
    sampling: AnswerSampling = sampling_field("")
    name: str = spec_field(
        "Name",
        "Its models are called NAME-sft and NAME-aligned.",
        "",
        unset="the base and a number",
        metavar="NAME",
        max_length=80,
        once=True,
        heading="Name and seed",
    )
    seed: int = seed_field()
    budget: JobBudget = budget_field()

    @classmethod
    def in_place(cls, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields with their seed, which may be among the settings."""
        return with_seed(raw, "society")

    @classmethod
    def of_version(cls, _before: int, fields: dict[str, Any]) -> dict[str, Any]:
        """The first version had pairs of agents and shares, a second seed for the society, and a `training`."""
        found = {name: value for name, value in fields.items() if name != "society_preset"}
        if isinstance(society := fields.get("society"), Mapping):
            found["society"] = {name: value for name, value in society.items() if name != "seed"}
        if "agents" in fields:
            found["agents"] = mapping_of_pairs(fields["agents"])
        if "training" in fields and "train" not in fields:
            found["train"] = found.pop("training")
        return found

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the second training."""
        return {"seed": self.seed, **read_preset(self.preset).training, **self.train}

    @property
    def judges(self) -> tuple[str, ...]:
        """The models that make the final comparison."""
        return self.raters or self.observers


def read_preset(name: str) -> AlignmentPreset:
    """The preset of that name. Raises Invalid."""
    known = presets()
    if name not in known:
        raise Invalid("preset", expected=either(known), got=name)
    return known[name]


def part(questions: Sequence[str], share: float, seed: int) -> tuple[list[str], list[str]]:
    """Questions for the societies, and a held-out share, at least one; both in order, without duplicates."""
    every = list(dict.fromkeys(each.strip() for each in questions))
    number = min(len(every) - 1, max(1, round(share * len(every))))
    drawn = set(random.Random(f"held out {seed}").sample(range(len(every)), number))
    return (
        [each for place, each in enumerate(every) if place not in drawn],
        [each for place, each in enumerate(every) if place in drawn],
    )
