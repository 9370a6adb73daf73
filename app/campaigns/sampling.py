"""How the models of a campaign are sampled: by default as in the game's paper."""

from typing import Annotated, Literal, Self

from pydantic import Field

from app.games import GAMES, find_game
from app.games.base import JSON
from app.jobs.spec import SpecPart, spec_field

NONE = "none"
Temperature = Annotated[float, Field(ge=0, le=2)] | Literal["none"]
Whole = Annotated[int, Field(ge=1, le=100_000)] | Literal["none"]


def _usual_sampling(field: str) -> str:
    """The default of a sampling field in each game, for the help."""
    return "; ".join(f"{game.name}: {game.sampling[field]:g}" for game in GAMES.values() if field in game.sampling)


class CampaignSampling(SpecPart):
    """How the models of a campaign are sampled in rounds and evaluations; overrides each model's own options."""

    temperature: Temperature | None = spec_field(
        "Temperature",
        "0 (greedy) to 2, for playing and evaluating; none: the model’s own.",
        None,
        unset="as the game’s paper did, or the model’s own",
        empty="the model’s own",
        metavar="T",
        note=_usual_sampling("temperature"),
    )
    top_k: Whole | None = spec_field(
        "Top-k",
        "Sample from the likeliest tokens, where the server can; none: from all.",
        None,
        unset="as the game’s paper did, or not sent",
        empty="not sent",
        metavar="K",
        note=_usual_sampling("top_k"),
    )
    max_tokens: Whole | None = spec_field(
        "Maximum tokens per move", "Longer output is cut off.", None, unset="the game’s limit", metavar="N"
    )

    def of_game(self, game: str) -> Self:
        """The same with nothing left open: values not given are those of the game's paper, or none."""
        usual = {field: NONE for field, _ in self} | {**find_game(game).sampling}
        return type(self)(**usual | self.model_dump(exclude_none=True))

    def options(self) -> JSON:
        """The values that override the models' options."""
        return {field: value for field, value in self if value not in (None, NONE)}
