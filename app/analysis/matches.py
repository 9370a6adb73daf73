"""Finished matches of one game as figures: those of a round, or all that a filter selects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.analysis.distributions import Bin, distributions
from app.analysis.metrics import Metrics, measure
from app.analysis.paired import PairedDifference, paired
from app.analysis.reading import chosen_tables
from app.core.errors import Phrase, Verbatim
from app.games import find_game, metrics_of
from app.games.match_table import MatchTable
from app.games.metrics import GameMetrics
from app.matches.filter import MatchFilter, check_known, in_words


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchAnalysis:
    """Finished matches of one game, all with the same weight of the partner's points, and their figures."""

    name: str  # the request in words
    game: str
    matches: int
    partner_weight: float | None
    players: Sequence[str]  # in order of first appearance
    metrics: Metrics
    distributions: Mapping[str, Sequence[Bin]]
    paired: PairedDifference | None = None  # where two different models played each other

    @property
    def key(self) -> str:
        """A key that keeps the names of its charts apart from others."""
        weight = self.partner_weight
        return self.game if weight is None else f"{self.game}-{weight:g}".replace("--", "-minus-").replace(".", "-")

    @property
    def called(self) -> Phrase:
        """What the matches are called in a sentence."""
        return Phrase("%(game)s (%(choice)s)", game=Phrase(find_game(self.game).title), choice=Verbatim(self.name))

    @property
    def complete(self) -> bool:
        """Whether the figures include all planned matches."""
        return True

    @property
    def planned(self) -> int:
        """The number of planned matches."""
        return self.matches

    @property
    def defined(self) -> GameMetrics:
        """The metrics of its game."""
        return metrics_of(self.game)

    def about(self) -> dict[str, Any]:
        """Which matches these are, under the names of docs/analysis.md."""
        return {"name": self.name, "game": self.game}

    def to_json(self) -> dict[str, Any]:
        """The analysis under the names of docs/analysis.md."""
        return {
            **self.about(),
            "matches": self.matches,
            "lambda": self.partner_weight,
            "claims_version": self.defined.claims_version,
            "models": list(self.players),
            "columns": {name: figure._asdict() for name, figure in self.metrics.columns.items()},
            "outcomes": [
                {"reason": each.reason, "matches": each.matches, "share": each.share._asdict()}
                for each in self.metrics.outcomes
            ],
            "by_model": [
                {
                    "model": part.player,
                    "role": part.role,
                    "matches": part.matches,
                    "columns": {name: figure._asdict() for name, figure in part.columns.items()},
                }
                for part in self.metrics.parts
            ],
            "paired": None if self.paired is None else self.paired.to_json(),
            "distributions": {name: [each._asdict() for each in bins] for name, bins in self.distributions.items()},
        }


def figures_of(
    matches: MatchTable, game: str, partner_weight: float | None, players: Sequence[str] = ()
) -> dict[str, Any]:
    """The fields of an analysis that follow from the matches; `players` are the intended players, by seat."""
    defined = metrics_of(game)
    versus = paired(matches, players or matches.players, defined)
    return {
        "game": game,
        "matches": len(matches),
        "partner_weight": partner_weight,
        "players": matches.players or players,
        "metrics": measure(matches, defined, find_game(game).roles, partner_weight),
        "distributions": distributions(matches, defined, versus),
        "paired": versus,
    }


def analyse_matches(session: Session, choice: MatchFilter, most: int | None = None) -> list[MatchAnalysis]:
    """The finished matches that a filter selects: one analysis for each game and weight.

    If `most` is given, of a sample of that many.

    Scores with different weights of the partner's points are on different scales, so they are never shown together.
    Raises NotFound for an unknown player, round or campaign.
    """
    check_known(session, choice)
    return [
        MatchAnalysis(name=in_words(choice), **figures_of(table, game, partner_weight))
        for (game, partner_weight), table in chosen_tables(session, choice, most).items()
    ]
