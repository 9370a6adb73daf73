"""What a dataset is to be cut from, and how: read from a command line, a form or JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from app.datasets.filters import ABOVE_AVG, ALL, BOTH, FILTERS, SOURCES
from app.errors import Invalid, Phrase, either
from app.games.base import JSON
from app.games.rewards import DECAY
from app.matches.filter import read_choice
from app.validation import real_number, whole_number

NO_REWARDS, SPAG = "none", "spag"
REWARDS = (NO_REWARDS, SPAG)
MOST_ROUNDS = 1000
_MATCHES = ("reason", "since", "until")  # conditions that `matches.choice` reads


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """What a dataset is to be cut from and how; None does not matter.

    `rounds` are in order, each once; without any, all matches of `game` that are part of no round. `source` and
    `model` are about who made the moves, `reason`, `since` and `until` about the match. `style` is the prompt style in
    which moves are told whose player was not prompted: those of people, scripted players and imported matches; None is
    that of the models in the matches. With `rewards`, each game's formula gives moves rewards and weights: `decay` (γ)
    shares a seat's reward among its moves; without `role_weights` every move that is learnt weighs 1; with
    `positive_only` moves whose reward is not above 0 weigh 0.
    """

    rounds: tuple[int, ...]
    filter: str
    game: str | None = None
    source: str = BOTH
    model: str | None = None
    reason: str | None = None
    since: date | None = None
    until: date | None = None
    style: str | None = None
    rewards: str = NO_REWARDS
    decay: float = DECAY
    role_weights: bool = True
    positive_only: bool = False

    @property
    def has_rewards(self) -> bool:
        """Whether moves get rewards."""
        return self.rewards != NO_REWARDS

    def to_json(self) -> JSON:
        rewarded = {"decay": self.decay, "role_weights": self.role_weights, "positive_only": self.positive_only}
        return {
            "rounds": list(self.rounds),
            "game": self.game,
            "filter": self.filter,
            "rewards": self.rewards,
            **(rewarded if self.has_rewards else {}),
            "source": self.source,
            "model": self.model,
            "reason": self.reason,
            "since": None if self.since is None else self.since.isoformat(),
            "until": None if self.until is None else self.until.isoformat(),
            "style": self.style,
        }


def read_spec(raw: Mapping[str, Any]) -> DatasetSpec:
    """A spec from a command line, a form or JSON; empty fields do not matter.

    Raises NotFound for an unknown game, and Invalid for all else that no dataset can be cut by.
    """
    given = {name: str(value).strip() for name, value in raw.items() if name != "rounds" and value is not None}
    rounds = sorted({whole_number(number, "round", 1, 2**31 - 1) for number in raw.get("rounds") or ()})
    if len(rounds) > MOST_ROUNDS:
        raise Invalid("round", expected=Phrase("at most %(most)s of them", most=MOST_ROUNDS), got=len(rounds))
    game = given.get("game") or None
    choice = read_choice({"game": game or "", **{name: given.get(name, "") for name in _MATCHES}})
    if not rounds and game is None:
        raise Invalid(
            "round",
            expected=Phrase("the number of a round, or a game for its matches outside rounds"),
            got=Phrase("neither"),
        )
    rewards = _known("rewards", given.get("rewards") or NO_REWARDS, REWARDS)
    usual = ABOVE_AVG if rewards == NO_REWARDS else ALL  # weights say what is learnt where there are rewards
    return DatasetSpec(
        rounds=tuple(rounds),
        filter=_known("filter", given.get("filter") or usual, FILTERS),
        game=choice.game,
        source=_known("source", given.get("source") or BOTH, SOURCES),
        model=given.get("model") or None,
        reason=choice.reason,
        since=choice.since,
        until=choice.until,
        style=given.get("style") or None,
        rewards=rewards,
        decay=real_number(given.get("decay") or DECAY, "decay", 0, 1),
        role_weights=_yes(given.get("role_weights") or "yes", "role_weights"),
        positive_only=_yes(given.get("positive_only") or "no", "positive_only"),
    )


def _known(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise Invalid(name, expected=either(known), got=value)
    return value


def _yes(value: str, name: str) -> bool:
    return _known(name, {"True": "yes", "False": "no"}.get(value, value), ("yes", "no")) == "yes"
