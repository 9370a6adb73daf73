"""The settings of a campaign: to play, filter, train and evaluate, again and again."""

import secrets
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from app.campaigns.partners import EQUAL, matches_against, shares_of
from app.campaigns.presets import PRESETS, with_preset
from app.campaigns.sampling import NONE, CampaignSampling, Temperature
from app.core.errors import Invalid, Phrase, either, refusals_within
from app.core.validation import LARGEST_SEED
from app.datasets.filters import ABOVE_AVG, ALL
from app.datasets.row_fields import (
    FILTER_LABELS,
    OF_ROWS,
    FilterName,
    check_control,
    control_field,
    grounded_field,
    permutations_field,
    weight_field,
)
from app.finetuning.config import SFT_DATA, read_config
from app.games import find_game, formula_of, permutations_of
from app.games.base import JSON
from app.games.rewards import DECAY, NO_REWARDS, SPAG
from app.jobs.spec import PRESET, JobBudget, JobSpec, budget_field, mapping_of_pairs, spec_field
from app.rounds.spec import leniency_field, material_field
from training.methods import all_methods
from training.methods.base import CONVERSATIONS, Need

METHODS = tuple(
    name for name, method in all_methods().items() if method.goes_on_from_base and Need.COMPARISONS not in method.needs
)
PREVIOUS, BASE = "previous", "base"
LAST, ALL_ROUNDS = "last", "all"
MOST_MATCHES = 100_000
MOST_PARTNERS = 4  # in evaluations: each needs its own colour in the figure, beside the other conditions
PARTNER = "scripted"  # every model is evaluated against it, unless another is named
_IMITATION = {"epochs": 12, "learning_rate": 1e-3}  # what the small models need; large ones want less
_REWARDED = tuple(name for name in METHODS if Need.REWARDS in all_methods()[name].needs)
_METHOD = {"metavar": "|".join(METHODS), "widget": "registry", "registry": "campaign-methods"}
_TRAINING: Mapping[str, Any] = {
    "widget": "training",
    "boxes": ("epochs", "learning_rate", "batch"),  # its fields that have their own box in the form
    "usual": {name: {} if name in _REWARDED else _IMITATION for name in METHODS},
    "metavar": "K=V",
    "unset": " ".join(f"{name}={value:g}" for name, value in _IMITATION.items()) + "; with rewards the method’s own",
}
_DATASET: Mapping[str, Any] = {
    "unset": "none",
    "widget": "dataset",
    "kind": CONVERSATIONS,
    "metavar": "DATASET",
}
_OF_REWARDS = {"decay": None, "role_weights": True, "positive_only": False}  # fields only for rewards
FIRST_FIELDS = ("partner", "source")  # of the first version, with other names since
START_FIELDS = {"start_method": METHODS[0], "start_training": {}}  # fields only for the steps before the rounds

Matches = Annotated[int, Field(ge=2, le=MOST_MATCHES)] | Literal["all"]
Share = Annotated[float, Field(gt=0, lt=1)] | Literal["equal"]


class EvaluationSpec(NamedTuple):
    """How every model is evaluated. No partner: against itself; no label: as its campaign's rounds are played."""

    label: str
    sampling: JSON
    partner: str | None


class CampaignSpec(JobSpec):
    """What is played, learnt and evaluated, how often, and what comes before.

    Each iteration's model is trained from the `previous` one or from the `base`, and learns from the rows of the `last`
    round or of `all` rounds so far. Shares of the matches are played against partners, from either seat, and the rest
    against the model itself; only what the model itself said is learnt. All models are evaluated on the same held-out
    material: as they play, at another temperature, and against each of some opponents with the seats swapped half of
    the time.
    """

    model_config = ConfigDict(validate_default=True)
    version: ClassVar[int] = 3
    presets: ClassVar = {name: each.fields for name, each in PRESETS.items()}

    game: str = spec_field("Game", "Its name.", metavar="GAME", widget="game", heading="The loop")
    base: str = spec_field(
        "Base", "The local model that the first iteration begins with.", metavar="MODEL", widget="model", use="learner"
    )
    iterations: int = spec_field(
        "Iterations", "Each plays, filters, trains and evaluates.", 5, option="rounds", metavar="N", ge=1, le=100
    )
    matches: Matches = spec_field(
        "Matches of a round",
        "The newest model’s, in each iteration; all: one for each piece of the material.",
        500,
        metavar="N",
    )
    start: Literal["previous", "base"] = spec_field(
        "Each training starts from",
        "Whose weights a new model begins with.",
        PREVIOUS,
        metavar="previous|base",
        labels={PREVIOUS: "the model before", BASE: "the base"},
    )
    data_of: Literal["last", "all"] = spec_field(
        "Learns from",
        "Methods that learn from rewards use only the last round, as one model must have played all rows.",
        LAST,
        metavar="last|all",
        labels={LAST: "the last round", ALL_ROUNDS: "all rounds so far"},
    )
    evaluation: int = spec_field(
        "Matches of an evaluation",
        "The same for every model, on material that nothing is trained on.",
        500,
        metavar="N",
        ge=2,
        le=MOST_MATCHES,
    )
    evaluation_temperature: Temperature = spec_field(
        "Also evaluated at the temperature",
        "0 is greedy: always the likeliest word; none: not at all.",
        0.0,
        empty="not at all",
        metavar="T",
    )
    partners: tuple[str, ...] = spec_field(
        "Also evaluated against",
        "Fixed opponents, four at most. Figures against them are the model’s own, in each role.",
        (PARTNER,),
        option="partner",
        widget="models",
        use="player",
        metavar="MODEL",
        note="none: nobody",
        max_length=MOST_PARTNERS,
    )
    play_with: Mapping[str, Share] = spec_field(
        "Plays with",
        "Models with their share of each round’s matches, above 0 and below 1 in all; equal: as much as with itself."
        " Seats are swapped, and nothing that a partner says is learnt.",
        {},
        widget="shares",
        use="player",
        metavar="MODEL[=SHARE]",
        share=EQUAL,
    )
    start_data: str | None = spec_field(
        "Starts with the dataset",
        "An extra first iteration learns from it: imported, from people’s matches, or any other with conversations. Its"
        " number, its name (the latest version), or name@version.",
        None,
        heading="What comes before the rounds",
        **_DATASET,
    )
    teacher: str | None = spec_field(
        "Starts with a teacher",
        "An extra first iteration learns from the seats that scored above 0 when this stronger model played itself.",
        None,
        unset="none",
        widget="model",
        use="player",
        metavar="MODEL",
    )
    start_method: str = spec_field(
        "How it learns from that", "Rewards need matches that the base itself played.", METHODS[0], **_METHOD
    )
    start_training: dict[str, Any] = spec_field(
        "Further fields of that training",
        "One a line, such as accumulation = 4.",
        {},
        option="start-train",
        chosen="start_method",
        prefix="start_",
        **_TRAINING,
    )
    config: Mapping[str, Any] = spec_field(
        "Settings of the game", "Such as objective=coop.", {}, widget="options", metavar="K=V", heading="What is played"
    )
    lenient: bool = leniency_field()
    sampling: CampaignSampling = spec_field("Sampling", "For all models.", CampaignSampling())
    material: str | None = material_field(
        note=", of which a tenth is held out",
        hint="One in ten is held out for the evaluations.",
    )
    method: str = spec_field(
        "Method",
        "How each model learns from what was played.",
        METHODS[0],
        **_METHOD,
        heading="How each model is trained",
    )
    filter: FilterName | None = spec_field(
        "Kept transcripts",
        "What a model learns from.",
        None,
        unset="above the mean score; with rewards all transcripts",
        metavar="NAME",
        labels=FILTER_LABELS,
    )
    grounded: bool = grounded_field()
    control: Literal["none", "random_rows", "shuffled_rewards"] = control_field()
    message_weight: float = weight_field("messages", "With 0 they are read and not learnt.")
    proposal_weight: float = weight_field(
        "proposals", "Proposals are all moves other than messages, including declarations."
    )
    permutations: int = permutations_field()
    rewards: Literal["none", "spag"] | None = spec_field(
        "Rewards",
        "What moves are worth.",
        None,
        unset="by the formula of the game if the method learns from rewards, else none",
        metavar="NAME",
        labels={NO_REWARDS: "none", SPAG: "by the formula of the game (SPAG)"},
    )
    decay: float | None = spec_field(
        "Decay (γ)",
        "Of rewards: from 0 to 1; each move has γ times the share of the one after it.",
        None,
        unset=str(DECAY),
        metavar="γ",
        ge=0,
        le=1,
    )
    role_weights: bool = spec_field(
        "Both roles weigh the same", "Where there are rewards: however often each wins.", True
    )
    positive_only: bool = spec_field("Rewards above 0 only", "All other moves are read and not learnt.", False)
    training: dict[str, Any] = spec_field(
        "Further fields of each training",
        "One a line, such as accumulation = 4.",
        {},
        option="train",
        chosen="method",
        **_TRAINING,
    )
    sft_data: str | None = spec_field(
        "Supervised rows", "A dataset of conversations that is mixed into each training.", None, **_DATASET
    )
    name: str = spec_field(
        "Name",
        "Its models are called NAME-1, NAME-2 and so on.",
        "",
        unset="base, objective and a number",
        metavar="NAME",
        max_length=80,
        once=True,
        heading="Name and seed",
    )
    seed: int = spec_field(
        "Seed",
        "Rounds, evaluations and trainings follow from it.",
        default_factory=partial(secrets.randbits, 62),
        unset="drawn",
        metavar="S",
        ge=0,
        le=LARGEST_SEED,
    )
    budget: JobBudget = budget_field()

    @classmethod
    def only_with(cls) -> Mapping[str, tuple[str, Collection[str]]]:
        """Fields that need another: not every campaign has rewards, nor does every method mix in supervised rows."""
        mixing = [name for name in METHODS if all_methods()[name].mixes_supervised_rows]
        return {**dict.fromkeys(_OF_REWARDS, ("rewards", ("", SPAG))), SFT_DATA: ("method", mixing)}

    # ---- Reading -------------------------------------------------------------------

    @classmethod
    def read(cls, raw: Mapping[str, Any], at: str = "") -> Self:
        """As for every spec, but `none` stands for no opponent, teacher or dataset, as on the command line."""
        given = {name: value for name, value in raw.items() if value not in (None, "")}
        for name in ("start_data", "teacher", SFT_DATA):
            if given.get(name) == NONE:
                del given[name]
        if isinstance(partners := given.get("partners"), list | tuple) and all(
            isinstance(name, str) for name in partners
        ):
            given["partners"] = [*dict.fromkeys(name for name in partners if name != NONE)]
        if preset := given.pop(PRESET, None):
            given = with_preset(preset, given, starts="start_data" in given or "teacher" in given)
        if "base" not in given:
            expected, remedy = Phrase("the name of a model to start from"), Phrase("`flask model list` shows them")
            raise Invalid("base", expected=expected, got=Phrase("none"), remedy=remedy)
        return super().read(given, at)

    @classmethod
    def of_version(cls, before: int, fields: dict[str, Any]) -> dict[str, Any]:
        """The first version had one or several partners, and pairs of partners and shares.

        It had null and defaults for what was not given, and left out the sampling options that were not used. The
        second read no move leniently.
        """
        if before == 2:
            return {"lenient": False, **fields}
        found = {name: value for name, value in fields.items() if name not in FIRST_FIELDS}
        partners, play_with = fields.get("partners", [fields.get("partner")]), fields.get("play_with", [])
        temperature, sampling = fields.get("evaluation_temperature"), fields.get("sampling", {})
        if isinstance(sampling, Mapping):
            sampling = {**dict.fromkeys(CampaignSampling.model_fields, NONE), **sampling}
        found |= {
            "partners": [name for name in partners if name] if isinstance(partners, list) else partners,
            "play_with": mapping_of_pairs(play_with),
            "evaluation_temperature": NONE if temperature is None else temperature,
            "sampling": sampling,
        }
        if "source" in fields:
            found["material"] = fields["source"]
        if fields.get("rewards", NO_REWARDS) == NO_REWARDS:
            found = {name: value for name, value in found.items() if name not in ("rewards", *_OF_REWARDS)}
        if fields.get("start_data") is None and fields.get("teacher") is None:
            found = {name: value for name, value in found.items() if name not in START_FIELDS}
        return found

    @field_validator("game")
    @classmethod
    def _game_is_known(cls, name: str) -> str:
        return find_game(name).name

    @field_validator("sampling")
    @classmethod
    def _sampled_as_usual(cls, given: CampaignSampling, info: ValidationInfo) -> CampaignSampling:
        return given.of_game(info.data["game"]) if "game" in info.data else given

    @field_validator("method", "start_method")
    @classmethod
    def _method_can_be(cls, name: str, info: ValidationInfo) -> str:
        if name in METHODS:
            return name
        known = all_methods().get(name)
        if known is not None and Need.COMPARISONS in known.needs:
            comparing = Phrase("%(method)s, which learns from comparisons, and not from what was played", method=name)
            raise Invalid(info.field_name, expected=either(METHODS), got=comparing)
        raise Invalid(info.field_name, expected=either(METHODS), got=name)

    @field_validator("training", "start_training")
    @classmethod
    def _fields_are_those_of_the_method(cls, given: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """The training fields, with the usual values of campaigns for those not given."""
        start = info.field_name == "start_training"
        method = info.data.get("start_method" if start else "method")
        if method is None or (start and info.data.get("start_data") is None and info.data.get("teacher") is None):
            return given
        with refusals_within(str(info.field_name)):
            return read_config(method, {**_TRAINING["usual"][method], **given})

    @model_validator(mode="after")
    def _fields_fit_each_other(self) -> Self:
        game = find_game(self.game)
        with refusals_within("config"):
            game.config(dict(self.config))
        if drawn := set(game.drawn) & set(self.config):
            got = Phrase("%(value)s, of which each match has its own", value=min(drawn))
            raise Invalid("config", expected=Phrase("what all matches share"), got=got)
        if self.permutations:
            permutations_of(self.game)
        self._check_rewards()
        self._check_start()
        _ = self.shares
        return self

    def _check_rewards(self) -> None:
        if self.given_rewards != NO_REWARDS:
            formula_of(self.game)
        elif needs_rewards(self.method):
            expected = Phrase("those that %(method)s learns from", method=self.method)
            raise Invalid("rewards", expected=expected, got=self.rewards)
        elif field := next((name for name, usual in _OF_REWARDS.items() if getattr(self, name) != usual), None):
            raise Invalid(field, expected=Phrase("it with rewards"), got=Phrase("it without"))
        check_control(self.control, self.given_rewards, self.kept, grounded=self.grounded)
        if self.data_of == ALL_ROUNDS and needs_rewards(self.method):
            template = "%(last)s with %(method)s, whose rows one model has to have played"
            raise Invalid("data_of", expected=Phrase(template, last=LAST, method=self.method), got=self.data_of)

    def _check_start(self) -> None:
        if self.start_data is not None and self.teacher is not None:
            raise Invalid("teacher", expected=Phrase("a teacher or a dataset to start from"), got=Phrase("both"))
        if self.teacher is not None and needs_rewards(self.start_method):
            known = either(name for name in METHODS if not needs_rewards(name))
            got = Phrase("%(method)s, which learns only from what the base itself has played", method=self.start_method)
            raise Invalid("start_method", expected=known, got=got)
        given = (name for name in ("start_training", "start_method") if getattr(self, name) != START_FIELDS[name])
        if not self.has_start and (field := next(given, None)):
            raise Invalid(field, expected=Phrase("a teacher or a dataset to start from"), got=Phrase("neither"))

    # ---- What follows from it --------------------------------------------------------

    @property
    def given_rewards(self) -> str:
        """The rewards of moves, which are present in any case if a method learns from them."""
        return self.rewards or (SPAG if needs_rewards(self.method) else NO_REWARDS)

    @property
    def kept(self) -> str:
        """The filter of the datasets; with rewards everything is kept by default, as weights decide what is learnt."""
        return self.filter or (ABOVE_AVG if self.given_rewards == NO_REWARDS else ALL)

    @property
    def of_rows(self) -> JSON:
        """The settings of its datasets' rows besides the filter, as far as they differ from the defaults."""
        return {name: value for name, usual in OF_ROWS.items() if (value := getattr(self, name)) != usual}

    @property
    def given_decay(self) -> float:
        """How rewards are shared among moves."""
        return DECAY if self.decay is None else self.decay

    @property
    def has_start(self) -> bool:
        """Whether the first iteration learns from a dataset or a teacher."""
        return self.start_data is not None or self.teacher is not None

    @property
    def total(self) -> int:
        """The total number of iterations."""
        return self.iterations + self.has_start

    def is_start(self, number: int) -> bool:
        """Whether the iteration of that number learns from a dataset or a teacher."""
        return self.has_start and number == 1

    @property
    def shares(self) -> Mapping[str, float]:
        """The share of a round's matches that are played against each partner. Raises Invalid."""
        return shares_of(self.play_with)

    @property
    def matches_of_round(self) -> int:
        """The number of matches in a round; 0 until the amount of material is known."""
        return self.matches if isinstance(self.matches, int) else 0

    @property
    def matches_against(self) -> Mapping[str, int]:
        """The number of a round's matches that are played against each partner; even."""
        return matches_against(self.shares, self.matches_of_round)

    @property
    def as_played(self) -> EvaluationSpec:
        """The first evaluation: in the manner in which the rounds are played."""
        return EvaluationSpec("", self.sampling.options(), None)

    @property
    def further(self) -> Sequence[EvaluationSpec]:
        """The further evaluations, in their order."""
        found: list[EvaluationSpec] = []
        temperature, sampling = self.evaluation_temperature, self.sampling.options()
        if isinstance(temperature, float) and temperature != sampling.get("temperature"):
            label = "greedy" if temperature == 0 else f"temperature {temperature:g}"
            found.append(EvaluationSpec(label, {**sampling, "temperature": temperature}, None))
        found += [EvaluationSpec(f"against {partner}", sampling, partner) for partner in self.partners]
        return found


def needs_rewards(method: str) -> bool:
    """Whether a method learns from rewards."""
    return method in _REWARDED
