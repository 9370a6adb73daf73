"""Counts of rows and of the rewards of their moves, kept while a dataset is written. Pure."""

import hashlib
import math
from collections import Counter, defaultdict

from app.games.base import JSON


class RewardTally:
    """The rewards and weights of moves by game and role, and the number of rows played by each checkpoint."""

    def __init__(self) -> None:
        self._moves: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)  # reward, weight
        self._policies: Counter[str] = Counter()

    @property
    def moves(self) -> int:
        """The number of moves with a reward."""
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
        """Count a row with rewards played by this checkpoint."""
        self._policies[policy] += 1

    def figures(self) -> JSON:
        """The number of moves, the lowest reward, moves with mean reward and weight by game and role, and rows by
        checkpoint.
        """
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


class DatasetTally:
    """Counts kept for the rows of any dataset; `sha256` is the hash of all their bytes."""

    def __init__(self) -> None:
        self.size = self.rows = self.words = self.own_words = 0
        self.rewards = RewardTally()
        self._hash = hashlib.sha256()
        self._lengths: Counter[int] = Counter()
        self._own_moves: Counter[int] = Counter()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def add_row(self, line: bytes, words: int, own_words: int, own_moves: int) -> None:
        """Count a row: its bytes, the words of all its messages, and the words and number of the moves to train on."""
        self._hash.update(line)
        self.size += len(line)
        self.rows += 1
        self.words += words
        self.own_words += own_words
        self._lengths[words] += 1
        self._own_moves[own_moves] += 1

    def lengths(self) -> JSON:
        """Rows by their words and by their moves to train on, as lists, because JSON names cannot be numbers."""
        return {
            "words": [list(each) for each in sorted(self._lengths.items())],
            "own_moves": [list(each) for each in sorted(self._own_moves.items())],
        }
