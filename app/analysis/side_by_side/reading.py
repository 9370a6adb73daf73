"""The matches of models side by side, read by setting, and what was said in them.

People's matches do not count if they belong to a rehearsal, to practice, to a participant who withdrew or to a wave
that is not frozen, or if anything in them was erased. Matches in which a model had a system prompt besides the rules do
not count either, because that makes it another player.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Select, false, func, or_, select
from sqlalchemy.orm import Session

from app.analysis.reading import finished, finished_match, model_names
from app.analysis.side_by_side.settings import (
    CROSS_PLAY,
    IMPORTED_PEOPLE,
    OF_MODELS,
    PEOPLE_ALONE,
    SELF_PLAY,
    WITH_PEOPLE,
    Kind,
    SettingMatches,
    SideBySideChoice,
    SpokenMatch,
)
from app.analysis.tournaments import counted_people, has_no_system_prompt
from app.core.errors import Invalid, NotFound, Phrase, Verbatim, either
from app.games import GAMES, find_game, partner_weight_of
from app.games.base import JSON, Event
from app.games.match_table import FinishedMatch, of_rows
from app.games.talk import Talk
from app.matches import counts
from app.matches.events import RESERVED, from_json
from app.matches.filter import MatchFilter, check_known, conditions, is_over, unindexed
from app.models import EventRow, LanguageModel, MatchRow, RoundRow, SeatRow
from app.registry import PERSON
from app.rounds.job import IMPORT, SELFPLAY

_AT_ONCE = 5_000  # rows in memory
_IDS_AT_ONCE = 400  # in a statement


def check_choice(session: Session, choice: SideBySideChoice) -> None:
    """Raises NotFound for an unknown model, game, round or study, and Invalid for what cannot be compared."""
    known = list(session.scalars(select(LanguageModel.name).where(LanguageModel.name.in_(choice.models))))
    for name in choice.models:
        if name not in known:
            raise NotFound("model", expected=Phrase("the name of a model in the registry"), got=name)
    if len({*choice.models}) != len(choice.models) or not choice.models:
        got = Verbatim(", ".join(choice.models) or "none")
        raise Invalid("models", expected=Phrase("one or more, each once"), got=got)
    if choice.base not in choice.models:
        raise Invalid("base", expected=either(choice.models), got=choice.base)
    if choice.game is not None:
        find_game(choice.game)
    check_known(session, MatchFilter(study=choice.study))
    found = set(session.scalars(select(RoundRow.id).where(RoundRow.id.in_(choice.rounds or ()))))
    for number in choice.rounds or ():
        if number not in found:
            raise NotFound("round", expected=Phrase("the number of one that exists"), got=number)


@dataclass
class _Collected:
    """The matches of one game, weight and setting while they are read."""

    game: str
    rows: list[FinishedMatch] = field(default_factory=list)
    units: dict[Any, int] = field(default_factory=dict)
    materials: dict[Any, int] = field(default_factory=dict)
    material: list[int] = field(default_factory=list)
    spoken: list[SpokenMatch] = field(default_factory=list)
    joint: list[float] = field(default_factory=list)  # NaN: only the log shows it
    deals_to_read: dict[str, int] = field(default_factory=dict)  # places by match
    refused: list[tuple[float, float]] = field(default_factory=list)
    refusals_to_read: dict[str, int] = field(default_factory=dict)

    def whole(self, setting: str, *, sampled: bool) -> SettingMatches:
        """All the matches as columns."""
        table = replace(
            of_rows(self.rows), joint_share=np.array(self.joint), seat_violations=np.array(self.refused, np.float64)
        )
        return SettingMatches(setting, table, np.array(self.material, np.int64), self.spoken, sampled)


def read_matches(session: Session, choice: SideBySideChoice) -> dict[Kind, dict[str, SettingMatches]]:
    """The finished matches, by game and weight, and then by setting; empty ones are left out.

    `choice` must have passed `check_choice`.
    """
    chosen = session.scalars(select(LanguageModel.id).where(LanguageModel.name.in_(choice.models))).all()
    collected: dict[tuple[Kind, str], _Collected] = {}
    sampled = set()
    for where in _conditions_of_settings(session, choice, chosen):
        if choice.most is not None:  # ids first: PostgreSQL planned a combined statement badly
            some = select(MatchRow.id).where(is_over(), *where).order_by(MatchRow.id).limit(choice.most + 1)
            where = [MatchRow.id.in_(session.scalars(some).all())]
        rows = session.execute(_statement(where), execution_options={"yield_per": _AT_ONCE})
        names = model_names(session)
        for number, row in enumerate(rows):
            setting = _setting_of_match(row)
            if choice.most is not None and number >= choice.most:
                sampled.add(setting)
                break
            kind = row.game, partner_weight_of(row.game, row.config)
            if choice.partner_weight is None or kind[1] == choice.partner_weight:
                _add_match(collected.setdefault((kind, setting), _Collected(row.game)), row, names, setting)
    for group in collected.values():
        _read_deals(session, group)
        _read_refusals(session, group)
    found: dict[Kind, dict[str, SettingMatches]] = {}
    for kind, setting in sorted(collected, key=lambda key: (key[0][0], key[0][1] or 0)):
        found.setdefault(kind, {})[setting] = collected[kind, setting].whole(setting, sampled=setting in sampled)
    return found


def _conditions_of_settings(
    session: Session, choice: SideBySideChoice, chosen: Sequence[int]
) -> Iterator[Sequence[ColumnElement[bool]]]:
    """The conditions of each statement: models in rounds alone and with others, with people, people alone."""
    by_index = MatchRow.id.in_(select(SeatRow.match_id).where(SeatRow.language_model_id.in_(chosen)))
    both = select(func.min(SeatRow.kind)).where(SeatRow.match_id == MatchRow.id).correlate(MatchRow).scalar_subquery()
    people_alone = both == PERSON  # min("model", "person") is "model"
    first, second = (
        select(SeatRow.language_model_id).where(SeatRow.match_id == MatchRow.id, SeatRow.seat == seat)
        .correlate(MatchRow).scalar_subquery()
        for seat in (0, 1)
    )  # fmt: skip
    in_rounds = [MatchRow.source == SELFPLAY, has_no_system_prompt()]
    if choice.rounds is not None:
        in_rounds.append(MatchRow.round_id.in_(choice.rounds))
    counted = [*conditions(MatchFilter(study=choice.study)), counted_people(), has_no_system_prompt()]
    imported = [MatchRow.source == IMPORT, MatchRow.erased_at.is_(None), people_alone]
    parts = {
        SELF_PLAY: [*in_rounds, first == second],
        CROSS_PLAY: [*in_rounds, first != second],
        WITH_PEOPLE: counted,
        PEOPLE_ALONE: [*counted, people_alone],
        IMPORTED_PEOPLE: imported if choice.study is None else [false()],
    }
    games = MatchRow.game.in_([choice.game] if choice.game is not None else list(GAMES))
    over, most_of = _numbers_over(session, chosen)
    for setting, where in parts.items():
        of_models = setting in OF_MODELS
        whole = choice.most is None or choice.study is not None
        if whole or (choice.rounds is not None and setting in (SELF_PLAY, CROSS_PLAY)):
            yield [games, *where, *([by_index] if of_models else [])]
        elif 10 * most_of[setting] >= over:
            # Among many, the lowest ids are found soon; by an index, a million would be sorted to take a few.
            either_seat = [or_(first.in_(chosen), second.in_(chosen))] if of_models else []
            yield unindexed([games, *where, *either_seat])
        elif most_of[setting] and setting in (SELF_PLAY, CROSS_PLAY):
            # These few matches, among a model's many, are found through the rounds that have any.
            rounds = counts.rounds_with(session, chosen, same=setting == SELF_PLAY)
            yield [
                MatchRow.round_id.in_(rounds),
                *unindexed([games, *where, or_(first.in_(chosen), second.in_(chosen))]),
            ]
        elif most_of[setting]:
            yield [games, *where, *([by_index] if of_models else [])]


def _numbers_over(session: Session, chosen: Sequence[int]) -> tuple[int, Mapping[str, int]]:
    """The number of finished matches, and at most how many of each setting, by the stored counts."""
    found: Counter[str] = Counter()
    over = 0
    for source, *models, number in counts.over_by_models(session):
        over += number
        people = [each is None for each in models]
        if source == IMPORT:
            found[IMPORTED_PEOPLE] += number
        elif all(people):
            found[PEOPLE_ALONE] += number
        elif not set(models).isdisjoint(chosen):
            setting = WITH_PEOPLE if any(people) else SELF_PLAY if models[0] == models[1] else CROSS_PLAY
            found[setting] += number
    return over, found


def _statement(where: Sequence[ColumnElement[bool]]) -> Select[Any]:
    seats = select(SeatRow.participant_id).where(SeatRow.match_id == MatchRow.id).correlate(MatchRow)
    return (
        finished()
        .add_columns(
            MatchRow.id, MatchRow.game, MatchRow.config, MatchRow.seed, MatchRow.source,
            seats.where(SeatRow.seat == 0).scalar_subquery().label("person_0"),
            seats.where(SeatRow.seat == 1).scalar_subquery().label("person_1"),
        )
        .where(*where)
        .order_by(MatchRow.id)
    )  # fmt: skip


def _setting_of_match(row: Any) -> str:
    first, second = row[2], row[4]  # models
    if row.source == SELFPLAY:
        return SELF_PLAY if first == second else CROSS_PLAY
    if first is not None or second is not None:
        return WITH_PEOPLE
    return IMPORTED_PEOPLE if row.source == IMPORT else PEOPLE_ALONE


def _independent_unit(row: Any, setting: str, material: Any) -> Any:
    """The unit that was drawn independently; an unidentified person counts as one of a single match."""
    people = {each for each in (row.person_0, row.person_1) if each is not None}
    if setting in (SELF_PLAY, CROSS_PLAY):
        return material
    if setting == IMPORTED_PEOPLE or not people:
        return row.id
    return frozenset(people)


def _add_match(group: _Collected, row: Any, names: Mapping[int, str], setting: str) -> None:
    place, game = len(group.rows), find_game(group.game)
    material = row.seed, json.dumps(row.config, sort_keys=True)
    unit = group.units.setdefault(_independent_unit(row, setting, material), len(group.units))
    match = finished_match(names, unit, *row[2:19])
    facts: JSON | None = None if match.agreed else {}
    joint = game.joint_share(row.config, match.utilities, facts)
    if joint is None and facts is None:
        group.deals_to_read[row.id] = place
    group.joint.append(float("nan") if joint is None else joint)
    if setting == SELF_PLAY or not match.violations:  # both seats are the same model: half each
        group.refused.append((match.violations / 2, match.violations / 2))
    else:
        group.refused.append((0, 0))
        group.refusals_to_read[row.id] = place
    group.rows.append(match)
    group.material.append(group.materials.setdefault(material, len(group.materials)))
    group.spoken.append(SpokenMatch(row.id, row.config))


def _read_deals(session: Session, group: _Collected) -> None:
    """Read what both got from the deals whose scores do not show it."""
    game = find_game(group.game)
    for match_id, body in _events_of_kinds(session, list(group.deals_to_read), ("ended",)):
        place = group.deals_to_read[match_id]
        joint = game.joint_share(group.spoken[place].config, group.rows[place].utilities, body["facts"])
        group.joint[place] = float("nan") if joint is None else joint


def _read_refusals(session: Session, group: _Collected) -> None:
    """Read whose moves were refused."""
    for match_id, body in _events_of_kinds(session, list(group.refusals_to_read), ("violation",)):
        place = group.refusals_to_read[match_id]
        first, second = group.refused[place]
        group.refused[place] = (first + 1, second) if body["seat"] == 0 else (first, second + 1)


def _events_of_kinds(session: Session, ids: Iterable[str], kinds: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The events of these kinds, or of all kinds of moves, in order within each match."""
    left = iter(ids)
    while some := list(islice(left, _IDS_AT_ONCE)):
        of_kind = EventRow.kind.in_(kinds) if kinds else EventRow.kind.not_in(RESERVED)
        wanted = select(EventRow.match_id, EventRow.body).where(EventRow.match_id.in_(some), of_kind)
        for row in session.execute(wanted.order_by(EventRow.match_id, EventRow.seq)):
            yield row.match_id, row.body


# ---- What was said ---------------------------------------------------------------


def read_talks(session: Session, game: str, matches: Sequence[SpokenMatch]) -> list[tuple[Talk, Talk]]:
    """What each seat said in each match."""
    moves: dict[str, list[Event]] = {each.match_id: [] for each in matches}
    for match_id, body in _events_of_kinds(session, moves, ()):
        move = from_json(body)
        if isinstance(move, Event):
            moves[match_id].append(move)
    found = find_game(game)
    return [
        (found.talk(each.config, moves[each.match_id], 0), found.talk(each.config, moves[each.match_id], 1))
        for each in matches
    ]
