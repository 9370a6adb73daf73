"""The settings in which models play, and their matches in each. Pure.

In self-play a model has both seats, in cross-play two models have one each, with people a person has the other one.
Matches between two people are there for comparison.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from app.analysis.bootstrap import FEW_DYADS, FEW_MATCHES, FEW_PEOPLE, FEW_SEEDS, Integers
from app.games.match_table import MatchTable

SELF_PLAY, CROSS_PLAY, WITH_PEOPLE = "self-play", "cross-play", "with people"
PEOPLE_ALONE, IMPORTED_PEOPLE = "people alone", "imported people"
SETTINGS = (SELF_PLAY, CROSS_PLAY, WITH_PEOPLE, PEOPLE_ALONE, IMPORTED_PEOPLE)  # in the order of all tables
OF_MODELS = SETTINGS[:3]
SEED, PERSON, DYAD, MATCH = "seed", "person", "dyad", "match"
UNITS = {SELF_PLAY: SEED, CROSS_PLAY: SEED, WITH_PEOPLE: PERSON, PEOPLE_ALONE: DYAD, IMPORTED_PEOPLE: MATCH}
FEW = {SEED: FEW_SEEDS, PERSON: FEW_PEOPLE, DYAD: FEW_DYADS, MATCH: FEW_MATCHES}

MOST_BESIDE = 12  # models that a table can show beside each other

Kind = tuple[str, float | None]  # the game, and what a partner's point is worth


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySideChoice:
    """The models to put side by side, and the matches to use.

    `models` are names of the registry, each once, in the order of the tables; ratios, differences and tests are against
    `base`, one of them. Only the matches of `rounds` count in self-play and cross-play, and only people's matches of
    `study`; None: all. `iterations` gives each model's iteration of a campaign. At most `most` matches of each setting
    are read, those with the lowest ids, which are drawn at random; None: all.
    """

    models: tuple[str, ...]
    base: str
    game: str | None = None
    partner_weight: float | None = None
    rounds: tuple[int, ...] | None = None
    study: str | None = None
    iterations: Mapping[str, int] = field(default_factory=dict)
    most: int | None = None


class SpokenMatch(NamedTuple):
    """The data of a match needed to read what was said in it."""

    match_id: str
    config: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class SettingMatches:
    """n matches of one game and weight in one setting; `table.pair` is the independently drawn unit: `UNITS`.

    Matches of the same `material` had the same config and the same seed.
    """

    setting: str
    table: MatchTable
    material: Integers  # (n,) numbered from 0
    spoken: Sequence[SpokenMatch]  # (n,)
    sampled: bool  # whether more exist than were read

    @property
    def unit(self) -> str:
        """The resampled unit: seed, person, dyad or match."""
        return UNITS[self.setting]


class Seats(NamedTuple):
    """A player in some seats of its matches: both, or that of a role."""

    player: str
    role: str | None
    seats: tuple[bool, bool]


def seats_of(players: Sequence[str], roles: tuple[str, str]) -> list[Seats]:
    """Each player in either seat, or in each role where roles differ."""
    if roles[0] == roles[1]:
        return [Seats(each, None, (True, True)) for each in players]
    return [Seats(each, role, (seat == 0, seat == 1)) for each in players for seat, role in enumerate(roles)]
