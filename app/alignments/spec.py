"""What may be said of an alignment: its models, its societies, its trainings and how it is assessed. Pure."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from app.core.errors import Invalid, either
from app.players.base import ChatSampling
from app.society.comparisons import CODE, RELEASED
from training.methods import all_methods

SFT, ALIGN = "sft", "stable-alignment"  # the methods of its trainings
PUBLISHED, PUBLISHED_CODE = "published", "code"
HELD_OUT_SHARE = 0.2


class AlignmentPreset(NamedTuple):
    """How the second training is done, and how the rows of the society are mixed for it."""

    training: Mapping[str, Any]
    mixing: str


def presets() -> dict[str, AlignmentPreset]:
    """The published recipe, and what its code does where nothing is said."""
    trainings = all_methods()[ALIGN].presets
    mixing = {PUBLISHED: RELEASED, PUBLISHED_CODE: CODE}
    return {name: AlignmentPreset(trainings[name], mixing[name]) for name in mixing}


@dataclass(frozen=True, slots=True)
class AlignmentSpec:
    """What to run: an alignment; names are of the registry.

    `agents` live in the societies beside the model that learns, which has `share` of the agents. `society`, `sft` and
    `training` have fields of SocietyConfig and of the two methods, numbers maybe as text; those of `training` are laid
    over the preset. Without `demonstrations`, a dataset, the base lives in the first society as it is.
    """

    base: str
    observers: Sequence[str]
    raters: Sequence[str]
    demonstrations: str | None = None
    agents: Sequence[tuple[str, float]] = ()
    share: float = 1.0
    society: Mapping[str, Any] = field(default_factory=dict)
    society_preset: str | None = None
    embedder: str = "tfidf"
    sft: Mapping[str, Any] = field(default_factory=dict)
    preset: str = PUBLISHED
    training: Mapping[str, Any] = field(default_factory=dict)
    sampling: ChatSampling = ChatSampling()  # noqa: RUF009 - it cannot change
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """The spec as an alignment's row holds it."""
        return {**asdict(self), "agents": [list(each) for each in self.agents], "sampling": self.sampling._asdict()}

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the second training."""
        return {"seed": self.seed, **read_preset(self.preset).training, **self.training}


def spec_of(raw: Mapping[str, Any]) -> AlignmentSpec:
    """A spec that `to_json` wrote."""
    agents = [(name, share) for name, share in raw["agents"]]
    return AlignmentSpec(**{**raw, "agents": agents, "sampling": ChatSampling(**raw["sampling"])})


def read_preset(name: str) -> AlignmentPreset:
    """The preset of that name. Raises Invalid."""
    known = presets()
    if name not in known:
        raise Invalid("preset", expected=either(known), got=name)
    return known[name]


def part(questions: Sequence[str], share: float, seed: int) -> tuple[list[str], list[str]]:
    """Questions for the societies, and a share of them, one at least, that is held out. In their order, each once."""
    every = list(dict.fromkeys(each.strip() for each in questions))
    number = min(len(every) - 1, max(1, round(share * len(every))))
    drawn = set(random.Random(f"held out {seed}").sample(range(len(every)), number))
    return (
        [each for place, each in enumerate(every) if place not in drawn],
        [each for place, each in enumerate(every) if place in drawn],
    )
