"""How often the intervals of ratings cover what they should, in simulated tournaments.

    python -m bench.ratings                     1,000 tournaments of five players on 60 contexts: four minutes of a core
    python -m bench.ratings --tournaments 100 --contexts 20

Every pair plays each context from both places. Strengths are planted, so that the true ratings are known; contexts are
worth more to one side than to the other, and the points of a match depend on each other. Prints for each kind of
ratings and each role in how many of 100 tournaments the 95 % interval of each player covers its true rating.
"""

import argparse
from collections.abc import Sequence

from app.analysis.rating_models import as_rating
from app.analysis.ratings import POINTS, WINS, Ratings, rate
from tests.tournaments import NAMES, centred, points_won, won_and_lost

_STRENGTHS = (1.0, 0.5, 0.0, -0.3, -1.2)
_PLAYERS, _PARTNERS = (0.8, 0.4, 0.0, -0.4, -0.8), (0.5, -0.5, 0.2, 0.0, -0.2)
_MIDDLES = {None: 4.75, 0: 5.0, 1: 4.5}  # the average player's points, by seat
_ROLES = {None: "both", 0: "first", 1: "second"}


def main() -> None:
    """Simulate the tournaments, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tournaments", type=int, default=1_000, help="[1000]")
    parser.add_argument("--contexts", type=int, default=60, help="of each [60]")
    chosen = parser.parse_args()
    strengths = as_rating(centred(_STRENGTHS))
    covered: dict[tuple[str, int | None], list[list[bool]]] = {}
    for seed in range(chosen.tournaments):
        wins = won_and_lost(_STRENGTHS, chosen.contexts, seed)
        points = points_won(_PLAYERS, _PARTNERS, chosen.contexts, seed)
        for role, middle in _MIDDLES.items():
            covered.setdefault((WINS, role), []).append(_covered(rate(wins, WINS, role), list(strengths)))
            true = [middle + value for value in _PLAYERS]
            covered.setdefault((POINTS, role), []).append(_covered(rate(points, POINTS, role), true))
    print("| rated by | place | " + " | ".join(NAMES) + " | all |")
    print("|---" * (len(NAMES) + 3) + "|")
    for (by, role), found in covered.items():
        shares = [sum(column) / len(column) for column in zip(*found, strict=True)]
        cells = [f"{100 * share:.1f} %" for share in (*shares, sum(shares) / len(shares))]
        print(f"| {by} | {_ROLES[role]} | " + " | ".join(cells) + " |")


def _covered(found: Ratings, true: Sequence[float]) -> list[bool]:
    """For each player in the order of `NAMES`, whether its interval contains its true rating."""
    ratings = {each.player: each for each in found.ratings}
    return [
        (each := ratings[name]).low is not None and each.high is not None and each.low <= value <= each.high
        for name, value in zip(NAMES, true, strict=True)
    ]


if __name__ == "__main__":
    main()
