"""Cross-play: a round for every pair of some models, one of which may play against itself."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from app.errors import Invalid
from app.games import find_game
from app.models import RoundRow
from app.rounds import life
from app.rounds.life import Wish

MOST_MODELS = 20


def pairs(game: str, models: Sequence[str]) -> list[tuple[str, str]]:
    """Who plays whom, by seat. Where both seats have the same role, A against B is also B against A.

    Raises Invalid for too few, too many or the same twice.
    """
    if not 2 <= len(models) <= MOST_MODELS or len(set(models)) < len(models):
        raise Invalid(f"models: expected 2 to {MOST_MODELS} different ones, got {', '.join(models)}")
    first, second = find_game(game).roles
    if first == second:
        return list(itertools.combinations_with_replacement(models, 2))
    return list(itertools.product(models, models))


def create(session: Session, wish: Wish, models: Sequence[str], *, queued: bool) -> list[RoundRow]:
    """A round for each pair, all on the same seeds. Raises what `life.create` raises."""
    rows: list[RoundRow] = []
    for pair in pairs(wish.game, models):
        rows.append(life.create(session, replace(wish, models=pair), queued=queued))
        rows[-1].matrix_id = rows[0].id
    session.flush()
    return rows
