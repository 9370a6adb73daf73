"""The spec of a dataset, read from a command line, a form or JSON."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from pydantic import model_validator

from app.core.errors import Invalid, Phrase, refusals_within
from app.core.validation import whole_number
from app.datasets.filters import ABOVE_AVG, ALL, BOTH, MODELS, NO_CONTROL, PEOPLE, SPEAKERS
from app.datasets.row_fields import (
    FILTER_LABELS,
    OF_ROWS,
    FilterName,
    check_control,
    control_field,
    grounded_field,
    is_drawn,
    permutations_field,
    weight_field,
)
from app.games.base import JSON
from app.games.rewards import DECAY, NO_REWARDS, SPAG
from app.jobs.spec import JobSpec, fields_of, spec_field
from app.matches.choice import MatchChoice
from app.matches.filter import EVERYTHING, NAMES, MatchFilter, read_choice

REWARDS = (NO_REWARDS, SPAG)
DROP, KEEP = "drop", "keep"  # how to handle reasoning
MOST_ROUNDS = 1000
MOST_WORDINGS = 100
OVER = "over"
_BATCH = ("game", "source", "campaign", "study", "arm")  # conditions that say what was played together
_TOP = ("game", "reason", "since", "until")  # conditions that are beside the other fields in JSON, not in "matches"


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """How to build a dataset, and from which matches; None means no condition.

    `rounds` are sorted, each once; `matches` are further conditions on a match. Without rounds, a campaign, a source or
    a single match, only matches outside rounds are meant. `speakers` and `models` are about who made the moves: any of
    these models, if some are given. `style` is the prompt style for moves whose player was not prompted: those of
    people, scripted players and imported matches; None is that of the models in the matches. With `rewards`, each
    game's formula gives moves rewards and weights: `decay` (γ) shares a seat's reward among its moves; without
    `role_weights` every move that is trained on weighs 1; with `positive_only` moves whose reward is not above 0 weigh
    0. With `wordings`, each row states the rules in one of this many wordings of the prompt of `style`, drawn by
    `seed`, whatever prompt the move was made with. With `reasoning` KEEP, moves have the reasoning of their model
    before them, which is trained on too. With `grounded`, the filter keeps of its seats only those that proposed their
    share of the last split named. A `control` keeps or rewards at random, by `seed`. The weight of a move is multiplied
    by `message_weight` or, if it is not a message, by `proposal_weight`. Each kept transcript is added in
    `permutations` other orders of its game's item types, drawn by `seed`.
    """

    rounds: tuple[int, ...]
    filter: str
    speakers: str = BOTH
    matches: MatchFilter = EVERYTHING
    style: str | None = None
    rewards: str = NO_REWARDS
    decay: float = DECAY
    role_weights: bool = True
    positive_only: bool = False
    models: tuple[str, ...] = ()
    wordings: int | None = None
    seed: int = 0
    reasoning: str = DROP
    grounded: bool = False
    control: str = NO_CONTROL
    message_weight: float = 1.0
    proposal_weight: float = 1.0
    permutations: int = 0

    @property
    def keeps_reasoning(self) -> bool:
        """Whether moves have their reasoning."""
        return self.reasoning == KEEP

    @property
    def is_drawn(self) -> bool:
        """Whether anything depends on the seed."""
        return is_drawn({"wordings": self.wordings, "control": self.control, "permutations": self.permutations})

    @property
    def has_rewards(self) -> bool:
        """Whether moves get rewards."""
        return self.rewards != NO_REWARDS

    @property
    def batch(self) -> MatchFilter:
        """The conditions for matches played together: means are taken over all finished matches that meet them."""
        return _only(self.matches, _BATCH)

    @property
    def choice(self) -> MatchFilter:
        """The other conditions, which select among these matches."""
        return _only(self.matches, [name for name in NAMES if name not in _BATCH])

    @property
    def outside_rounds(self) -> bool:
        """Whether only matches outside rounds are meant."""
        return not self.rounds and all(getattr(self.matches, name) is None for name in ("campaign", "source", "match"))

    @property
    def of_game_alone(self) -> bool:
        """Whether a game is the only condition for matches played together."""
        return self.outside_rounds and self.batch == MatchFilter(game=self.matches.game)

    def to_json(self) -> JSON:
        """The spec as JSON for `read_spec`. "source" is who made the moves; conditions on matches are in "matches"."""
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
            **({"models": list(self.models)} if self.models else {}),
            "reason": self.matches.reason,
            "since": chosen.get("since") and chosen["since"].isoformat(),
            "until": chosen.get("until") and chosen["until"].isoformat(),
            **({"matches": further} if further else {}),
            "style": self.style,
            **({} if self.wordings is None else {"wordings": self.wordings}),
            **({"grounded": True} if self.grounded else {}),
            **({} if self.control == NO_CONTROL else {"control": self.control}),
            **({"permutations": self.permutations} if self.permutations else {}),
            **({"seed": self.seed} if self.is_drawn else {}),
            **({} if self.message_weight == 1 else {"message_weight": self.message_weight}),
            **({} if self.proposal_weight == 1 else {"proposal_weight": self.proposal_weight}),
            **({"reasoning": self.reasoning} if self.keeps_reasoning else {}),
        }


def _only(choice: MatchFilter, names: Sequence[str]) -> MatchFilter:
    return replace(EVERYTHING, **{name: getattr(choice, name) for name in names})


class DatasetRequestSpec(JobSpec):
    """A request for a dataset: its matches, the transcripts to keep, and the rewards of their moves."""

    rounds: tuple[str, ...] = spec_field(
        "Rounds",
        "Their numbers.",
        (),
        unset="matches outside rounds, unless a campaign, a source or a match is named",
        option="round",
        metavar="R",
        widget="names",
        heading="From which matches",
        repeats=True,
        max_length=MOST_ROUNDS,
    )
    matches: MatchChoice = spec_field(
        "Matches",
        "Further conditions they must meet.",
        MatchChoice(),
        without=("status",),
        first=("game", "reason", "since", "until"),
        folded="Further conditions on matches",
    )
    filter: FilterName | None = spec_field(
        "Filter",
        "Which seats are kept: those that scored above the mean of their round, above the mean of its scores above 0,"
        " or above 0; or all. Where the lead over the partner counts (λ = −1), both seats of a deal of 0 to 0 are"
        " kept, too.",
        None,
        unset=f"{ABOVE_AVG}; {ALL} with rewards",
        labels={"": "above the mean score; with rewards all transcripts", **FILTER_LABELS},
        metavar="NAME",
        widget="radio",
        heading="Which transcripts are kept",
    )
    grounded: bool = grounded_field()
    control: Literal["none", "random_rows", "shuffled_rewards"] = control_field()
    speakers: Literal["both", "models", "people"] = spec_field(
        "Said by",
        "Only what these have said. Matches with people give rows only if all of them agreed to it.",
        BOTH,
        labels={BOTH: "people and models", MODELS: "models", PEOPLE: "people"},
        metavar="WHO",
    )
    models: tuple[str, ...] = spec_field(
        "Models",
        "Only what these models of the registry said. A player condition keeps the rows of both seats.",
        (),
        unset="any",
        option="model",
        metavar="NAME",
        widget="models",
        repeats=True,
    )
    rewards: Literal["none", "spag"] = spec_field(
        "Rewards",
        "Give each move the reward and the weight of its game’s formula, for methods that learn from rewards. Moves of"
        " losers have weight 0: they are read and not learnt.",
        NO_REWARDS,
        labels={NO_REWARDS: "none", SPAG: "by the formula of the game (SPAG)"},
        metavar="NAME",
        heading="Rewards of moves",
    )
    decay: float | None = spec_field(
        "Decay (γ)",
        "A reward is shared among a seat’s moves, each with γ times the share of the next.",
        None,
        unset=str(DECAY),
        metavar="γ",
        ge=0,
        le=1,
    )
    role_weights: bool = spec_field("Weights of roles", "Both roles count alike, however often each wins.", True)
    positive_only: bool = spec_field("Positive rewards only", "Moves with a reward of 0 or less weigh 0.", False)
    message_weight: float = weight_field("messages", "With 0 they are read and not learnt.")
    proposal_weight: float = weight_field(
        "proposals", "Proposals are all moves other than messages, including declarations."
    )
    style: str | None = spec_field(
        "Prompt style",
        "For moves made without a prompt: by people, scripted players and in imports.",
        None,
        unset="that of the models in the matches, if all were prompted alike; or full",
        metavar="NAME",
        widget="known",
        of="styles",
        heading="Prompts and name",
    )
    wordings: int | None = spec_field(
        "Wordings of the rules",
        "Each row states the rules in one of this many wordings, whatever prompt the move was made with. Rows that"
        " state others than were played lose the tokens that were sampled.",
        None,
        unset="as played",
        metavar="N",
        ge=2,
        le=MOST_WORDINGS,
    )
    permutations: int = permutations_field()
    seed: int | None = spec_field(
        "Seed", "For the wordings, a control and other orders.", None, unset="0", metavar="S", ge=0, lt=2**32
    )
    reasoning: Literal["drop", "keep"] = spec_field(
        "Reasoning",
        "Whether a move includes its model’s preceding reasoning, which is then learnt too.",
        DROP,
        labels={DROP: "moves only", KEEP: "moves with the reasoning before them"},
        metavar="HOW",
    )
    name: str | None = spec_field(
        "Name", "An existing name makes its next version.", None, unset="rounds and filter", metavar="NAME"
    )

    @classmethod
    def only_with(cls) -> Mapping[str, tuple[str, Collection[str]]]:
        """The fields that apply only with rewards."""
        return dict.fromkeys(("decay", "role_weights", "positive_only"), ("rewards", [SPAG]))

    @model_validator(mode="after")
    def _fields_fit_each_other(self) -> Self:
        if self.seed is not None and not is_drawn(self.model_dump(include={"wordings", "control", "permutations"})):
            expected = Phrase("wordings, a control or other orders of the item types beside it")
            raise Invalid("seed", expected=expected, got=Phrase("none of them"))
        check_control(self.control, self.rewards, self.given_filter, grounded=self.grounded)
        alone = {"decay": self.decay is not None, "role_weights": not self.role_weights}
        for field in (name for name, given in {**alone, "positive_only": self.positive_only}.items() if given):
            if self.rewards == NO_REWARDS:
                raise Invalid(field, expected=Phrase("rewards beside it"), got=Phrase("none"))
        _ = self.cut
        return self

    @property
    def given_filter(self) -> str:
        """The filter; with rewards the default keeps all, because their weights determine what is trained on."""
        return self.filter or (ABOVE_AVG if self.rewards == NO_REWARDS else ALL)

    @property
    def cut(self) -> DatasetSpec:
        """The request as a DatasetSpec. Raises NotFound for an unknown game, and Invalid if no dataset can be built
        from it.
        """
        given = {name: str(value) for name, value in self.matches.model_dump(exclude_none=True).items()}
        speakers: str = self.speakers
        if given.get("source") in SPEAKERS and speakers == BOTH:  # `source` meant speakers in earlier releases
            speakers = given.pop("source")
        with refusals_within("matches"):
            choice = read_choice(given)
        rounds = sorted({whole_number(number, "rounds", 1, 2**31 - 1) for number in self.rounds})
        if choice.status not in (None, OVER):
            expected = Phrase("%(over)s, as only finished matches give rows", over=OVER)
            raise Invalid("matches.status", expected=expected, got=choice.status)
        if not rounds and choice.match is None and _only(choice, _BATCH) == EVERYTHING:
            raise Invalid(
                "rounds",
                expected=Phrase("the number of a round or a campaign, or a game for its matches outside rounds"),
                got=Phrase("neither"),
            )
        same = self.model_dump(
            include={"style", "rewards", "role_weights", "positive_only", "wordings", "reasoning"} | {*OF_ROWS}
        )
        return DatasetSpec(
            rounds=tuple(rounds),
            filter=self.given_filter,
            speakers=speakers,
            matches=replace(choice, status=None),
            decay=DECAY if self.decay is None else self.decay,
            models=tuple(sorted({*self.models})),
            seed=self.seed or 0,
            **same,
        )


def request_of(stored: Mapping[str, Any]) -> DatasetRequestSpec:
    """The request from JSON written by `DatasetSpec.to_json`, in this release or an earlier one.

    Conditions on matches are beside the other fields or in "matches"; "source" may be who made the moves; a single one
    of the "models" may be a "model". Raises as DatasetRequestSpec.read does.
    """
    given = {**stored}
    if given.get("source") in SPEAKERS:
        given.setdefault("speakers", given.pop("source"))
    fields = {name: given[name] for name in fields_of(DatasetRequestSpec) if name in given}
    if model := given.get("model"):
        fields["models"] = [*given.get("models", ()), model]
    fields |= {name: value == "yes" for name, value in fields.items() if value in ("yes", "no")}
    named = {**given, **(given.get("matches") or {})}
    choice = {name: str(named[name]) for name in fields_of(MatchChoice) if named.get(name) is not None}
    return DatasetRequestSpec.read({**fields, "rounds": [*map(str, given.get("rounds") or ())], "matches": choice})


def read_spec(stored: Mapping[str, Any]) -> DatasetSpec:
    """The spec from such JSON. Raises as `request_of` does."""
    return request_of(stored).cut
