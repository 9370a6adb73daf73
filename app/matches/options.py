"""What a study asks of a match beside the rules of its game. Pure.

Stored with the match's row; None there is a match outside of studies.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

OWN_POINTS, BOTH, NOTHING = "own points", "both", "none"  # what people see of the points once a match is over
COMPUTER = "computer"  # what people are told of their partner, where it is not left out


@dataclass(frozen=True, slots=True)
class ReplyTarget:
    """When a model's reply is shown, in seconds after the move that it answers; the same for all models."""

    seconds_per_word: float
    least: float
    most: float

    def seconds(self, text: str) -> float:
        """For a reply of these words."""
        return min(self.most, max(self.least, self.seconds_per_word * len(text.split())))


@dataclass(frozen=True, slots=True)
class MatchOptions:
    """What the design of a study says of a match.

    `retries`: how often a model whose move was refused is asked again. `matches`: how many count for each person.
    `replaces` is the match that a model broke off and that this one is played for.
    """

    reply_after: ReplyTarget
    feedback: str
    retries: int
    partner_told: str
    matches: int
    replaces: str | None = None

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> "MatchOptions":
        """What `to_json` gave."""
        return cls(**{**raw, "reply_after": ReplyTarget(**raw["reply_after"])})

    def to_json(self) -> dict[str, Any]:
        """Without `replaces` where there is nothing that it replaces."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def tells_partner(self) -> bool:
        """Whether the pages of a match may say what the partner is."""
        return self.partner_told == COMPUTER
