"""The finished matches of rounds, read from the rows of matches and seats alone, never from their event logs."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session, aliased

from app.games.match_table import FinishedMatch, MatchTable, MatchTableBuilder
from app.models import LanguageModel, MatchRow, RoundRow, SeatRow
from app.rounds.lifecycle import MOST_MATCHES

_AT_ONCE = 5_000  # rows in memory
_PERSON = "person"
_SEATS = aliased(SeatRow), aliased(SeatRow)


def matches_of(session: Session, round_ids: Sequence[int]) -> MatchTable:
    """The matches of those rounds that are over, by round and index."""
    swapped = set(session.scalars(select(RoundRow.id).where(RoundRow.id.in_(round_ids), RoundRow.swap_seats)))
    names = {row.id: row.name for row in session.execute(select(LanguageModel.id, LanguageModel.name))}
    columns = MatchTableBuilder()
    rows = session.execute(
        _finished().where(MatchRow.round_id.in_(round_ids)), execution_options={"yield_per": _AT_ONCE}
    )
    for part in rows.partitions():
        columns.add([_row(names, swapped == set(round_ids), *fields) for fields in part])
    return columns.matches()


def _finished() -> Select[*tuple[Any, ...]]:
    """The fields of `_row`, in their order."""
    first, second = _SEATS
    return (
        select(
            MatchRow.round_id,
            MatchRow.index,
            MatchRow.utility_0,
            MatchRow.utility_1,
            first.language_model_id,
            first.player,
            second.language_model_id,
            second.player,
            MatchRow.reason,
            MatchRow.ply,
            MatchRow.words,
            MatchRow.tokens,
            MatchRow.violations,
            MatchRow.first_proposal,
            MatchRow.winner,
            MatchRow.agreed,
            MatchRow.pareto_optimal,
            MatchRow.unspoken,
        )
        .join(first, (first.match_id == MatchRow.id) & (first.seat == 0))
        .join(second, (second.match_id == MatchRow.id) & (second.seat == 1))
        .where(MatchRow.status == "over")
        .order_by(MatchRow.round_id, MatchRow.index)
    )


def _row(names: Mapping[int, str], swapped: bool, round_id: int, index: int, *fields: Any) -> FinishedMatch:
    first, second, model_0, player_0, model_1, player_1, reason = fields[:7]
    ply, words, tokens, violations, first_proposal, winner, agreed, pareto, unspoken = fields[7:]
    players = _name(names, model_0, player_0), _name(names, model_1, player_1)
    scene = round_id * MOST_MATCHES + index // 2 if swapped else None  # 2k and 2k + 1 are one game from either side
    utilities = first or 0, second or 0
    rest = words, tokens, violations, first_proposal, winner, agreed, pareto, unspoken
    return FinishedMatch(utilities, players, reason or "", ply, *rest, scene)


def _name(names: Mapping[int, str], model_id: int | None, player: str | None) -> str:
    """A registered model's name, what an import calls a player that is in no registry, or that it is a person."""
    return names[model_id] if model_id is not None else player or _PERSON
