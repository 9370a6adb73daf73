"""Counts of finished matches, kept as they end, so that no page has to count a million of them.

A match is counted in the transaction in which it ends: twice if it belongs to a round, among all and among that
round's. No transaction waits for another's count, as each adds its own rows; upkeep merges rows with equal keys. Code
that deletes finished matches calls `delete_matches`, or `uncount` before. Nothing here commits, except `merge` and
`recount`.
"""

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple
from typing import cast as typing_cast

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Engine,
    Executable,
    Integer,
    Select,
    Table,
    bindparam,
    cast,
    delete,
    false,
    func,
    insert,
    null,
    or_,
    select,
    true,
)
from sqlalchemy.orm import Session, aliased

from app.core.extensions import reading, transact
from app.matches.filter import REHEARSAL, MatchFilter, asks_for_rehearsals, is_over
from app.models import LanguageModel, MatchCount, MatchRow, SeatRow
from app.registry import PERSON

_OVER = "over"
_TABLE = typing_cast(Table, MatchCount.__table__)
_KEY = (
    "round_id", "game", "source", "reason", "model_0_id", "model_1_id", "imported_0", "imported_1",
)  # fmt: skip
_SUMS = ("matches", "scored", "points_0", "points_1")
_Key = tuple[Any, ...]  # values of the columns in _KEY
_Sums = tuple[float, ...]  # values of the columns in _SUMS
_NONE: _Sums = (0, 0, 0, 0)
_COUNTED_FIELDS = {"game", "player", "source", "reason", "status"}  # of MatchFilter
_MANY = 40  # surplus rows of a round, or of all matches, at which they are merged
_GROUPS_AT_ONCE = 50
_DELETED_AT_ONCE = 500
_TRIES = 5


class _Kept(NamedTuple):
    """Rows with equal keys, and their sums."""

    ids: list[int]
    sums: _Sums


class WrongCount(NamedTuple):
    """A wrong count: its matches, by the columns of `match_count`, and the sums kept and counted."""

    of: dict[str, Any]
    kept: _Sums
    counted: _Sums


class Recount(NamedTuple):
    """The number of finished matches, and the counts that were wrong."""

    matches: int
    differences: Sequence[WrongCount]


# ---- Written -----------------------------------------------------------------------


def count_ended(session: Session, match_ids: Sequence[str], *, of_round: bool = True) -> None:
    """Count matches whose rows were set to ended in this transaction; `of_round`: among their round's, too."""
    session.connection().execute(_insertion(1, of_round), {"ids": match_ids})


def uncount(session: Session, match_ids: Sequence[str]) -> None:
    """Subtract matches that are about to be deleted from the counts."""
    session.connection().execute(_insertion(-1, True), {"ids": match_ids})


def delete_matches(session: Session, match_ids: Sequence[str]) -> None:
    """Delete matches, and subtract them from the counts."""
    uncount(session, match_ids)
    session.execute(delete(MatchRow).where(MatchRow.id.in_(match_ids)))


@lru_cache(maxsize=4)
def _insertion(sign: int, of_rounds: bool) -> Executable:
    chosen = MatchRow.id.in_(bindparam("ids", expanding=True))
    # A live move waits for this statement: PostgreSQL plans half of it in half the time.
    rows = _counted(chosen, sign) if of_rounds else _grouped(None, [chosen], sign)
    return insert(_TABLE).from_select([*_KEY, *_SUMS], rows)


def _counted(chosen: ColumnElement[bool], sign: int = 1) -> CompoundSelect[Any]:
    """The count rows of finished matches, for all matches and for rounds."""
    of_rounds = MatchRow.round_id.is_not(None)
    return _grouped(None, [chosen], sign).union_all(_grouped(MatchRow.round_id, [chosen, of_rounds], sign))


def _grouped(round_id: Any, chosen: Iterable[ColumnElement[bool]], sign: int) -> Select[Any]:
    first, second = aliased(SeatRow), aliased(SeatRow)
    keys = (
        MatchRow.game, MatchRow.source, MatchRow.reason, first.language_model_id, second.language_model_id,
        first.player.is_not(None), second.player.is_not(None),
    )  # fmt: skip
    points = [func.coalesce(func.sum(each), 0.0) for each in (MatchRow.utility_0, MatchRow.utility_1)]
    sums: tuple[Any, ...] = func.count(), func.count(MatchRow.utility_0 + MatchRow.utility_1), *points
    values: list[Any] = [null() if round_id is None else round_id, *keys, *(each * sign for each in sums)]
    columns = [value.label(name) for name, value in zip((*_KEY, *_SUMS), values, strict=True)]
    return (
        select(*columns)
        .select_from(MatchRow)
        .join(first, (first.match_id == MatchRow.id) & (first.seat == 0))
        .join(second, (second.match_id == MatchRow.id) & (second.seat == 1))
        .where(is_over(), *chosen)
        .group_by(*(keys if round_id is None else (round_id, *keys)))
    )


# ---- Read --------------------------------------------------------------------------


def covers(choice: MatchFilter) -> bool:
    """Whether these rows can count the finished matches of a filter, and their own rows the unfinished ones."""
    given = {name for name in MatchFilter.__dataclass_fields__ if getattr(choice, name) is not None}
    return given <= _COUNTED_FIELDS


def count_over(session: Session, choice: MatchFilter) -> int:
    """The number of finished matches of a filter for which `covers` holds."""
    return session.scalar(select(_sum_of_matches()).where(*_match_count_conditions(choice))) or 0


def count_over_by(session: Session, name: str, choice: MatchFilter) -> dict[str, int]:
    """The same by game, source, reason or player; imported players are not listed."""
    if name != "player":
        column = getattr(MatchCount, name)
        rows = session.execute(
            select(column, _sum_of_matches()).where(*_match_count_conditions(choice)).group_by(column)
        )
        return {value: number for value, number in rows if value is not None and number}
    seats = MatchCount.model_0_id, MatchCount.imported_0, MatchCount.model_1_id, MatchCount.imported_1
    counted = session.execute(
        select(*seats, _sum_of_matches()).where(*_match_count_conditions(choice)).group_by(*seats)
    ).all()
    # Read after the seats: on PostgreSQL, a model added in between would otherwise have no name.
    names = {row.id: row.name for row in session.execute(select(LanguageModel.id, LanguageModel.name))}
    found: dict[str, int] = {}
    for *sat, number in counted:
        for player in {
            PERSON if model is None else names[model] for model, imported in (sat[:2], sat[2:]) if not imported
        }:
            found[player] = found.get(player, 0) + number
    return {player: number for player, number in found.items() if number}


def over_by_models(session: Session) -> Sequence[tuple[str, int | None, int | None, int]]:
    """The number of finished matches by source and the numbers of the models in both seats; None for anyone else."""
    of = MatchCount.source, MatchCount.model_0_id, MatchCount.model_1_id
    rows = session.execute(select(*of, _sum_of_matches()).where(MatchCount.round_id.is_(None)).group_by(*of))
    return [(source, first, second, number) for source, first, second, number in rows]


def rounds_with(session: Session, model_ids: Sequence[int], *, same: bool) -> Sequence[int]:
    """The rounds with finished matches that one of these models played with itself, or else with another model."""
    first, second = MatchCount.model_0_id, MatchCount.model_1_id
    found = session.scalars(
        select(MatchCount.round_id)
        .where(first == second if same else first != second, or_(first.in_(model_ids), second.in_(model_ids)))
        .where(MatchCount.round_id.is_not(None))
        .distinct()
    )
    return [number for number in found if number is not None]


def matches_over_of(model_id: Any) -> Any:
    """The number of a model's finished matches, without those of bots and previews, as an SQL expression."""
    of_model = or_(MatchCount.model_0_id == model_id, MatchCount.model_1_id == model_id)
    return (
        select(_sum_of_matches())
        .where(MatchCount.round_id.is_(None), MatchCount.source != REHEARSAL, of_model)
        .scalar_subquery()
    )


class EndedAs(NamedTuple):
    """Matches of a round that ended in one way with these models in the seats: columns as in MatchCount."""

    reason: str | None
    model_0_id: int | None
    matches: int
    scored: int
    points_0: float
    points_1: float


def endings_of_rounds(session: Session, round_ids: Sequence[int]) -> dict[int, list[EndedAs]]:
    """How the matches of rounds have ended so far, by round number."""
    keys = MatchCount.round_id, MatchCount.reason, MatchCount.model_0_id
    sums = [func.sum(getattr(MatchCount, name)) for name in _SUMS]
    found: dict[int, list[EndedAs]] = {number: [] for number in round_ids}
    for number, *ended in session.execute(
        select(*keys, *sums).where(MatchCount.round_id.in_(round_ids)).group_by(*keys)
    ):
        found[number].append(EndedAs(*ended))
    return found


def _sum_of_matches() -> Any:
    return func.coalesce(func.sum(MatchCount.matches), 0)


def _match_count_conditions(choice: MatchFilter) -> list[ColumnElement[bool]]:
    """The choice for a WHERE over MatchCount."""
    found: list[ColumnElement[bool]] = [MatchCount.round_id.is_(None)]
    if choice.status not in (None, _OVER):
        found.append(false())
    if not asks_for_rehearsals(choice):
        found.append(MatchCount.source != REHEARSAL)
    given = {name: getattr(choice, name) for name in ("game", "source", "reason")}
    found += [getattr(MatchCount, name) == value for name, value in given.items() if value is not None]
    seats = (MatchCount.model_0_id, MatchCount.imported_0), (MatchCount.model_1_id, MatchCount.imported_1)
    if choice.player == PERSON:
        found.append(or_(*(model.is_(None) & ~imported for model, imported in seats)))
    elif choice.player is not None:
        named = select(LanguageModel.id).where(LanguageModel.name == choice.player).scalar_subquery()
        found.append(or_(*(model == named for model, _ in seats)))
    return found


# ---- Kept in order -----------------------------------------------------------------


class _ReplacedMeanwhileError(Exception):
    """Another process has already replaced rows that were to be replaced."""


def merge(database: Engine) -> None:
    """Merge rows with equal keys, where there are many; upkeep does it now and then.

    These are looked up before anything is locked.
    """
    with reading(database) as session:
        grown = _grown(session)
    if grown:
        with contextlib.suppress(_ReplacedMeanwhileError):
            transact(database)(partial(_merge, grown=grown))


def _grown(session: Session) -> Sequence[int | None]:
    """The rounds, and None for all matches, that have far more rows than they need."""
    key = _key_and_sum_columns(MatchCount)[: len(_KEY)]
    alike = select(MatchCount.round_id, (func.count() - 1).label("more")).group_by(*key).subquery()
    many = select(alike.c.round_id).group_by(alike.c.round_id).having(func.sum(alike.c.more) >= _MANY)
    return session.scalars(many.limit(_GROUPS_AT_ONCE)).all()


def _merge(session: Session, grown: Sequence[int | None]) -> None:
    for round_id in grown:
        of_round = MatchCount.round_id.is_(None) if round_id is None else MatchCount.round_id == round_id
        kept: dict[_Key, _Kept] = {}
        for row in session.execute(select(MatchCount.id, *_key_and_sum_columns(MatchCount)).where(of_round)):
            _add_row_by_key(kept, row)
        alike = {key: found for key, found in kept.items() if len(found.ids) > 1 or not found.sums[0]}
        _replace(session, alike.values(), {key: found.sums for key, found in alike.items()})


def recount(database: Engine) -> Recount:
    """Count all finished matches, while Parlor runs, and correct wrong counts.

    Raises RuntimeError if others replace rows at every attempt.
    """
    for _ in range(_TRIES):
        with reading(database) as session:
            kept, counted = _kept_and_counted(session)
        differences = [
            WrongCount(dict(zip(_KEY, key, strict=True)), was, found)
            for key in sorted({*kept, *counted}, key=repr)
            if not _agree(was := kept[key].sums if key in kept else _NONE, found := counted.get(key, _NONE))
        ]
        matches = round(sum(sums[0] for key, sums in counted.items() if key[0] is None))
        if not differences:
            return Recount(matches, ())
        with contextlib.suppress(_ReplacedMeanwhileError):
            transact(database)(partial(_replace, kept=list(kept.values()), counted=counted))
            return Recount(matches, differences)
    raise RuntimeError("the counts of matches were replaced by others each time")


def _kept_and_counted(session: Session) -> tuple[dict["_Key", "_Kept"], dict["_Key", "_Sums"]]:
    """The kept and the actual counts: read in one statement, so that both are from the same moment."""
    counted = _counted(true()).subquery()
    both = select(MatchCount.id, *_key_and_sum_columns(MatchCount)).union_all(
        select(cast(null(), Integer), *_key_and_sum_columns(counted.c))
    )
    kept: dict[_Key, _Kept] = {}
    found: dict[_Key, _Kept] = {}
    for row in session.execute(both):
        _add_row_by_key(found if row[0] is None else kept, row)
    return kept, {key: each.sums for key, each in found.items()}


def _key_and_sum_columns(of: Any) -> list[Any]:
    return [getattr(of, name) for name in (*_KEY, *_SUMS)]


def _add_row_by_key(found: dict["_Key", "_Kept"], row: Sequence[Any]) -> None:
    """Add a row of an id, a key and sums to the entry of that key."""
    number, *rest = row
    key = tuple(rest[: len(_KEY)])
    before = found.get(key, _Kept([], _NONE))
    found[key] = _Kept([*before.ids, number], tuple(map(sum, zip(before.sums, rest[len(_KEY) :], strict=True))))


def _agree(one: "_Sums", other: "_Sums") -> bool:
    """Whether sums are equal, up to rounding from another order of addition."""
    return all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6) for a, b in zip(one, other, strict=True))


def _replace(session: Session, kept: Iterable["_Kept"], counted: Mapping["_Key", "_Sums"]) -> None:
    """Replace rows by sums. Raises _ReplacedMeanwhileError if another process was faster."""
    ids = [number for each in kept for number in each.ids]
    for start in range(0, len(ids), _DELETED_AT_ONCE):
        some = ids[start : start + _DELETED_AT_ONCE]
        gone = session.scalars(delete(MatchCount).where(MatchCount.id.in_(some)).returning(MatchCount.id)).all()
        if len(gone) < len(some):
            raise _ReplacedMeanwhileError
    rows = [dict(zip((*_KEY, *_SUMS), (*key, *sums), strict=True)) for key, sums in counted.items() if sums[0]]
    if rows:
        session.execute(insert(_TABLE), rows)
