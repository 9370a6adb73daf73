"""The spec of a round, or of a cross-play, which is a round for each pair of some models. Pure."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import model_validator

from app.core.errors import Invalid, Phrase, Verbatim
from app.core.validation import LARGEST_SEED
from app.games import GAMES, find_game
from app.games.base import JSON
from app.jobs.spec import JobBudget, JobSpec, SpecPart, budget_field, spec_field
from app.rounds.plan import Pick, usual_pick

MOST_NAME = 120  # characters in a name
MOST_MATCHES = 1_000_000
MOST_MODELS = 20  # in a cross-play
STRUCTURED = "structured"  # the sampling field that says whether moves are asked for as JSON
_SAMPLED = "; ".join(
    f"{game.name}: {', '.join(f'{name} {value:g}' for name, value in game.sampling.items())}"
    for game in GAMES.values()
    if game.sampling
)
_PICKED = ", ".join(f"{game.material.name}: {usual_pick(game.name)}" for game in GAMES.values() if game.material)


def leniency_field(**said: Any) -> Any:
    """The spec field for reading models' moves leniently; `said` are further arguments of `spec_field`."""
    return spec_field(
        "Lenient reading of moves",
        "A code fence, quotes, bold or a label such as “Assistant:” around a model’s move is removed if unambiguous; "
        "the log keeps what was written. Off when reproducing a paper.",
        True,
        **said,
    )


def material_field(**said: Any) -> Any:
    """The spec field for the material of matches; `said` are further arguments of `spec_field`."""
    return spec_field(
        "Material",
        "What the matches are played on: a file, or `all` for the list that comes with the game.",
        None,
        unset="the game’s list, or generated",
        widget="material",
        metavar="FILE",
        **said,
    )


class RoundSampling(SpecPart):
    """The prompting and sampling options of a round, which override each model’s own."""

    temperature: float | None = spec_field(
        "Temperature", "0, which is greedy, to 2.", None, unset="each model’s own", metavar="T", ge=0, le=2
    )
    top_k: int | None = spec_field(
        "Top-k",
        "Sample from the likeliest tokens, where the server can.",
        None,
        unset="not sent",
        metavar="K",
        ge=1,
        le=100_000,
    )
    max_tokens: int | None = spec_field(
        "Maximum tokens per move",
        "Longer output is cut off.",
        None,
        unset="the game’s limit",
        metavar="N",
        ge=1,
        le=100_000,
    )
    greedy: bool = spec_field("Greedy", "The same as a temperature of 0.", False)
    for_training: bool = spec_field(
        "For training",
        "Sample as the game’s paper did for rounds used in training, unless another field says otherwise.",
        False,
        note=_SAMPLED,
    )
    structured: bool = spec_field(
        "Moves as JSON",
        "Language models are asked for each move as a JSON object, by a schema of the game that their servers keep to."
        " The log keeps the objects; partners, files and trainings see the moves as text.",
        False,
    )

    @model_validator(mode="after")
    def _one_temperature(self) -> Self:
        if self.greedy and self.temperature is not None:
            raise Invalid("greedy", expected=Phrase("it or a temperature"), got=Verbatim("both"))
        return self

    def of_game(self, game: str) -> JSON:
        """The overrides for the options of a game’s models: `temperature`, `top_k`, `max_tokens`, `structured`."""
        own = self.model_dump(include={"temperature", "top_k", "max_tokens"}, exclude_none=True)
        greedy = {"temperature": 0.0} if self.greedy else {}
        structured = {STRUCTURED: True} if self.structured else {}
        return {**(find_game(game).sampling if self.for_training else {}), **own, **greedy, **structured}


def talk_of_field() -> Any:
    """The spec field of a control that shows whether models use what their partners say."""
    return spec_field(
        "Partner’s messages from",
        "The number of a round. In place of each message from its partner, a language model then reads the one that "
        "the partner’s seat sent at that place in the round’s next match, so any gain from talking is lost.",
        None,
        unset="the partner itself",
        metavar="R",
        max_length=20,
    )


class RoundSpec(JobSpec):
    """Who plays which game, how often and with what setup. A cross-play has a round for each pair of models."""

    game: str = spec_field("Game", "Its name.", metavar="GAME", argument=True, widget="game", heading="Who plays")
    cross_play: bool = spec_field(
        "Every model against every other",
        "A round for each pair of any number of models, all on the same seeds. Each plays itself, too.",
        False,
    )
    models: tuple[str, ...] = spec_field(
        "Models",
        "For the first seat and the second; one alone plays both. For a cross-play, two or more.",
        widget="seats",
        repeats=True,
        metavar="A B",
        min_length=1,
        max_length=MOST_MODELS,
    )
    swap_seats: bool = spec_field(
        "Swap seats",
        "Each game is played twice, with the models’ seats swapped. The number of matches has to be even.",
        False,
    )
    matches: int | None = spec_field(
        "Matches",
        "Per pair.",
        None,
        unset="100, or each piece of a named list once where the game is played so",
        metavar="N",
        ge=1,
        le=MOST_MATCHES,
        heading="What is played",
    )
    config: Mapping[str, Any] = spec_field(
        "Settings of the game", "Such as objective=coop.", default_factory=dict, widget="options", metavar="K=V"
    )
    lenient: bool = leniency_field()
    material: str | None = material_field()
    pick: Pick | None = spec_field(
        "How matches get their material",
        "Shuffled: each once in an order drawn from the seed, then all again. Random: drawn for each match.",
        None,
        unset="as is usual for the game",
        metavar="HOW",
        note=_PICKED,
        beside="material",
        labels={"in-order": "In the order of the list", "shuffled": "Shuffled", "random": "Drawn for each match"},
    )
    prompts: tuple[str, ...] = spec_field(
        "System prompts",
        "What models are told besides the rules, by NAME or NAME@VERSION: for the first model and for the second; one "
        "alone is for both, `none` means none. Scripted players are told nothing.",
        (),
        unset="none",
        widget="names",
        repeats=True,
        metavar="PROMPT",
        max_length=2,
    )
    talk_of: str | None = talk_of_field()
    sampling: RoundSampling = spec_field(
        "Sampling",
        "For all models.",
        RoundSampling(),
        heading="How models are asked and sampled",
        without=("greedy", "for_training"),  # a form starts with these values in its fields
    )
    name: str = spec_field(
        "Name",
        "The round’s name in lists.",
        "",
        unset="the names of its models",
        metavar="NAME",
        heading="Name and seed",
        max_length=MOST_NAME,
    )
    seed: int | None = spec_field(
        "Seed",
        "The same seed plays the same contexts and words.",
        None,
        unset="drawn",
        metavar="S",
        ge=0,
        le=LARGEST_SEED,
    )
    budget: JobBudget = budget_field()

    @model_validator(mode="after")
    def _two_seats(self) -> Self:
        if len(self.models) > 2 and not self.cross_play:
            expected = Phrase("one or two names, or a cross-play with more")
            raise Invalid("models", expected=expected, got=len(self.models))
        return self

    @property
    def seats(self) -> tuple[str, str]:
        """The models of a round that is no cross-play, by seat."""
        return self.models[0], self.models[-1]
