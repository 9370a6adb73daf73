"""What a dataset is to be cut from, and how: read from a command line, a form or JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from pydantic import model_validator

from app.core.errors import Invalid, Phrase, either
from app.core.validation import real_number, whole_number
from app.datasets.filters import ABOVE_AVG, ALL, BOTH, FILTERS, SPEAKERS
from app.games.base import JSON
from app.games.rewards import DECAY
from app.jobs.spec import JobSpec, asked
from app.matches.choice import MatchChoice
from app.matches.filter import EVERYTHING, NAMES, MatchFilter, read_choice

NO_REWARDS, SPAG = "none", "spag"
REWARDS = (NO_REWARDS, SPAG)
MOST_ROUNDS = 1000
MOST_WORDINGS = 100
OVER = "over"
_BATCH = ("game", "source", "campaign", "study", "arm")  # conditions that say what was played together
_TOP = ("game", "reason", "since", "until")  # conditions that stand beside the other fields in JSON, not in "matches"


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """What a dataset is to be cut from and how; None does not matter.

    `rounds` are in order, each once; `matches` is what a match has to be beside that. Without rounds, a campaign, a
    source or a single match, only matches that are part of no round are meant. `speakers` and `model` are about who
    made the moves, as is `models`: any of these, where there are some. `style` is the prompt style in which moves are
    told whose player was not prompted: those of people, scripted players and imported matches; None is that of the
    models in the matches. With `rewards`, each game's formula gives moves rewards and weights: `decay` (γ) shares a
    seat's reward among its moves; without `role_weights` every move that is learnt weighs 1; with `positive_only` moves
    whose reward is not above 0 weigh 0. With `wordings`, each row states the rules in one of this many wordings of
    the prompt of `style`, drawn by `seed`, whatever prompt the move was made with.
    """

    rounds: tuple[int, ...]
    filter: str
    speakers: str = BOTH
    model: str | None = None
    matches: MatchFilter = EVERYTHING
    style: str | None = None
    rewards: str = NO_REWARDS
    decay: float = DECAY
    role_weights: bool = True
    positive_only: bool = False
    models: tuple[str, ...] = ()
    wordings: int | None = None
    seed: int = 0

    @property
    def has_rewards(self) -> bool:
        """Whether moves get rewards."""
        return self.rewards != NO_REWARDS

    @property
    def batch(self) -> MatchFilter:
        """The conditions that say what was played together: means are taken over all finished matches like that."""
        return _only(self.matches, _BATCH)

    @property
    def choice(self) -> MatchFilter:
        """The other conditions, which choose among these matches."""
        return _only(self.matches, [name for name in NAMES if name not in _BATCH])

    @property
    def outside_rounds(self) -> bool:
        """Whether only matches that are part of no round are meant."""
        return not self.rounds and all(getattr(self.matches, name) is None for name in ("campaign", "source", "match"))

    @property
    def of_game_alone(self) -> bool:
        """Whether all that says what was played together is a game."""
        return self.outside_rounds and self.batch == MatchFilter(game=self.matches.game)

    def to_json(self) -> JSON:
        """The spec as `read_spec` reads it. "source" is who made the moves; conditions on matches are in "matches"."""
        rewarded = {"decay": self.decay, "role_weights": self.role_weights, "positive_only": self.positive_only}
        chosen = {name: value for name in NAMES if (value := getattr(self.matches, name)) is not None}
        further = {name: value for name, value in chosen.items() if name not in _TOP}
        return {
            "rounds": list(self.rounds),
            "game": self.matches.game,
            "filter": self.filter,
            "rewards": self.rewards,
            **(rewarded if self.has_rewards else {}),
            "source": self.speakers,
            "model": self.model,
            **({"models": list(self.models)} if self.models else {}),
            "reason": self.matches.reason,
            "since": chosen.get("since") and chosen["since"].isoformat(),
            "until": chosen.get("until") and chosen["until"].isoformat(),
            **({"matches": further} if further else {}),
            "style": self.style,
            **({} if self.wordings is None else {"wordings": self.wordings, "seed": self.seed}),
        }


def _only(choice: MatchFilter, names: Sequence[str]) -> MatchFilter:
    return replace(EVERYTHING, **{name: getattr(choice, name) for name in names})


def read_spec(raw: Mapping[str, Any]) -> DatasetSpec:
    """A spec from a command line, a form or JSON; empty fields do not matter.

    Conditions on matches may stand beside the other fields or in "matches". "source" is one of these, but for its
    values of earlier releases, which are about who made the moves: "speakers". Raises NotFound for an unknown game, and
    Invalid for all else that no dataset can be cut by.
    """
    nested = raw.get("matches") or {}
    fields = {name: value for name, value in raw.items() if name not in ("rounds", "models", "matches")}
    given = {name: str(value).strip() for name, value in fields.items() if value is not None}
    speakers = given.get("speakers") or (given.pop("source", "") if given.get("source") in SPEAKERS else "") or BOTH
    given |= {name: str(value) for name, value in nested.items() if name in NAMES}
    named = [*(raw.get("rounds") or ()), *filter(None, [given.pop("round", "")])]
    rounds = sorted({whole_number(number, "round", 1, 2**31 - 1) for number in named})
    if len(rounds) > MOST_ROUNDS:
        raise Invalid("round", expected=Phrase("at most %(most)s of them", most=MOST_ROUNDS), got=len(rounds))
    choice = read_choice(given)
    if choice.status not in (None, OVER):
        expected = Phrase("%(over)s, as only finished matches give rows", over=OVER)
        raise Invalid("status", expected=expected, got=choice.status)
    if not rounds and choice.match is None and _only(choice, _BATCH) == EVERYTHING:
        raise Invalid(
            "round",
            expected=Phrase("the number of a round or a campaign, or a game for its matches outside rounds"),
            got=Phrase("neither"),
        )
    rewards = _known("rewards", given.get("rewards") or NO_REWARDS, REWARDS)
    usual = ABOVE_AVG if rewards == NO_REWARDS else ALL  # weights say what is learnt where there are rewards
    return DatasetSpec(
        rounds=tuple(rounds),
        filter=_known("filter", given.get("filter") or usual, FILTERS),
        speakers=_known("speakers", speakers, SPEAKERS),
        model=given.get("model") or None,
        matches=replace(choice, status=None),
        style=given.get("style") or None,
        rewards=rewards,
        decay=real_number(given.get("decay") or DECAY, "decay", 0, 1),
        role_weights=_yes(given.get("role_weights") or "yes", "role_weights"),
        positive_only=_yes(given.get("positive_only") or "no", "positive_only"),
        models=tuple(sorted({str(name) for name in raw.get("models") or ()})),
        wordings=whole_number(given["wordings"], "wordings", 2, MOST_WORDINGS) if given.get("wordings") else None,
        seed=whole_number(given.get("seed") or 0, "seed", 0, 2**32 - 1),
    )


def _known(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise Invalid(name, expected=either(known), got=value)
    return value


def _yes(value: str, name: str) -> bool:
    return _known(name, {"True": "yes", "False": "no"}.get(value, value), ("yes", "no")) == "yes"


class DatasetRequestSpec(JobSpec):
    """What a dataset is cut from, which transcripts are kept, and what their moves are worth."""

    rounds: tuple[str, ...] = asked(
        "Rounds",
        "Their numbers. Without a round, a campaign, a source and a match, these are matches outside rounds.",
        (),
        option="round",
        metavar="R",
        repeats=True,
        max_length=MOST_ROUNDS,
    )
    matches: MatchChoice = asked("Matches", "What a match has to be beside that.", MatchChoice())
    filter: Literal["above_avg", "nonzero", "all"] | None = asked(
        "Filter",
        "Which seats are kept: of a score above the mean of their round, of one above 0, or all.",
        None,
        unset=f"{ABOVE_AVG}; {ALL} with rewards",
        metavar="NAME",
    )
    rewards: Literal["none", "spag"] = asked(
        "Rewards",
        "Give each move the reward and the weight of its game’s formula, for methods that learn from rewards.",
        NO_REWARDS,
        metavar="NAME",
    )
    decay: float | None = asked(
        "Decay (γ)",
        "A reward is shared among moves by γ to the moves after.",
        None,
        unset=str(DECAY),
        metavar="γ",
        ge=0,
        le=1,
    )
    role_weights: bool = asked("Weights of roles", "Both roles count alike, however often each wins.", True)
    positive_only: bool = asked("Positive rewards alone", "Moves with a reward of 0 or less weigh 0.", False)
    speakers: Literal["models", "people", "both"] = asked("Said by", "Only what these have said.", BOTH, metavar="WHO")
    model: str | None = asked("Model", "Only what this model of the registry said.", None, unset="any", metavar="NAME")
    style: str | None = asked(
        "Prompt style",
        "Of moves that no model was prompted for: of people, scripted players and imports.",
        None,
        unset="that of the models in the matches, if all were prompted alike; or full",
        metavar="NAME",
    )
    wordings: int | None = asked(
        "Wordings of the rules",
        "Each row states the rules in one of this many wordings, whatever prompt the move was made with.",
        None,
        unset="as played",
        metavar="N",
        ge=2,
        le=MOST_WORDINGS,
    )
    seed: int | None = asked("Seed", "Of the wordings that are drawn.", None, unset="0", metavar="S", ge=0, lt=2**32)
    name: str | None = asked(
        "Name", "A name again becomes its next version.", None, unset="rounds and filter", metavar="NAME"
    )

    @model_validator(mode="after")
    def _fields_fit_each_other(self) -> Self:
        if self.seed is not None and self.wordings is None:
            raise Invalid("seed", expected=Phrase("wordings beside it"), got=Phrase("none"))
        alone = {"decay": self.decay is not None, "role_weights": not self.role_weights}
        for field in (name for name, given in {**alone, "positive_only": self.positive_only}.items() if given):
            if self.rewards == NO_REWARDS:
                raise Invalid(field, expected=Phrase("rewards beside it"), got=Phrase("none"))
        _ = self.cut
        return self

    @property
    def cut(self) -> DatasetSpec:
        """The same, read. Raises as `read_spec` does."""
        usual = {"name"} if self.speakers != BOTH else {"name", "speakers"}  # a source of before may be the speakers
        return read_spec({**self.model_dump(exclude={*usual, "matches"}), **self.matches.model_dump()})
