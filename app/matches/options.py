"""What a study specifies for a match beside the rules of its game. Pure.

Stored in the match's row; None for a match outside of studies.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

OWN_POINTS, BOTH, NOTHING = "own points", "both", "none"  # which points people see once a match is over
COMPUTER = "computer"  # what people are told about their partner, unless it is left out


@dataclass(frozen=True, slots=True)
class ReplyTarget:
    """When a model's reply is shown, in seconds after the move that it answers; the same for all models."""

    seconds_per_word: float
    least: float
    most: float

    def seconds(self, text: str) -> float:
        """The target, in seconds, for a reply with this text."""
        return min(self.most, max(self.least, self.seconds_per_word * len(text.split())))


@dataclass(frozen=True, slots=True)
class MatchOptions:
    """What a study's design specifies for a match.

    `retries`: how often a model whose move was refused is asked again. `matches`: how many count for each person.
    `replaces` is the match that a model aborted and that this one replaces.
    """

    reply_after: ReplyTarget
    feedback: str
    retries: int
    partner_told: str
    matches: int
    replaces: str | None = None

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> "MatchOptions":
        """The options from the output of `to_json`."""
        return cls(**{**raw, "reply_after": ReplyTarget(**raw["reply_after"])})

    def to_json(self) -> dict[str, Any]:
        """As JSON, without `replaces` if the match replaces none."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def tells_partner(self) -> bool:
        """Whether the pages of a match may say what the partner is."""
        return self.partner_told == COMPUTER
