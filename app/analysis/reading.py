"""Finished matches, read from the rows of matches and seats alone, never from their event logs."""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session, aliased

from app.games import partner_weight_of
from app.games.match_table import FinishedMatch, MatchTable, MatchTableBuilder
from app.matches import counts
from app.matches.blinding import is_blinded
from app.matches.filter import EVERYTHING, MatchFilter, conditions, is_over, unindexed
from app.models import LanguageModel, MatchRow, RoundRow, SeatRow
from app.models.types import is_among
from app.rounds.job import SELFPLAY
from app.rounds.spec import MOST_MATCHES

_AT_ONCE = 5_000  # rows in memory
PEOPLE = "people"  # all people alike: who sat where stays private here
_SEATS = aliased(SeatRow), aliased(SeatRow)
_PLACE = MatchRow.round_id, MatchRow.index
_RESULT = (
    MatchRow.utility_0, MatchRow.utility_1, MatchRow.reason, MatchRow.ply, MatchRow.words, MatchRow.tokens,
    MatchRow.violations, MatchRow.first_proposal, MatchRow.winner, MatchRow.agreed, MatchRow.pareto_optimal,
    MatchRow.unspoken, MatchRow.measures,
)  # fmt: skip


def matches_of(session: Session, round_ids: Sequence[int], indexes: Collection[int] | None = None) -> MatchTable:
    """The finished matches of those rounds, by round and index; only those with `indexes`, if given."""
    rounds = session.scalars(select(RoundRow).where(RoundRow.id.in_(round_ids))).all()
    whole = all(row.swap_seats for row in rounds)
    # Seats are in a separate table, so those known from the round are not read.
    told = all(row.source == SELFPLAY for row in rounds)
    seats = {(row.id, odd): _models_of_seats(row, odd) for row in rounds for odd in (0, 1)} if told else {}
    chosen = select(*_PLACE, *_RESULT).where(is_over()) if told else finished()
    # Stating the condition twice makes PostgreSQL expect few rows, correctly: otherwise it would read all seats of a
    # million matches.
    some = [] if indexes is None else [is_among(MatchRow.index, indexes), *unindexed([is_over()])]
    rows = session.execute(
        chosen.where(MatchRow.round_id.in_(round_ids), *some).order_by(*_PLACE),
        execution_options={"yield_per": _AT_ONCE},
    )
    names = model_names(session)
    columns = MatchTableBuilder()
    for part in rows.partitions():
        columns.add([
            finished_match(
                names,
                _pair_key(number, index) if whole else None,
                *(seats[number, index % 2] if told else ()),
                *fields,
            )
            for number, index, *fields in part
        ])  # fmt: skip
    return columns.matches()


def _models_of_seats(row: RoundRow, odd: int) -> tuple[int | None, None, int | None, None]:
    """The seat fields of `finished` for the matches of a round with even or with `odd` indexes."""
    seats = row.model_0_id, None, row.model_1_id, None
    return seats[2:] + seats[:2] if odd and row.swap_seats else seats


def sampled_indexes(row: RoundRow, most: int) -> list[int] | None:
    """The indexes of about `most` finished matches of a round: games with both sides, drawn by its seed.

    None for all matches, if no more than `most` have finished.
    """
    if row.finished <= most:
        return None
    wanted = min(4 * most, row.matches, most * row.matches // row.finished)
    games = random.Random(row.seed).sample(range(-(-row.matches // 2)), -(-wanted // 2))
    return sorted(index for game in games for index in (2 * game, 2 * game + 1))


def extent(session: Session, choice: MatchFilter, most: int) -> tuple[int, datetime | None]:
    """How many of the chosen matches have finished, and when the last ended, in a sample of `most` plus one.

    This takes no longer for a million matches.
    """
    if (played := _round_of_models(session, choice)) is not None:
        ended = MatchRow.round_id == played.id, MatchRow.ended_at.is_not(None)
        return min(played.finished, most + 1), session.scalar(select(func.max(MatchRow.ended_at)).where(*ended))
    some = _sampled_matches(session, choice, most + 1, MatchRow.ended_at).subquery()
    number, last = session.execute(select(func.count(), func.max(some.c.ended_at))).one()
    return number, last


def _sampled_matches(session: Session, choice: MatchFilter, most: int, *columns: Any) -> Select[Any]:
    """At most `most` of the chosen matches that have finished and are not blinded, drawn at random."""
    return drawn(session, [is_over(), *conditions(choice), ~is_blinded()], choice, most).with_only_columns(*columns)


_MOST_INDEXES = 20_000  # bound as values; PostgreSQL allows 65,535 in a statement, SQLite 32,766


def drawn(session: Session, wanted: Sequence[ColumnElement[bool]], choice: MatchFilter, most: int) -> Select[str]:
    """The ids of at most `most` wanted matches: the lowest ones, as ids are drawn at random.

    For a whole round, the games of `sampled_indexes`. `choice` tells how many matches there are, where counted.
    """
    if most <= _MOST_INDEXES and (whole := _whole_round(session, choice)) is not None:
        indexes = sampled_indexes(whole, most)  # by index; by id, the whole round would be sorted
        wanted = [*wanted, *([] if indexes is None else [is_among(MatchRow.index, indexes)])]
    counted = counts.covers(choice)
    many = counted and 10 * counts.count_over(session, choice) >= counts.count_over(session, EVERYTHING)
    order: Any = MatchRow.id
    if session.get_bind().dialect.name == "sqlite":
        # With any index but that of ids, SQLite would sort all of a source's million matches to take a few.
        wanted = unindexed(wanted) if many else wanted
    elif counted and not many:
        # There are few, but no statistics say so for a player: PostgreSQL would scan the whole index of ids.
        order = MatchRow.id.concat("")
    return select(MatchRow.id).where(*wanted).order_by(order).limit(most)


def _whole_round(session: Session, choice: MatchFilter) -> RoundRow | None:
    """The round that a filter chooses as a whole, if all of its matches are over."""
    row = session.get(RoundRow, choice.round) if choice == MatchFilter(round=choice.round) and choice.round else None
    return row if row is not None and row.finished == row.matches else None


def _round_of_models(session: Session, choice: MatchFilter) -> RoundRow | None:
    """The same, if models played the round here and it was not removed, so that none of its matches is blinded."""
    row = _whole_round(session, choice)
    return row if row is not None and row.source == SELFPLAY and row.removed_at is None else None


def chosen_tables(
    session: Session, choice: MatchFilter, most: int | None = None
) -> dict[tuple[str, float | None], MatchTable]:
    """The finished matches that a filter chooses, by game and partner's weight: those without a round first.

    Matches of waves that are not frozen are left out. With `most`, at most that many: a sample that stays the same
    until another match finishes.
    """
    if (played := _round_of_models(session, choice)) is not None:
        table = matches_of(session, [played.id], None if most is None else sampled_indexes(played, most))
        return {(played.game, partner_weight_of(played.game, played.config)): table}
    swapped, alone = _swapped(session), count(-1, -1)
    unblinded = [*conditions(choice), ~is_blinded()]
    chosen = unblinded if most is None else [MatchRow.id.in_(_sampled_matches(session, choice, most, MatchRow.id))]
    tables: dict[tuple[str, float | None], MatchTableBuilder] = {}
    in_pairs = set()
    rows = session.execute(
        finished()
        .add_columns(MatchRow.game, MatchRow.config)
        .where(*chosen)
        .order_by(
            func.coalesce(MatchRow.round_id, 0), func.coalesce(MatchRow.index, 0), MatchRow.started_at, MatchRow.id
        ),
        execution_options={"yield_per": _AT_ONCE},
    )
    names = model_names(session)
    for part in rows.partitions():
        groups: dict[tuple[str, float | None], list[FinishedMatch]] = {}
        for round_id, index, *fields, game, config in part:
            group = game, partner_weight_of(game, config)
            paired = round_id in swapped
            if paired:
                in_pairs.add(group)
            pair = _pair_key(round_id, index) if paired else next(alone)
            groups.setdefault(group, []).append(finished_match(names, pair, *fields))
        for group, found in groups.items():
            tables.setdefault(group, MatchTableBuilder()).add(found)
    whole = {group: table.matches() for group, table in sorted(tables.items(), key=_by_name)}
    return {group: table if group in in_pairs else replace(table, pair=None) for group, table in whole.items()}


def _by_name(item: tuple[tuple[str, float | None], MatchTableBuilder]) -> tuple[str, float]:
    (game, partner_weight), _ = item
    return game, partner_weight or 0


def _swapped(session: Session) -> set[int]:
    """The rounds that play each game from both sides."""
    return set(session.scalars(select(RoundRow.id).where(RoundRow.swap_seats)))


def model_names(session: Session) -> dict[int, str]:
    """The names of all models; read them after the seats, because a model may be added, and play, in between."""
    return {row.id: row.name for row in session.execute(select(LanguageModel.id, LanguageModel.name))}


def _pair_key(round_id: int, index: int) -> int:
    """The game that a match is one side of: in a round that swaps seats, 2k and 2k + 1 are the same."""
    return round_id * MOST_MATCHES + index // 2


def finished() -> Select[*tuple[Any, ...]]:
    """The finished matches: the place of each, and the fields of `finished_match`, in order."""
    first, second = _SEATS
    seats = first.language_model_id, first.player, second.language_model_id, second.player
    return (
        select(*_PLACE, *seats, *_RESULT)
        .join(first, (first.match_id == MatchRow.id) & (first.seat == 0))
        .join(second, (second.match_id == MatchRow.id) & (second.seat == 1))
        .where(is_over())
    )


def finished_match(names: Mapping[int, str], pair: int | None, *fields: Any) -> FinishedMatch:
    """A match from the fields of `finished`, without its place; `names` are those of models by number."""
    model_0, player_0, model_1, player_1, first, second, reason = fields[:7]
    ply, words, tokens, violations, first_proposal, winner, agreed, pareto, unspoken, measures = fields[7:]
    players = _player_name(names, model_0, player_0), _player_name(names, model_1, player_1)
    utilities = first or 0, second or 0
    rest = words, tokens, violations, first_proposal, winner, agreed, pareto, unspoken
    return FinishedMatch(utilities, players, reason or "", ply, *rest, pair, measures)


def _player_name(names: Mapping[int, str], model_id: int | None, player: str | None) -> str:
    """A registered model's name, an import's name for an unregistered player, or the word for people."""
    return names[model_id] if model_id is not None else player or PEOPLE
