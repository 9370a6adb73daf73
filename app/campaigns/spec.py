"""What a campaign is to do: read from a command line, a form or JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from app.datasets.filters import ABOVE_AVG, FILTERS
from app.errors import Invalid, NotFound, Phrase, either
from app.games import find_game
from app.games.base import JSON
from app.rounds.sampling import read_sampling
from app.validation import whole_number
from training.methods import all_methods

METHODS = tuple(name for name, method in all_methods().items() if method.goes_on_from_base and not method.needs)
PREVIOUS, BASE = "previous", "base"
STARTS = (PREVIOUS, BASE)
TRAINING: Mapping[str, Any] = {"epochs": 12, "learning_rate": 1e-3}  # what the small models need; large ones want less
MOST_ITERATIONS, MOST_MATCHES = 100, 100_000
GREEDY, PARTNER = 0.0, "scripted"  # what every model is evaluated with beside itself, unless another is named
NONE = "none"
NOBODY = (None, "", NONE)


class EvaluationSpec(NamedTuple):
    """How every model is evaluated. No partner: against itself; no label: as its campaign's rounds are played."""

    label: str
    sampling: JSON
    partner: str | None


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """A loop: `iterations` times `matches` of the newest model against itself, a dataset by `filter`, a training.

    Each iteration's model goes on from the `previous` one or from the `base`. All are evaluated on the same held-out
    material, `evaluation` matches each, in the manner in which the rounds are played. `training` are fields of
    `python -m training METHOD`, `sampling` holds for both playing and evaluating.

    Two further evaluations tell what holds in that manner alone from what the model has learned: the same matches at
    `evaluation_temperature`, and as many against `partner`, whom no model of the campaign meets in its rounds, with the
    seats swapped half of the time. None leaves one out, as in campaigns of before there were any.
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
    partner: str | None = None

    def to_json(self) -> JSON:
        return asdict(self)

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
        if self.partner is not None:
            found.append(EvaluationSpec(f"against {self.partner}", self.sampling, self.partner))
        return found


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
    return CampaignSpec(
        game=game.name,
        base=str(given["base"]),
        iterations=whole_number(given.get("iterations", 5), "rounds", 1, MOST_ITERATIONS),
        matches=whole_number(given.get("matches", 500), "matches", 2, MOST_MATCHES),
        evaluation=whole_number(given.get("evaluation", 500), "evaluation", 2, MOST_MATCHES),
        seed=whole_number(given.get("seed", seed), "seed", 0, 2**62),
        filter=_known("filter", given.get("filter", ABOVE_AVG), FILTERS),
        method=_known("method", given.get("method", METHODS[0]), METHODS),
        start=_known("start", given.get("start", PREVIOUS), STARTS),
        config=config,
        training={**TRAINING, **(given.get("training") or {})},
        sampling=read_sampling(given.get("sampling") or {}),
        evaluation_temperature=_evaluation_temperature(raw.get("evaluation_temperature", GREEDY)),
        partner=None if (partner := raw.get("partner", PARTNER)) in NOBODY else str(partner),
    )


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


def spec_of(stored: Mapping[str, Any]) -> CampaignSpec:
    """The spec that `to_json` gave, in this release or before."""
    return CampaignSpec(**{name: stored[name] for name in CampaignSpec.__dataclass_fields__ if name in stored})


def _known(name: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise Invalid(name, expected=either(known), got=value)
    return str(value)
