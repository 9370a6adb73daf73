"""Builds the rows of a dataset from matches: one chat per kept seat, exactly as its player was prompted and moved.

The same spec on the same matches gives the same bytes: rows are ordered by round, index and seat, their JSON is compact
with sorted keys. Matches are read in batches, twice: first their scores alone, then the kept ones in full.
"""

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import ColumnElement, Row, Select, func, select
from sqlalchemy.orm import Session, aliased

from app.core.errors import Invalid, Phrase, Verbatim, refusals_of, refusals_within
from app.datasets import filters
from app.datasets.rewards import MoveRewards, RewardCounts, move_rewards
from app.datasets.spec import DatasetSpec
from app.datasets.transcripts import PromptedTranscript, SampledTurn, TranscriptRequest, transcripts
from app.games import find_game, formula_of, partner_weight_of, permutations_of
from app.games.base import GROUNDED, JSON
from app.games.permutations import Order
from app.games.rewards import RewardTotals, SeatResult
from app.jobs.page import job_references
from app.matches.filter import EVERYTHING, check_known, conditions, in_words, is_over
from app.matches.held_out import held_out_keys, is_on
from app.models import LanguageModel, MatchRow, RoundRow, SeatRow
from app.models.types import rounded_log_probs
from app.players.prompts import USUAL_STYLE, default_prompt, wordings
from app.registry import get_model
from app.rounds.held_out import is_held_out
from app.rounds.job import ROUND

AT_ONCE = 200  # matches in memory
_SCORES_AT_ONCE = 5_000
_SHOWN_SCORES = 8  # of a distribution, in one line
_LOCAL = "local"  # models whose checkpoints are known by their hash
_SEATS = aliased(SeatRow), aliased(SeatRow)

Seat = tuple[str, int]  # of a match by its id
Pool = tuple[int | None, str, float]  # round or None, game, partner's weight: matches that share a mean


class SeatModel(NamedTuple):
    """A model that filled seats: its name and, if it is local, the hash of its checkpoint."""

    name: str
    sha256: str | None


class TrainingRow(NamedTuple):
    """A row of a dataset: its bytes including the line break, its origin, and its counts."""

    line: bytes
    round_id: int | None
    match_id: str
    seat: int
    score: float
    words: int  # of all messages
    own_words: int  # of the moves to be learned
    own_moves: int
    game: str
    role: str
    rewards: tuple[float, ...] = ()  # of the moves to be learned, if the dataset has any
    weight: float = 1.0  # of the moves to be learned
    policy: str | None = None  # the checkpoint_sha256 of the local model that played, if the dataset has rewards
    order: Order | None = None  # of the item types, if not as played


@dataclass(slots=True)
class DatasetBuild:
    """The spec of a dataset and the data found so far. `left` counts the transcripts left after each selection step.

    `totals`, by game, are the inputs of reward formulas, `wordings` the prompts from which each row draws one, and
    `held_out` the material that studies hold out, which does not apply to a dataset of a study's matches. For a
    control, `drawn` are the seats that give rows, and `exchanged` the results by which seats are rewarded.
    """

    spec: DatasetSpec
    prompts: Mapping[str, JSON]  # by game, for players without a prompt
    scores: Mapping[Pool, Counter[float]]  # of both seats of all finished matches
    means: Mapping[Pool, float]
    matches: int  # that meet the spec's conditions on matches
    totals: Mapping[str, RewardTotals] = field(default_factory=dict)
    wordings: Mapping[str, Sequence[JSON]] = field(default_factory=dict)
    held_out: Mapping[str, Collection[str]] = field(default_factory=dict)
    drawn: Collection[Seat] | None = None
    exchanged: Mapping[Seat, SeatResult] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)

    @property
    def seats(self) -> Counter[float]:
        """The number of seats with each score."""
        return sum(self.scores.values(), Counter())


def prepare(session: Session, spec: DatasetSpec) -> DatasetBuild:
    """Compute the means, check the request, and settle the prompt style.

    Raises NotFound for an unknown round, model or prompt style, or anything else unknown in the choice of matches,
    Conflict for a removed round, and Invalid if no match is over or if models read messages of other matches.
    """
    if session.get_bind().dialect.name == "postgresql":  # SQLite reads a snapshot anyway
        session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
    with refusals_of("rounds"):
        for number in spec.rounds:
            row = ROUND.get(session, number)
            ROUND.check_there(row)
            _check_talk(session, row)
    with refusals_of("models"):
        for name in spec.models:
            get_model(session, name)
    with refusals_within("matches"):
        check_known(session, spec.matches)
    scores = _score_counts(session, spec)
    if not scores:
        raise Invalid(
            None, expected=Phrase("matches that are over"), got=Phrase("none"), subject=_matches_in_words(spec)
        )
    if spec.matches.campaign is not None:  # it may continue: the same spec must give the same rows later
        spec = replace(spec, rounds=tuple(sorted({number for number, _, _ in scores if number is not None})))
    means = {pool: _mean_score(filters.compared_with(spec.filter, counted)) for pool, counted in scores.items()}
    style = spec.style or _style(session, spec)
    prompts = {game: default_prompt(game, style) for game in _games_of_pools(spec, scores)}
    matches = session.scalar(select(func.count()).select_from(MatchRow).where(*_over(spec), *_alike(spec))) or 0
    wordings = {} if spec.wordings is None else {game: _wordings(game, each, spec) for game, each in prompts.items()}
    held_out = {} if spec.matches.study is not None else {game: held_out_keys(session, game) for game in prompts}
    found = DatasetBuild(
        replace(spec, style=style), prompts, scores, means, matches, wordings=wordings, held_out=held_out
    )
    if spec.grounded:
        _check_measured(session, spec)
    if spec.control == filters.RANDOM_ROWS:
        found = replace(found, drawn=_random_seats(session, found))
    if not spec.has_rewards:
        return found
    found = replace(found, totals=_totals(session, found))
    return replace(found, exchanged=_exchanged(session, found)) if spec.control == filters.SHUFFLED_REWARDS else found


def training_rows(session: Session, reading: DatasetBuild) -> Iterator[list[TrainingRow]]:
    """The rows of each match that meets the conditions, in order; empty for a match of which nothing is kept."""
    models = _seat_models(session)
    for pool_matches in _candidates(session, reading.spec):
        chosen: dict[str, tuple[Row[Any], float, TranscriptRequest]] = {}
        for pool, matches in pool_matches:
            for row, kept in zip(matches, _filtered(reading, pool, matches), strict=True):
                seats = _chosen_seats(reading, row, models, kept, reading.left)
                request = TranscriptRequest(
                    seats,
                    reading.prompts[row.game],
                    _drawn_wordings(reading, row),
                    reading.spec.keeps_reasoning,
                    _drawn_orders(reading, row),
                )
                chosen[row.id] = row, pool[2], request
        transcript = transcripts(session, {match: wanted for match, (_, _, wanted) in chosen.items() if wanted.seats})
        for match, (row, partner_weight, _) in chosen.items():
            found = list(_training_rows(reading, row, partner_weight, models, transcript.get(match, ())))
            reading.left["permuted"] += len({(each.seat, each.order) for each in found if each.order is not None})
            reading.left["moves"] += len(found)
            reading.left["rewards"] += sum(bool(each.rewards) for each in found)
            yield found


def _wordings(game: str, prompt: JSON, spec: DatasetSpec) -> list[JSON]:
    """As many wordings of a prompt as the spec asks for, the prompt itself first. Raises Invalid if there are too
    few.
    """
    found = wordings(game, prompt)
    wanted = spec.wordings or 1
    if len(found) < wanted:
        raise Invalid(
            "wordings",
            expected=Phrase(
                "at most %(most)s, as many as there are of %(style)s in %(game)s",
                most=len(found), style=Verbatim(prompt["style"]), game=Verbatim(game),
            ),
            got=wanted,
            remedy=Phrase("name another style") if spec.style is None else None,
        )  # fmt: skip
    return found[:wanted]


def _drawn_wordings(reading: DatasetBuild, match: Row[Any]) -> Mapping[int, JSON]:
    """The wording of each seat of a match, determined by seed, match and seat alone; empty if none are asked for."""
    if not reading.wordings:
        return {}
    known, seed = reading.wordings[match.game], reading.spec.seed
    return {seat: random.Random(f"{seed}:{match.id}:{seat}").choice(known) for seat in (0, 1)}


def _drawn_orders(reading: DatasetBuild, match: Row[Any]) -> Sequence[Order]:
    """The orders of the item types in which copies of a match are added, determined by seed and match alone.

    Orders that would put it on held-out material, of campaigns and recipes or of studies, are left out; so there may be
    fewer than asked for.
    """
    if not reading.spec.permutations:
        return ()
    permutations, kind = permutations_of(match.game), find_game(match.game).material

    def may_be_learnt(order: Order) -> bool:
        config = permutations.of_config(match.config, order)
        piece = None if kind is None else kind.piece_of(config)
        held_out = kind is not None and piece is not None and is_held_out(kind, piece)
        return not held_out and not is_on(match.game, config, reading.held_out.get(match.game, ()))

    allowed = [order for order in permutations.orders if may_be_learnt(order)]
    rng = random.Random(f"{reading.spec.seed}:{match.id}:orders")
    return rng.sample(allowed, min(reading.spec.permutations, len(allowed)))


def refuse_nothing(reading: DatasetBuild) -> None:
    """Raises Invalid, which names the condition that left nothing, and the distribution of the scores."""
    spec, left = reading.spec, reading.left
    steps = (
        ("matches", _conditions_in_words(spec) or "matches on material that no study holds out"),
        ("filter", f"filter {spec.filter}{' and grounded' if spec.grounded else ''}"),
        ("source", f"speakers {spec.speakers}"),
        ("model", f"model {' or '.join(spec.models)}"),
        ("consent", "training consent of the people in the match"),
        ("moves", "moves of the seats that are left"),
        *((("rewards", f"rewards {spec.rewards}"),) if spec.has_rewards else ()),
    )
    before = reading.seats.total()
    for step, name in steps:
        if not left[step]:
            raise Invalid(
                "speakers" if step == "source" else step,  # as specs and forms call it
                expected=Phrase("to keep at least one transcript"),
                got=Phrase("none of %(before)s", before=before),
                remedy=Phrase(
                    "scores in %(matches)s: %(scores)s", matches=_matches_in_words(spec), scores=_distribution(reading)
                ),
                subject=name,
            )
        before = left[step]


def _check_talk(session: Session, row: RoundRow) -> None:
    """Raises Invalid for a round whose models read the messages of another one: its rows would have text that no model
    read.
    """
    if row.talk_of is not None:
        cells = job_references(session, ROUND, [row.id, row.talk_of])
        raise Invalid(
            "rounds",
            expected=Phrase("rounds whose models read what their partners said"),
            got=Phrase(
                "%(round)s, whose models read messages of %(other)s",
                round=cells[row.id].words,
                other=cells[row.talk_of].words,
            ),
        )


# ---- Choosing -----------------------------------------------------------------


def _over(spec: DatasetSpec) -> list[ColumnElement[bool]]:
    """Conditions for the finished matches over which means are taken."""
    found = [is_over(), *conditions(spec.batch)]
    if spec.rounds:
        found.append(MatchRow.round_id.in_(spec.rounds))
    elif spec.outside_rounds:
        found.append(MatchRow.round_id.is_(None))
    elif spec.matches.match is not None:
        found += _played_with(spec.matches.match)
    if not spec.rounds:  # `_check_talk` checks named rounds
        exchanged = select(RoundRow.id).where(RoundRow.talk_of.is_not(None))
        found.append(MatchRow.round_id.is_(None) | MatchRow.round_id.not_in(exchanged))
    return found


def _played_with(match: str) -> list[ColumnElement[bool]]:
    """Conditions for the matches in the same round as a match; or, if it is in none, of its game outside rounds."""
    own = aliased(MatchRow)
    played, game = (select(column).where(own.id == match).scalar_subquery() for column in (own.round_id, own.game))
    return [MatchRow.game == game, MatchRow.round_id.is_not_distinct_from(played)]


def _alike(spec: DatasetSpec) -> list[ColumnElement[bool]]:
    return conditions(spec.choice)


_ORDER = (func.coalesce(MatchRow.round_id, 0), func.coalesce(MatchRow.index, 0), MatchRow.started_at, MatchRow.id)


def _score_counts(session: Session, spec: DatasetSpec) -> dict[Pool, Counter[float]]:
    statement = select(MatchRow.round_id, MatchRow.game, MatchRow.config, MatchRow.utility_0, MatchRow.utility_1)
    found: dict[Pool, Counter[float]] = {}
    for row in session.execute(statement.where(*_over(spec)), execution_options={"yield_per": _SCORES_AT_ONCE}):
        found.setdefault(_pool(row), Counter()).update((row.utility_0 or 0, row.utility_1 or 0))
    return found


def _mean_score(counted: Counter[float]) -> float:
    """The mean of scores, weighted by how often each occurred; 0 for none."""
    return math.fsum(score * number for score, number in sorted(counted.items())) / max(1, counted.total())


def _games_of_pools(spec: DatasetSpec, pools: Iterable[Pool]) -> list[str]:
    """The games of these matches. Raises Invalid if the spec asks for item orders and a game does not have them."""
    found = sorted({game for _, game, _ in pools})
    if spec.permutations:
        for game in found:
            permutations_of(game)
    return found


def _style(session: Session, spec: DatasetSpec) -> str:
    """The prompt style of all models in the matches: a model trained on from one of them then reads all rows in its
    style.

    The default style if they have several or none.
    """
    styles = session.scalars(
        select(LanguageModel.prompt_style)
        .join(SeatRow, SeatRow.language_model_id == LanguageModel.id)
        .join(MatchRow, MatchRow.id == SeatRow.match_id)
        .where(LanguageModel.prompt_style.is_not(None), *_over(spec))
        .distinct()
    ).all()
    return str(styles[0]) if len(styles) == 1 else USUAL_STYLE


def _candidates(session: Session, spec: DatasetSpec) -> Iterator[list[tuple[Pool, list[Row[Any]]]]]:
    """The matches that meet the conditions, in order, in batches grouped by pool."""
    statement = _match_columns().where(*_over(spec), *_alike(spec)).order_by(*_ORDER)
    rows = session.execute(statement, execution_options={"yield_per": AT_ONCE})
    for part in rows.partitions():
        yield [(pool, list(group)) for pool, group in groupby(part, _pool)]


def _seat_models(session: Session) -> dict[int, SeatModel]:
    columns = select(LanguageModel.id, LanguageModel.name, LanguageModel.kind, LanguageModel.options)
    return {
        row.id: SeatModel(row.name, row.options["sha256"] if row.kind == _LOCAL else None)
        for row in session.execute(columns)
    }


def _match_columns() -> Select[Any]:
    first, second = _SEATS
    columns: list[Any] = [
        column.label(f"{name}_{number}")
        for number, seat in enumerate(_SEATS)
        for name, column in (
            ("kind", seat.kind), ("model", seat.language_model_id), ("consent", seat.training_consent),
        )
    ]  # fmt: skip
    return (
        select(
            MatchRow.id, MatchRow.round_id, MatchRow.game, MatchRow.config, MatchRow.source,
            MatchRow.utility_0, MatchRow.utility_1, MatchRow.agreed, MatchRow.winner, MatchRow.reason,
            MatchRow.measures, *columns,
        )
        .join(first, (first.match_id == MatchRow.id) & (first.seat == 0))
        .join(second, (second.match_id == MatchRow.id) & (second.seat == 1))
    )  # fmt: skip


def _pool(row: Row[Any]) -> Pool:
    return row.round_id, row.game, partner_weight_of(row.game, row.config) or 0.0


def _filtered(reading: DatasetBuild, pool: Pool, matches: Sequence[Row[Any]]) -> Any:
    """The seats of a pool's matches that the filter, or a control in its place, keeps: (n, 2)."""
    if reading.drawn is not None:
        return np.array([[(row.id, seat) in reading.drawn for seat in (0, 1)] for row in matches])
    utilities = np.array([(row.utility_0 or 0, row.utility_1 or 0) for row in matches], np.float64)
    agreed = np.array([bool(row.agreed) for row in matches])
    kept = filters.keeps(reading.spec.filter, utilities, agreed, reading.means[pool], pool[2])
    if not reading.spec.grounded:
        return kept
    return kept & np.array([[bool((row.measures or {}).get(each)) for each in GROUNDED] for row in matches])


def _check_measured(session: Session, spec: DatasetSpec) -> None:
    """Raises Invalid if matches are not measured, because it is unknown whether their proposals are grounded."""
    unmeasured = select(func.count()).select_from(MatchRow).where(*_over(spec), *_alike(spec))
    if number := session.scalar(unmeasured.where(MatchRow.measures.is_(None))):
        raise Invalid(
            "grounded",
            expected=Phrase("matches of a game that measures proposals, measured when they ended"),
            got=Phrase("%(number)s that were not", number=number),
            remedy=Phrase("`flask match measure` measures those of earlier releases"),
        )


def _random_seats(session: Session, reading: DatasetBuild) -> frozenset[Seat]:
    """Seats drawn by the seed from all that might give rows, as many of each pool as its filter keeps."""
    models, uncounted = _seat_models(session), Counter[str]()
    possible: dict[Pool, list[Seat]] = {}
    kept: Counter[Pool] = Counter()
    for pool_matches in _candidates(session, reading.spec):
        for pool, matches in pool_matches:
            for row, keeps in zip(matches, _filtered(reading, pool, matches), strict=True):
                seats = _chosen_seats(reading, row, models, (True, True), uncounted)
                possible.setdefault(pool, []).extend((row.id, seat) for seat in seats)
                kept[pool] += sum(bool(keeps[seat]) for seat in seats)
    rng = random.Random(reading.spec.seed)
    return frozenset(seat for pool, seats in possible.items() for seat in rng.sample(seats, kept[pool]))


def _chosen_seats(
    reading: DatasetBuild,
    row: Row[Any],
    models: Mapping[int, SeatModel],
    kept: Sequence[bool],
    left: Counter[str],
) -> list[int]:
    """The seats of a match whose transcripts are kept, as far as can be told without reading it.

    `kept` is the filter's decision on each seat; `left` counts the seats after each step.
    """
    spec, kinds = reading.spec, (row.kind_0, row.kind_1)
    held_out = is_on(row.game, row.config, reading.held_out.get(row.game, ()))
    asked = all(
        filters.may_train(*each, row.source) for each in zip(kinds, (row.consent_0, row.consent_1), strict=True)
    )
    names = spec.models
    steps: tuple[tuple[str, Callable[[int], bool]], ...] = (
        ("matches", lambda _: not held_out),
        ("filter", lambda seat: bool(kept[seat])),
        ("source", lambda seat: filters.is_of(spec.speakers, kinds[seat])),
        ("model", lambda seat: not names or _model_of_seat(row, models, seat).name in names),
        # The row also has the partner's words: without everyone's consent, nothing of the match is used.
        ("consent", lambda _: asked),
    )
    chosen = [0, 1]
    for step, holds in steps:
        chosen = [seat for seat in chosen if holds(seat)]
        left[step] += len(chosen)
    return chosen


def _model_of_seat(row: Row[Any], models: Mapping[int, SeatModel], seat: int) -> SeatModel:
    """The model that filled a seat; one without a name if no model did."""
    return models.get((row.model_0, row.model_1)[seat], SeatModel("", None))


# ---- Rewards ------------------------------------------------------------------


def _totals(session: Session, reading: DatasetBuild) -> Mapping[str, RewardTotals]:
    """The inputs of reward formulas. Means are over the requested seats, whether or not the filter keeps them.

    Raises Invalid for a game whose moves have no rewards.
    """
    models, counts, uncounted = _seat_models(session), RewardCounts(), Counter[str]()
    for pool_matches in _candidates(session, reading.spec):
        for pool, matches in pool_matches:
            formula_of(pool[1])
            for row, kept in zip(matches, _filtered(reading, pool, matches), strict=True):
                for seat in _chosen_seats(reading, row, models, (True, True), uncounted):
                    if (result := _seat_result(row, seat, pool[2])) is not None:
                        counts.add(row.game, result, gives_rows=bool(kept[seat]))
    return counts.totals()


def _exchanged(session: Session, reading: DatasetBuild) -> Mapping[Seat, SeatResult]:
    """The results of the seats that give rows, shuffled by the seed within each game, role and objective."""
    models, uncounted = _seat_models(session), Counter[str]()
    seats: dict[tuple[str, str, float], list[tuple[Seat, SeatResult]]] = {}
    for pool_matches in _candidates(session, reading.spec):
        for pool, matches in pool_matches:
            for row, kept in zip(matches, _filtered(reading, pool, matches), strict=True):
                for seat in _chosen_seats(reading, row, models, kept, uncounted):
                    if (result := _seat_result(row, seat, pool[2])) is not None:
                        seats.setdefault((row.game, result.role, pool[2]), []).append(((row.id, seat), result))
    rng = random.Random(reading.spec.seed)
    exchanged: dict[Seat, SeatResult] = {}
    for group in seats.values():
        results = [result for _, result in group]
        rng.shuffle(results)
        exchanged |= dict(zip((seat for seat, _ in group), results, strict=True))
    return exchanged


def _seat_result(row: Row[Any], seat: int, partner_weight: float) -> SeatResult | None:
    """The result of a match for a seat; None if it was not played to its end."""
    game = find_game(row.game)
    if row.reason not in game.outcomes:
        return None
    return SeatResult(game.roles[seat], (row.utility_0, row.utility_1)[seat] or 0, row.winner == seat, partner_weight)


# ---- Rows ---------------------------------------------------------------------


def _training_rows(
    reading: DatasetBuild,
    match: Row[Any],
    partner_weight: float,
    models: Mapping[int, SeatModel],
    found: Sequence[PromptedTranscript],
) -> Iterator[TrainingRow]:
    """The rows of a match. A seat's reward is shared among its moves in all of its chats with the same order of the
    items.
    """
    for (seat, _), chats in groupby(found, lambda each: (each.seat, each.order)):
        transcript = list(chats)
        rewards = None
        if reading.spec.has_rewards:
            moves = sum(each["role"] == "assistant" for chat in transcript for each in chat.chat)
            result = reading.exchanged.get((match.id, seat)) or _seat_result(match, seat, partner_weight)
            rewards = move_rewards(reading.spec, match.game, result, reading.totals, moves)
        done = 0
        for each in transcript:
            row = _training_row(reading.spec, match, each, rewards, done, _model_of_seat(match, models, seat).sha256)
            done += sum(message["role"] == "assistant" for message in each.chat)
            if row.own_moves or rewards is not None:  # without rewards, a row needs moves to learn
                yield row


def _training_row(
    spec: DatasetSpec,
    match: Row[Any],
    transcript: PromptedTranscript,
    rewards: MoveRewards | None,
    done: int,
    policy: str | None,
) -> TrainingRow:
    """The row of a chat; `done` is the number of the seat's moves before it."""
    chat: list[dict[str, Any]] = [dict(message) for message in transcript.chat]
    own = [message for message in chat if message["role"] == "assistant"]
    role = find_game(match.game).roles[transcript.seat]
    row: JSON = {"group": f"{match.id}:{transcript.seat}", "messages": chat}
    row |= _add_sampled(chat, transcript.sampled)
    if transcript.wording is not None:
        row["wording"] = transcript.wording
    if transcript.order is not None:
        row["order"] = [*transcript.order]
    weight = 1.0
    given: tuple[float, ...] = ()
    if rewards is not None:
        row["game"] = match.game
        if policy is not None:
            row["policy"] = policy
        weight, given = rewards.weight, tuple(rewards.rewards[done : done + len(own)])
        for message, reward in zip(own, given, strict=True):
            message |= {"player_role": role, "reward": reward, "weight": weight}
    factors = [spec.message_weight if kind == "message" else spec.proposal_weight for kind in transcript.kinds]
    for message, factor in zip(own, factors, strict=True):
        if factor != 1:
            message["weight"] = weight * factor
    learnt = [message for message, factor in zip(own, factors, strict=True) if weight * factor]
    line = json.dumps(row, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"
    return TrainingRow(
        line=line.encode(),
        round_id=match.round_id,
        match_id=match.id,
        seat=transcript.seat,
        score=(match.utility_0, match.utility_1)[transcript.seat] or 0,
        words=sum(len(each["content"].split()) for each in chat),
        own_words=sum(len(each["content"].split()) for each in learnt),
        own_moves=len(learnt),
        game=match.game,
        role=role,
        rewards=given if weight else (),
        weight=weight,
        policy=None if rewards is None else policy,
        order=transcript.order,
    )


def _add_sampled(chat: Sequence[dict[str, Any]], sampled: Sequence[SampledTurn]) -> JSON:
    """Add the sampled token ids to the seat's moves, and log-probabilities if all are known. Returns the row's own
    fields.
    """
    if not sampled:
        return {}
    own = [message for message in chat if message["role"] == "assistant"]
    for message, turn in zip(own, sampled, strict=True):
        message["ids"] = turn.ids
    row = {"tokenizer": sampled[0].tokenizer}
    if len({(turn.policy, turn.dtype, turn.engine) for turn in sampled}) > 1:
        return row
    known = [(turn.log_probs, turn.prompt_sha256) for turn in sampled if turn.log_probs is not None]
    if len(known) < len(sampled):
        return row
    for message, (log_probs, prompt) in zip(own, known, strict=True):
        message |= {"log_probs": rounded_log_probs(log_probs), "prompt_sha256": prompt}
    row |= {"policy": sampled[0].policy, "dtype": sampled[0].dtype}
    return row if sampled[0].engine is None else row | {"engine": sampled[0].engine}


# ---- Words --------------------------------------------------------------------


def _conditions_in_words(spec: DatasetSpec) -> str:
    """The conditions that select matches, in the words of the request."""
    return "" if spec.choice == EVERYTHING else in_words(spec.choice)


def _matches_in_words(spec: DatasetSpec) -> str:
    if spec.rounds:
        return f"round{'s' if len(spec.rounds) > 1 else ''} {', '.join(map(str, spec.rounds))}"
    if spec.of_game_alone:
        return f"the matches of {spec.matches.game} outside rounds"
    return f"the matches of {in_words(spec.matches)}"


def _distribution(reading: DatasetBuild) -> str:
    """One line with the most common scores and how often they occurred, and the means."""
    scores = reading.seats
    common = sorted(scores.most_common(_SHOWN_SCORES))
    listed = ", ".join(f"{score:g} ({number} times)" for score, number in common)
    others = len(scores) - len(common)
    rest = f" and {others} other{'' if others == 1 else 's'}" if others else ""
    means = sorted(set(reading.means.values()))
    of = "mean of those above 0" if reading.spec.filter == filters.ABOVE_AVG_NONZERO else "mean"
    return f"{listed}{rest}, {of} {' and '.join(f'{mean:.4g}' for mean in means[:5])}"
