"""A match as a policy plays it: what each seat reads, what an answer does, and what the match is worth. Pure.

All of it is Parlor's own: the engine judges moves, the prompts are those of its models, and rewards are the game's.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from app.games import find_game, formula_of
from app.games.rewards import DECAY, RewardTotals, SeatResult, shares
from app.matches import engine
from app.matches.events import Violated
from app.players.prompts import default_prompt, messages
from app.players.scripted import SCRIPTED

HELD_OUT_EVERY = 10  # of so many pieces of material one is for evaluation alone


class Task(NamedTuple):
    """A match to be played, and the seat that is trained in it."""

    game: str
    config: dict[str, Any]
    seed: int
    seat: int


def tasks(game: str, number: int, seed: int = 0, *, held_out: bool = False, **config: Any) -> Iterator[Task]:
    """So many matches on the game's own material, from both seats in turn.

    held_out: on the tenth of the material that no other task has. config: of the game, such as objective and limit.
    Raises NotFound for an unknown game and Invalid for a config that cannot be.
    """
    found = find_game(game)
    found.config(config)
    rng = random.Random(f"{seed}/{held_out}")
    pieces = _pieces(game, held_out=held_out)
    for place in range(number):
        own = found.material.config_of(rng.choice(pieces)) if pieces and found.material is not None else {}
        yield Task(game, {**own, **config}, rng.getrandbits(62), place % 2)


def _pieces(game: str, *, held_out: bool) -> Sequence[Any]:
    """The game's material, or its part that is held out: pieces of one key are on the same side."""
    kind = find_game(game).material
    if kind is None:
        return ()
    every = kind.draw_all(random.Random(0))
    keys = {
        str(key): number for number, key in enumerate(dict.fromkeys(str(kind.held_out_key(each)) for each in every))
    }
    return [each for each in every if (keys[str(kind.held_out_key(each))] % HELD_OUT_EVERY == 0) == held_out]


@dataclass
class SeatInMatch:
    """A match under way, and the seat of it that is trained. `style` is how its models are prompted.

    `accepted` says of each answer of that seat whether it was a move; `said` has all answers with who gave them.
    """

    task: Task
    style: str = "full"
    manner: str = "plain"
    match: engine.Match = field(init=False)
    accepted: list[bool] = field(init=False, default_factory=list)
    said: list[tuple[int, str]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        prompt = default_prompt(self.task.game, self.style)
        _, self.match = engine.begin(self.task.game, self.task.config, self.task.seed, (prompt, prompt))

    @property
    def own_turn(self) -> bool:
        """Whether the trained seat is to move."""
        return self.match.to_move == self.task.seat

    def messages(self) -> list[dict[str, str]]:
        """The chat of the seat that is to move, up to its next move."""
        seat = self._mover()
        refused = [(each.text, each.reason) for each in self.match.refused]
        return messages(self.match.view(seat), default_prompt(self.task.game, self.style), refused)

    def answer(self, text: str, *, scripted: bool = False) -> None:
        """Have the seat that is to move say this. A model's fifth refused attempt at a turn ends the match.

        What a script says is read to the letter, also where the config has models read leniently.
        """
        seat = self._mover()
        lenient = bool(self.match.state.config.lenient) and not scripted
        events, self.match = engine.advance(self.match, seat, text, by_model=True, lenient=lenient)
        self.said.append((seat, text))
        if seat == self.task.seat:
            self.accepted.append(not isinstance(events[0], Violated))

    def scripted_text(self) -> str:
        """What Parlor's scripted player says for the seat that is to move, as it would there."""
        seat = self._mover()
        view = self.match.view(seat)
        chooser = SCRIPTED[view.game].chooser(view.role, self.manner)
        if chooser is None:
            raise ValueError(f"manner: expected one of {view.game}'s scripted player, got {self.manner}")
        turn = f"{self.task.seed}/{seat}/{self.match.ply}/{len(self.match.refused)}"
        return chooser(view, random.Random(turn))

    def utility(self, seat: int) -> float:
        """What a seat got: points with λ, or 1, 0 and −1 in taboo; 0 for a match that was broken off."""
        return 0.0 if self.match.ended is None else self.match.ended.utilities[seat]

    def result(self, seat: int) -> SeatResult | None:
        """The result of a seat as the formula of rewards takes it; None for a match that was broken off."""
        ended = self.match.ended
        if ended is None or ended.reason in engine.BROKEN_OFF:
            return None
        weight = float(self.match.game.partner_weight(self.match.state.config.to_json()) or 0)
        return SeatResult(self.match.game.roles[seat], ended.utilities[seat], ended.winner == seat, weight)

    def _mover(self) -> int:
        if self.match.to_move is None:
            raise ValueError("match: expected one that is not over")
        return self.match.to_move


class SeatRewards(NamedTuple):
    """The reward of a trained seat, the weight that it has in a dataset, and that of each answer, refused ones 0."""

    total: float
    weight: float
    answers: list[float]


def formula_rewards(played: Sequence[SeatInMatch], decay: float = DECAY) -> list[SeatRewards]:
    """The rewards of datasets, by the formula of the game, over the matches that are given.

    Winners are counted among trained seats, and means are over both seats of each match.
    Source: Cheng et al. 2024, arXiv 2404.10642.
    """
    scores: dict[tuple[str, float], list[float]] = defaultdict(list)
    winners: Counter[str] = Counter()
    for each in played:
        for seat in (0, 1):
            if (result := each.result(seat)) is not None:
                scores[result.role, result.partner_weight].append(result.utility)
                winners[result.role] += result.won and seat == each.task.seat
    totals = RewardTotals(+winners, {place: math.fsum(found) / len(found) for place, found in scores.items()})
    return [_rewards_of(each, totals, decay) for each in played]


def _rewards_of(played: SeatInMatch, totals: RewardTotals, decay: float) -> SeatRewards:
    result = played.result(played.task.seat)
    if result is None:
        return SeatRewards(0.0, 0.0, [0.0] * len(played.accepted))
    reward, weight = formula_of(played.task.game).of_seat(result, totals)
    parts = iter(shares(sum(played.accepted), decay))
    return SeatRewards(reward, weight, [reward * next(parts) if moved else 0.0 for moved in played.accepted])
