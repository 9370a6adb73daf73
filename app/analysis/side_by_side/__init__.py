"""People and models side by side: models in self-play, cross-play and with people, against one as the base.

`side_by_side` gives the content of tables, charts, pages and commands, one for each game and each weight of the
partner's points, because scores with different weights are on different scales.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from app.analysis.reading import PEOPLE
from app.analysis.side_by_side.figures import PlayerFigures, figures_in
from app.analysis.side_by_side.language import LanguageFigures, language_figures
from app.analysis.side_by_side.reading import check_choice, read_matches, read_talks
from app.analysis.side_by_side.settings import (
    OF_MODELS,
    SETTINGS,
    Kind,
    SettingMatches,
    SideBySideChoice,
    seats_of,
)
from app.games import find_game, metrics_of
from app.games.metrics import GameMetrics

MOST_TALKS = 400  # matches per player and setting whose words are read
__all__ = ("MOST_TALKS", "SideBySide", "SideBySideChoice", "side_by_side")


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Models of one game and weight side by side. `sampled` names the settings that were read as a sample."""

    game: str
    partner_weight: float | None
    choice: SideBySideChoice
    players: Sequence[PlayerFigures]
    language: Sequence[LanguageFigures]
    sampled: Sequence[str]

    @property
    def key(self) -> str:
        """Its key among other games and weights, in addresses and file names."""
        weight = self.partner_weight
        return self.game if weight is None else f"{self.game}-{weight:g}".replace("--", "-minus-").replace(".", "-")

    @property
    def defined(self) -> GameMetrics:
        """The metrics of its game."""
        return metrics_of(self.game)

    @property
    def settings(self) -> list[str]:
        """The settings that have matches, in the order of all tables."""
        return [each for each in SETTINGS if any(row.setting == each for row in self.players)]

    @property
    def roles(self) -> list[str | None]:
        """The roles that are distinguished."""
        return list(dict.fromkeys(each.role for each in self.players))

    def find(self, player: str, setting: str, role: str | None) -> PlayerFigures | None:
        """The figures of a player in a setting and role; None where it has no matches there."""
        wanted = player, setting, role
        return next((each for each in self.players if (each.player, each.setting, each.role) == wanted), None)

    def to_json(self) -> dict[str, Any]:
        """All its figures under the names of docs/analysis.md."""
        return {
            "game": self.game,
            "lambda": self.partner_weight,
            "models": list(self.choice.models),
            "base": self.choice.base,
            "iterations": dict(self.choice.iterations),
            "sampled": list(self.sampled),
            "figures": [
                {
                    "player": each.player,
                    "role": each.role,
                    "setting": each.setting,
                    "matches": each.matches,
                    "units": each.units,
                    "columns": {name: figure._asdict() for name, figure in each.columns.items()},
                    "against_base": {name: _comparison_json(found) for name, found in each.against_base.items()},
                    "results": dict(each.results),
                }
                for each in self.players
            ],
            "language": [
                {
                    "player": each.player,
                    "role": each.role,
                    "setting": each.setting,
                    "matches": each.matches,
                    "units": each.units,
                    "words": each.words,
                    "columns": {name: figure._asdict() for name, figure in each.columns.items()},
                    "demands": [figure._asdict() for figure in each.demands],
                }
                for each in self.language
            ],
        }


def _comparison_json(found: Any) -> dict[str, Any]:
    return {**found._asdict(), "difference": found.difference._asdict(), "ratio": found.ratio._asdict()}


def side_by_side(session: Session, choice: SideBySideChoice, talks: int = MOST_TALKS) -> list[SideBySide]:
    """The models of a choice side by side, by game and weight.

    Messages are read from at most `talks` matches of a player in a setting. Raises NotFound for an unknown model, game,
    round or study, and Invalid for what cannot be compared.
    """
    check_choice(session, choice)
    found = []
    for kind, by_setting in read_matches(session, choice).items():
        if any(each in OF_MODELS for each in by_setting):
            found.append(_of_kind(session, choice, kind, by_setting, talks))
    return found


def _of_kind(
    session: Session, choice: SideBySideChoice, kind: Kind, by_setting: Mapping[str, SettingMatches], talks: int
) -> SideBySide:
    game, weight = kind
    defined, roles = metrics_of(game), find_game(game).roles
    players: list[PlayerFigures] = []
    language: list[LanguageFigures] = []
    for setting in (each for each in SETTINGS if each in by_setting):
        played = by_setting[setting]
        who = [*(choice.models if setting in OF_MODELS else ()), *(() if setting in OF_MODELS[:2] else (PEOPLE,))]
        players += figures_in(played, who, choice.base, defined, roles, weight)
        language += _language(session, game, played, who, talks)
    order = {name: place for place, name in enumerate((*choice.models, PEOPLE))}
    players.sort(key=lambda each: (order[each.player], SETTINGS.index(each.setting)))
    language.sort(key=lambda each: (order[each.player], SETTINGS.index(each.setting)))
    return SideBySide(
        game, weight, choice, players, language, [each.setting for each in by_setting.values() if each.sampled]
    )


def _language(
    session: Session, game: str, played: SettingMatches, who: Sequence[str], most: int
) -> list[LanguageFigures]:
    """What these players said in a setting, in the first matches of each, which are those with the lowest ids."""
    table = played.table
    wanted = []
    for each in seats_of(who, find_game(game).roles):
        place = table.players.index(each.player) if each.player in table.players else -1
        held = (table.player == place) & np.array(each.seats)
        rows = np.flatnonzero(held.any(1))[:most]
        if len(rows):
            wanted.append((each, rows, held))
    needed = sorted({int(row) for _, rows, _ in wanted for row in rows})
    said = dict(zip(needed, read_talks(session, game, [played.spoken[row] for row in needed]), strict=True))
    units = table.units if table.units is not None else np.arange(len(table))
    found = []
    for each, rows, held in wanted:
        seats = [(int(row), seat) for row in rows for seat in (0, 1) if held[row, seat]]
        matches = np.array([row for row, _ in seats], np.int64)
        found.append(
            language_figures(
                (each.player, each.role),
                played.setting,
                played.unit,
                [said[row][seat] for row, seat in seats],
                units[matches],
                matches,
                metrics_of(game).language,
            )
        )
    return found
