"""Specs of the steps that are no job kind of their own: evaluations, tables, datasets of rated material."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from app.core.errors import Invalid, Phrase
from app.core.validation import LARGEST_SEED
from app.jobs.spec import JobBudget, JobSpec, budget_field, spec_field
from app.rounds.spec import MOST_MATCHES, MOST_NAME, RoundSampling, leniency_field, material_field, talk_of_field
from app.society.comparisons import CODE, RELEASED

MOST_COMPARED = 2000


class EvaluateSpec(JobSpec):
    """A model on held-out material: a round from which no training should learn, and the model's figures in it."""

    version: ClassVar[int] = 1

    game: str = spec_field("Game", "Its name.", metavar="GAME")
    model: str = spec_field("Model", "The one that is evaluated.", metavar="MODEL", use="player")
    against: str | None = spec_field(
        "Against",
        "An opponent, with the seats swapped half of the time.",
        None,
        unset="the model itself",
        metavar="MODEL",
        use="player",
    )
    beside: str | None = spec_field(
        "Compared with",
        "An evaluation of the same matches: figures say how many times its mean score this one’s is.",
        None,
        unset="none",
        metavar="STEP",
    )
    matches: int = spec_field("Matches", "An even number against an opponent.", 100, metavar="N", ge=1, le=MOST_MATCHES)
    config: Mapping[str, Any] = spec_field(
        "Settings of the game", "Such as objective: coop.", default_factory=dict, unset="none", metavar="K=V"
    )
    lenient: bool = leniency_field()
    material: str | None = material_field()
    prompt: str | None = spec_field(
        "System prompt",
        "What the model is told beside the rules, by NAME@VERSION; its opponent is told nothing.",
        None,
        unset="none",
        metavar="PROMPT",
    )
    talk_of: str | None = talk_of_field()
    sampling: RoundSampling = spec_field("Sampling", "For all models.", RoundSampling())
    name: str = spec_field(
        "Name", "The round’s name in lists.", "", unset="run and step", metavar="NAME", max_length=MOST_NAME
    )
    seed: int | None = spec_field(
        "Seed",
        "The same seed plays the same matches.",
        None,
        unset="from the run’s seed and the step’s name, so that all turns of a loop play the same matches",
        metavar="S",
        ge=0,
        le=LARGEST_SEED,
    )
    budget: JobBudget = budget_field()

    @model_validator(mode="after")
    def _as_many_from_either_seat(self) -> Self:
        if self.against is not None and self.matches % 2:
            raise Invalid("matches", expected=Phrase("an even number where seats are swapped"), got=self.matches)
        return self


class ComparisonsSpec(JobSpec):
    """The ratings of a society: a dataset of comparisons, and one of conversations to mix into a training."""

    version: ClassVar[int] = 1

    society: str = spec_field("Society", "Its number.", metavar="N")
    mixing: Literal["released", "code"] = spec_field(
        "Mixing",
        "Of imitation, self-critique and realignment: as the released data, or as the code does by itself.",
        RELEASED,
        labels={RELEASED: "as the released data", CODE: "as the code does where nothing is said"},
    )
    seed: int | None = spec_field(
        "Seed", "Of the rows that are drawn.", None, unset="from the run’s seed", metavar="S", ge=0, le=LARGEST_SEED
    )
    name: str | None = spec_field("Name", "An existing name makes its next version.", None, unset="run and step")


class BestResponsesSpec(JobSpec):
    """The best response to each query of a dataset of comparisons, as conversations for supervised training."""

    version: ClassVar[int] = 1

    dataset: str = spec_field("Dataset", "A number, NAME or NAME@VERSION.", metavar="DATASET")
    name: str | None = spec_field("Name", "An existing name makes its next version.", None, unset="run and step")


class CompareSpec(JobSpec):
    """A table of earlier steps' results: a row each, or a row with mean and interval over a loop's iterations."""

    version: ClassVar[int] = 1

    of: tuple[str, ...] = spec_field(
        "Of",
        "Figures of steps, such as ${all.measure.figures}.",
        metavar="STEP",
        min_length=1,
        max_length=MOST_COMPARED,
    )
    over: str | None = spec_field(
        "Over",
        "A variable of their loops, such as seed: a row is then the mean over its values, with a 95 % interval by"
        " Student’s t.",
        None,
        unset="a row for each",
        metavar="NAME",
    )
    figures: tuple[str, ...] = spec_field(
        "Figures", "Only these, by the names that CSV files have.", (), unset="all", metavar="NAME", max_length=100
    )
