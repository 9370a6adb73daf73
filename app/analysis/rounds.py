"""Rounds as figures, one or several side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.analysis import metrics
from app.analysis.distributions import Bin, distributions
from app.analysis.metrics import Metrics
from app.analysis.paired import PairedDifference, paired
from app.analysis.reading import matches_of
from app.errors import Invalid, Verbatim, shown
from app.games.negotiation.rules import NEGOTIATION
from app.games.taboo.outcomes import ROLES
from app.models import RoundRow
from app.rounds import lifecycle
from app.rounds.job import ROUND


@dataclass(frozen=True, slots=True)
class RoundAnalysis:
    """A round as far as it has been played. `matches` of the `planned` ones are over and in the figures."""

    round_id: int
    name: str
    game: str
    source: str
    state: str
    planned: int
    matches: int
    lam: float | None  # λ; of negotiation alone
    players: Sequence[str]  # in the order in which they first sat down
    metrics: Metrics
    distributions: Mapping[str, Sequence[Bin]]
    paired: PairedDifference | None = None  # where two different models played each other

    @property
    def complete(self) -> bool:
        """Whether all of its matches are in the figures."""
        return self.matches == self.planned

    def to_json(self) -> dict[str, Any]:
        """The analysis under the names of docs/analysis.md."""
        return {
            "round_id": self.round_id,
            "name": self.name,
            "game": self.game,
            "source": self.source,
            "state": self.state,
            "complete": self.complete,
            "planned": self.planned,
            "matches": self.matches,
            "lambda": self.lam,
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


def analyse(session: Session, round_ids: Sequence[int]) -> list[RoundAnalysis]:
    """Each round once, in the order given. Raises NotFound, and Invalid for a game that has no figures."""
    return [_analysed(session, ROUND.get(session, number)) for number in dict.fromkeys(round_ids)]


def _analysed(session: Session, row: RoundRow) -> RoundAnalysis:
    matches = matches_of(session, [row.id])
    models = tuple(dict.fromkeys(model.name for model in lifecycle.seated(session, row)))
    versus = paired(matches, models or matches.players, row.game)
    lam: float | None = None
    if row.game == "negotiation":
        lam = float(NEGOTIATION.config(row.config).lam)
        found = metrics.negotiation(matches, lam)
    elif row.game == "taboo":
        found = metrics.taboo(matches, ROLES)
    else:
        raise Invalid(
            "round",
            expected="one of negotiation or taboo",
            got=Verbatim(f"one of {shown(row.game)}"),
            subject=f"round {row.id}",
        )
    return RoundAnalysis(
        round_id=row.id,
        name=row.name,
        game=row.game,
        source=row.source,
        state=ROUND.state_of(session, row),
        planned=row.matches,
        matches=len(matches),
        lam=lam,
        players=matches.players or models,
        metrics=found,
        distributions=distributions(matches, versus),
        paired=versus,
    )
