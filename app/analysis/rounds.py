"""Rounds as figures, one or several side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.analysis.matches import MatchAnalysis, figures_of
from app.analysis.reading import matches_of, sampled_indexes
from app.core.errors import Phrase, Verbatim
from app.games import partner_weight_of
from app.models import RoundRow
from app.rounds import lifecycle
from app.rounds.job import ROUND


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundAnalysis(MatchAnalysis):
    """A round so far. `over` of the `planned` matches have finished, `matches` are in the figures."""

    round_id: int
    source: str
    state: str
    planned: int
    over: int

    @property
    def key(self) -> str:
        """Its number."""
        return str(self.round_id)

    @property
    def called(self) -> Phrase:
        """Its number and its name."""
        return Phrase("round %(number)s (%(name)s)", number=self.round_id, name=Verbatim(self.name))

    @property
    def complete(self) -> bool:
        """Whether the figures include all of its matches."""
        return self.over == self.planned and not self.sampled

    @property
    def sampled(self) -> bool:
        """Whether its figures cover only some of the finished matches."""
        return self.matches < self.over

    def about(self) -> dict[str, Any]:
        """Which round it is, and its progress."""
        return {
            "round_id": self.round_id,
            "name": self.name,
            "game": self.game,
            "source": self.source,
            "state": self.state,
            "complete": self.complete,
            "planned": self.planned,
        }


def analyse(session: Session, round_ids: Sequence[int], most: int | None = None) -> list[RoundAnalysis]:
    """Each round once, in the order given; of about `most` of its matches, if given. Raises NotFound."""
    return [_analysed(session, ROUND.get(session, number), most) for number in dict.fromkeys(round_ids)]


def _analysed(session: Session, row: RoundRow, most: int | None) -> RoundAnalysis:
    indexes = None if most is None else sampled_indexes(row, most)
    matches = matches_of(session, [row.id], indexes)
    models = tuple(dict.fromkeys(model.name for model in lifecycle.seated(session, row)))
    partner_weight = partner_weight_of(row.game, row.config)
    return RoundAnalysis(
        round_id=row.id,
        name=row.name,
        source=row.source,
        state=ROUND.state_of(session, row),
        planned=row.matches,
        over=len(matches) if indexes is None else row.finished,
        **figures_of(matches, row.game, partner_weight, models),
    )
