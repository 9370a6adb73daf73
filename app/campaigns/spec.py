"""What a campaign is to do: read from a command line, a form or JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from app.campaigns.partners import PlayPartner, matches_against, read_play_partners
from app.core.errors import Invalid, NotFound, Phrase, either
from app.core.validation import whole_number
from app.datasets.filters import ABOVE_AVG
from app.datasets.rewards import formula_of
from app.datasets.spec import NO_REWARDS, REWARDS, SPAG, DatasetSpec
from app.datasets.spec import read_spec as read_dataset_spec
from app.games import find_game
from app.games.base import JSON, Game
from app.games.rewards import DECAY
from app.rounds.sampling import read_sampling
from training.methods import all_methods
from training.methods.base import Need

METHODS = tuple(
    name for name, method in all_methods().items() if method.goes_on_from_base and Need.COMPARISONS not in method.needs
)
PREVIOUS, BASE = "previous", "base"
STARTS = (PREVIOUS, BASE)
LAST, ALL_ROUNDS = "last", "all"
DATA_OF = (LAST, ALL_ROUNDS)
EACH_ONCE = "all"  # matches: one for each piece of the material that is played with
TRAINING: Mapping[str, Any] = {"epochs": 12, "learning_rate": 1e-3}  # what the small models need; large ones want less
MOST_ITERATIONS, MOST_MATCHES = 100, 100_000
MOST_PARTNERS = 4  # in evaluations: beside the other conditions each has a colour of its own in the figure
GREEDY, PARTNER = 0.0, "scripted"  # what every model is evaluated with beside itself, unless another is named
NONE = "none"
NOBODY = (None, "", NONE)
_OF_REWARDS = ("decay", "role_weights", "positive_only")


class EvaluationSpec(NamedTuple):
    """How every model is evaluated. No partner: against itself; no label: as its campaign's rounds are played."""

    label: str
    sampling: JSON
    partner: str | None


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """A loop: `iterations` times `matches` of the newest model, a dataset by `filter`, a training by `method`.

    Each iteration's model goes on from the `previous` one or from the `base`, and learns from the rows of the `last`
    round or of `all` rounds so far (`data_of`). All are evaluated on the same held-out material, `evaluation` matches
    each, in the manner in which the rounds are played. `training` are fields of `python -m training METHOD`, `sampling`
    holds for both playing and evaluating. `matches` of 0 is one for each piece of material, until the campaign is
    created.

    Shares of the matches are played against the partners of `play_with`, from either seat, and the rest against the
    model itself; only what the model itself said is learnt. With `rewards`, datasets have those that `decay`,
    `role_weights` and `positive_only` say.

    Before these iterations there may be one more, which learns by `start_method` with the fields `start_training`:
    from the dataset of the number `start_data`, or from what seats that scored above 0 said in a round of the `teacher`
    against itself.

    The supervised rows of the dataset of the number `sft_data` are mixed into each training of a method that can.

    Further evaluations tell what holds in that manner alone from what the model has learned: the same matches at
    `evaluation_temperature`, and as many against each of `partners`, with the seats swapped half of the time.
    """

    game: str
    base: str
    iterations: int
    matches: int
    evaluation: int
    seed: int
    filter: str = ABOVE_AVG
    method: str = METHODS[0]
    start: str = PREVIOUS
    config: JSON = field(default_factory=dict)
    training: JSON = field(default_factory=dict)
    sampling: JSON = field(default_factory=dict)
    evaluation_temperature: float | None = None
    partners: tuple[str, ...] = ()
    data_of: str = LAST
    rewards: str = NO_REWARDS
    decay: float = DECAY
    role_weights: bool = True
    positive_only: bool = False
    play_with: tuple[PlayPartner, ...] = ()
    start_data: int | None = None
    teacher: str | None = None
    start_method: str = METHODS[0]
    start_training: JSON = field(default_factory=dict)
    sft_data: int | None = None

    def to_json(self) -> JSON:
        """All fields; `partner`, which was the only one before there could be several, is the first of them."""
        return {**asdict(self), "partner": next(iter(self.partners), None)}

    @property
    def has_start(self) -> bool:
        """Whether the first iteration learns from a dataset or a teacher."""
        return self.start_data is not None or self.teacher is not None

    @property
    def total(self) -> int:
        """How many iterations there are in all."""
        return self.iterations + self.has_start

    def is_start(self, number: int) -> bool:
        """Whether the iteration of that number learns from a dataset or a teacher."""
        return self.has_start and number == 1

    @property
    def matches_against(self) -> Mapping[str, int]:
        """How many matches of a round are played against each partner; an even number."""
        return matches_against(self.play_with, self.matches)

    @property
    def as_played(self) -> EvaluationSpec:
        """The first evaluation: in the manner in which the rounds are played."""
        return EvaluationSpec("", self.sampling, None)

    @property
    def further(self) -> Sequence[EvaluationSpec]:
        """The further evaluations, in their order."""
        found: list[EvaluationSpec] = []
        temperature = self.evaluation_temperature
        if temperature is not None and temperature != self.sampling.get("temperature"):
            label = "greedy" if temperature == 0 else f"temperature {temperature:g}"
            found.append(EvaluationSpec(label, {**self.sampling, "temperature": temperature}, None))
        found += [EvaluationSpec(f"against {partner}", self.sampling, partner) for partner in self.partners]
        return found


def needs_rewards(method: str) -> bool:
    """Whether a method learns from rewards."""
    return Need.REWARDS in all_methods()[method].needs


def mixes_supervised_rows(method: str) -> bool:
    """Whether rows of a second dataset can be mixed into a training by a method."""
    return all_methods()[method].mixes_supervised_rows


def usual_training(method: str) -> Mapping[str, Any]:
    """The fields of a training that differ from the method's own defaults where nobody says otherwise."""
    return {} if needs_rewards(method) else TRAINING


def read_spec(raw: Mapping[str, Any], seed: int) -> CampaignSpec:
    """A spec from what was typed; empty fields get their defaults, and `seed` stands for one that was not given.

    Raises NotFound for an unknown game, and Invalid for all else that is no campaign.
    """
    given = {name: value for name, value in raw.items() if value not in (None, "")}
    game = find_game(str(given.get("game", "")))
    if "base" not in given:
        raise NotFound(
            "base",
            expected=Phrase("the name of a model to start from"),
            got=Phrase("none"),
            remedy=Phrase("`flask model list` shows them"),
        )
    config = dict(given.get("config") or {})
    game.config(config)
    if drawn := set(game.drawn) & set(config):
        raise Invalid(
            "config",
            expected=Phrase("what all matches share"),
            got=Phrase("%(value)s, of which each match has its own", value=min(drawn)),
        )
    method = _method("method", given)
    cut = _cut(game, method, given)
    start_data, teacher, start_method = _read_start(given)
    return CampaignSpec(
        game=game.name,
        base=str(given["base"]),
        iterations=whole_number(given.get("iterations", 5), "rounds", 1, MOST_ITERATIONS),
        matches=_read_matches(given.get("matches", 500)),
        evaluation=whole_number(given.get("evaluation", 500), "evaluation", 2, MOST_MATCHES),
        seed=whole_number(given.get("seed", seed), "seed", 0, 2**62),
        filter=cut.filter,
        method=method,
        start=_known("start", given.get("start", PREVIOUS), STARTS),
        config=config,
        training={**usual_training(method), **(given.get("training") or {})},
        sampling=_sampling(game, given.get("sampling") or {}),
        evaluation_temperature=_evaluation_temperature(raw.get("evaluation_temperature", GREEDY)),
        partners=_partners(raw.get("partner", PARTNER)),
        data_of=_data_of(method, given),
        rewards=cut.rewards,
        decay=cut.decay,
        role_weights=cut.role_weights,
        positive_only=cut.positive_only,
        play_with=read_play_partners(given.get("play_with") or ()),
        start_data=start_data,
        teacher=teacher,
        start_method=start_method,
        start_training={**usual_training(start_method), **(given.get("start_training") or {})},
        sft_data=None if given.get("sft_data") in NOBODY else whole_number(given["sft_data"], "sft_data", 1, 2**31 - 1),
    )


def spec_of(stored: Mapping[str, Any]) -> CampaignSpec:
    """The spec that `to_json` gave, in this release or before."""
    known = {name: stored[name] for name in CampaignSpec.__dataclass_fields__ if name in stored}
    known["partners"] = tuple(stored.get("partners", [stored["partner"]] if stored.get("partner") else ()))
    known["play_with"] = tuple(PlayPartner(*each) for each in stored.get("play_with", ()))
    return CampaignSpec(**known)


# ---- Fields ----------------------------------------------------------------------


def _known(name: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise Invalid(name, expected=either(known), got=value)
    return str(value)


def _method(name: str, given: Mapping[str, Any]) -> str:
    value = given.get(name, METHODS[0])
    method = all_methods().get(value)
    if method is not None and Need.COMPARISONS in method.needs:
        got = Phrase("%(method)s, which learns from comparisons, and not from what was played", method=value)
        raise Invalid(name, expected=either(METHODS), got=got)
    return _known(name, value, METHODS)


def _cut(game: Game[Any], method: str, given: Mapping[str, Any]) -> DatasetSpec:
    """How datasets are cut: by a filter, and with rewards if a method learns from them. Raises Invalid."""
    rewards = _known("rewards", given.get("rewards", SPAG if needs_rewards(method) else NO_REWARDS), REWARDS)
    if rewards == NO_REWARDS and needs_rewards(method):
        raise Invalid("rewards", expected=Phrase("those that %(method)s learns from", method=method), got=rewards)
    if rewards == NO_REWARDS and (extra := next((name for name in _OF_REWARDS if name in given), None)):
        raise Invalid(extra, expected=Phrase("it with rewards"), got=Phrase("it without"))
    if rewards != NO_REWARDS:
        formula_of(game.name)
    fields = {name: given.get(name) for name in ("filter", *_OF_REWARDS)}
    return read_dataset_spec({"rounds": [1], "rewards": rewards, **fields})


def _data_of(method: str, given: Mapping[str, Any]) -> str:
    found = _known("data_of", given.get("data_of", LAST), DATA_OF)
    if found == ALL_ROUNDS and needs_rewards(method):
        raise Invalid(
            "data_of",
            expected=Phrase(
                "%(last)s with %(method)s, whose rows one model has to have played", last=LAST, method=method
            ),
            got=found,
        )
    return found


def _read_start(given: Mapping[str, Any]) -> tuple[int | None, str | None, str]:
    """The dataset or the teacher that the first iteration learns from, if any, and the method. Raises Invalid."""
    number, teacher = (None if given.get(name) in NOBODY else given[name] for name in ("start_data", "teacher"))
    method = _method("start_method", given)
    if number is not None and teacher is not None:
        raise Invalid("teacher", expected=Phrase("a teacher or a dataset to start from"), got=Phrase("both"))
    if teacher is not None and needs_rewards(method):
        raise Invalid(
            "start_method",
            expected=either(name for name in METHODS if not needs_rewards(name)),
            got=Phrase("%(method)s, which learns only from what the base itself has played", method=method),
        )
    start_data = None if number is None else whole_number(number, "start_data", 1, 2**31 - 1)
    return start_data, None if teacher is None else str(teacher), method


def _read_matches(raw: Any) -> int:
    return 0 if raw == EACH_ONCE else whole_number(raw, "matches", 2, MOST_MATCHES)


def _sampling(game: Game[Any], raw: Mapping[str, Any]) -> JSON:
    """How the rounds are sampled: as the game's paper did unless it is given; "none" leaves it to the model's row."""
    wanted = {**game.sampling, **{name: value for name, value in raw.items() if value not in (None, "")}}
    return read_sampling({name: None if value == NONE else value for name, value in wanted.items()})


def _partners(raw: Any) -> tuple[str, ...]:
    """The players that every model is evaluated against. Raises Invalid for too many."""
    names = [raw] if raw is None or isinstance(raw, str) else raw
    found = tuple(dict.fromkeys(str(name) for name in names if name not in NOBODY))
    if len(found) > MOST_PARTNERS:
        raise Invalid("partner", expected=Phrase("at most %(most)s of them", most=MOST_PARTNERS), got=len(found))
    return found


def _evaluation_temperature(raw: Any) -> float | None:
    """A temperature, or that none is wanted beside that of the rounds."""
    if raw in NOBODY:
        return None
    try:
        return float(read_sampling({"temperature": raw})["temperature"])
    except Invalid:
        raise Invalid(
            "evaluation_temperature", expected=Phrase("a number from 0 (greedy) to 2, or %(word)s", word=NONE), got=raw
        ) from None
