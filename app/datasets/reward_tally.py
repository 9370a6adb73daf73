"""The rewards of moves to learn, counted while the rows of a dataset are written. Pure."""

import math
from collections import Counter, defaultdict

from app.games.base import JSON


class RewardTally:
    """The rewards and weights of moves by game and role, and how many rows each checkpoint played."""

    def __init__(self) -> None:
        self._moves: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)  # reward, weight
        self._policies: Counter[str] = Counter()

    @property
    def moves(self) -> int:
        """How many moves have a reward."""
        return sum(map(len, self._moves.values()))

    @property
    def weights(self) -> dict[str, dict[str, float]]:
        """The weight of the last move of each role, by game."""
        found: dict[str, dict[str, float]] = {}
        for (game, role), moves in self._moves.items():
            found.setdefault(game, {})[role] = moves[-1][1]
        return found

    def add(self, game: str, role: str, reward: float, weight: float) -> None:
        """Count a move."""
        self._moves[game, role].append((reward, weight))

    def add_policy(self, policy: str) -> None:
        """Count a row with rewards that this checkpoint played."""
        self._policies[policy] += 1

    def figures(self) -> JSON:
        """Moves, the least reward, moves with mean reward and weight by game and role, and rows by who played them."""
        by_role = [
            [game, role, len(moves), *(math.fsum(values) / len(moves) for values in zip(*moves, strict=True))]
            for (game, role), moves in sorted(self._moves.items())
        ]
        return {
            "moves": self.moves,
            "least": min((reward for moves in self._moves.values() for reward, _ in moves), default=0),
            "by_role": by_role,
            "policies": [list(each) for each in sorted(self._policies.items())],
        }
