"""Cross-play: a round for every pair of some models, including a model against itself."""

import itertools
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.errors import Conflict, Invalid, NotFound, Phrase, Verbatim
from app.games import find_game
from app.jobs import states
from app.jobs.kind import NO_BUDGET, Requester
from app.jobs.spec import JobBudget
from app.models import RoundRow
from app.rounds import lifecycle
from app.rounds.job import ROUND
from app.rounds.lifecycle import Material
from app.rounds.spec import MOST_MODELS, RoundSpec


def pairs(game: str, models: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs that play, by seat. If both seats have the same role, A against B is also B against A.

    Raises Invalid for too few or too many models, or for repeated ones.
    """
    if not 2 <= len(models) <= MOST_MODELS or len(set(models)) < len(models):
        raise Invalid(
            "models",
            expected=Phrase("2 to %(most)s different ones", most=MOST_MODELS),
            got=Verbatim(", ".join(models)) if models else Phrase("none"),
        )
    first, second = find_game(game).roles
    if first == second:
        return list(itertools.combinations_with_replacement(models, 2))
    return list(itertools.product(models, models))


def create(
    session: Session,
    spec: RoundSpec,
    material: Material | None = None,
    *,
    queued: bool,
    requester: Requester | None = None,
) -> list[RoundRow]:
    """Create a round for each pair, all with the same seeds. Raises what `lifecycle.create` raises."""
    whole = lifecycle.with_open_fields_filled(spec, material)
    seats = pairs(spec.game, spec.models)
    rows = lifecycle.create_all(session, whole, seats, material, queued=queued, requester=requester)
    for row in rows:
        row.matrix_id = rows[0].id
    session.flush()
    return rows


def rounds_of(session: Session, matrix_id: int) -> list[RoundRow]:
    """The rounds of a cross-play, identified by the number of its first round. Raises NotFound."""
    wanted = select(RoundRow).where(RoundRow.matrix_id == matrix_id).order_by(RoundRow.id)
    rows = list(session.scalars(wanted)) if 0 < matrix_id < 2**31 else []
    if not rows:
        raise NotFound("cross-play", expected=Phrase("the number of one that exists"), got=matrix_id)
    return rows


def matrix_of(session: Session, round_id: int) -> int:
    """The number of the cross-play of a round. Raises NotFound, and Conflict if it belongs to none."""
    row = ROUND.get(session, round_id)
    if row.matrix_id is None:
        raise Conflict(
            "round",
            expected=Phrase("one of a cross-play"),
            got=Phrase("one that is not"),
            subject=Phrase("round %(number)s", number=round_id),
        )
    return row.matrix_id


def cancel(session: Session, matrix_id: int) -> list[RoundRow]:
    """Cancel and return every round of a cross-play that is not over.

    Raises NotFound, and Conflict if all are over.
    """
    rows = [row for row in rounds_of(session, matrix_id) if row.status in states.OPEN]
    if not rows:
        raise Conflict(
            "cross-play",
            expected=Phrase("one that is being played"),
            got=Phrase("one whose rounds are over"),
            subject=Phrase("cross-play %(number)s", number=matrix_id),
        )
    return [ROUND.cancel(session, row.id) for row in rows]


def resume(session: Session, matrix_id: int, *, queued: bool, budget: JobBudget = NO_BUDGET) -> list[RoundRow]:
    """Resume and return every stopped round of a cross-play. The budget applies to each.

    Raises NotFound, and Conflict if none was stopped.
    """
    rows = rounds_of(session, matrix_id)
    found = ROUND.states_of(session, rows)
    rows = [row for row in rows if found[row.id] in states.STOPPED]
    if not rows:
        raise Conflict(
            "cross-play",
            expected=Phrase("one with rounds that were stopped"),
            got=Phrase("none of them"),
            subject=Phrase("cross-play %(number)s", number=matrix_id),
        )
    return [ROUND.resume(session, row.id, queued=queued, budget=budget) for row in rows]
