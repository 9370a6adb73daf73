"""Leaderboards as CSV: a row for each player, and a row for each pair of the cross-play."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app.analysis.leaderboard import Leaderboard
from app.core.csv_tables import Column
from app.games import GAMES

Row = Mapping[str, Any]  # a row's values by column; a missing column is empty


def _column(name: str, type_: str, meaning: str, values: str) -> Column:
    return Column(name, type_, meaning, values, lambda row: row.get(name))


LEADERBOARD_COLUMNS = (
    _column("game", "text", "What was played.", " | ".join(GAMES)),
    _column("lambda", "number", "The weight of the partner's points in a score.",
            "from -1 to 1; empty in a game without"),
    _column("role", "text", "In which role players are rated.",
            "as the game names it; first | second where both seats have the same; both"),
    _column("scope", "text", "What the row is about: a player, or what a player got of another one.", "player | pair"),
    _column("player", "text", "The player: a model of the registry, or people, who are one player.", "a name"),
    _column("against", "text", "The other player of a pair.", "a name; empty for a player"),
    _column("matches", "integer", "Matches that were played to their end; one against itself counts once.", "from 0"),
    _column("rated_by", "text", "What the rating is: of a Bradley–Terry model on who got more, or points per match.",
            "wins | points"),
    _column("place", "integer", "The player's place by its rating.", "from 1; empty for who has no rating"),
    _column("best_place", "integer", "The best place in 95 % of the resamples.", "from 1"),
    _column("worst_place", "integer", "The worst place in 95 % of the resamples.", "from 1"),
    _column("rating", "number", "The rating.", "wins: 1000 is the average player; empty for who has none"),
    _column("rating_low", "number", "Lower end of the 95 % interval of the rating.", "empty without an interval"),
    _column("rating_high", "number", "Upper end of the 95 % interval of the rating.", "empty without an interval"),
    _column("played", "number", "Share of the player's seats whose match it did not end by a fault.", "from 0 to 1"),
    _column("points_mean", "number", "Mean of what the player got in matches played to their end.",
            "any; empty without matches"),
    _column("quality", "number", "The same, from the least that a seat can get to the most.", "from 0 to 100"),
    _column("clem_score", "number", "played times quality.", "from 0 to 100"),
    _column("match_cost_usd", "number", "What the calls of the player's seat cost in a match, the mean, in US dollars.",
            "from 0, which is what runs here; empty for people and where it is unknown"),
    _column("pair_value", "number", "Of a pair: points per match, or the share of matches won; a tie is half of one.",
            "any; empty for a player"),
    _column("pair_residual", "number", "Of a pair: by how much that is above what the ratings say.",
            "any; empty for a player, and without a rating"),
)  # fmt: skip


def leaderboard_rows(boards: Iterable[Leaderboard]) -> Iterator[Row]:
    """The rows of the table: for each leaderboard its players, best first, then its pairs."""
    for board in boards:
        about = {
            "game": board.game,
            "lambda": board.partner_weight,
            "role": board.role,
            "rated_by": board.ratings.by,
        }
        rated = {each.player: (place, each) for place, each in enumerate(board.ratings.ratings, 1)}
        for name in board.names:
            row: dict[str, Any] = {**about, "scope": "player", "player": name, "matches": board.matches_of(name)}
            if name in rated:
                place, rating = rated[name]
                row |= {
                    "place": place,
                    "best_place": rating.best_place,
                    "worst_place": rating.worst_place,
                    "rating": rating.value,
                    "rating_low": rating.low,
                    "rating_high": rating.high,
                }
            if (standing := board.standings.get(name)) is not None:
                row |= {
                    "played": standing.played,
                    "points_mean": standing.points,
                    "quality": standing.quality,
                    "clem_score": standing.score,
                }
            row["match_cost_usd"] = board.prices.get(name)
            yield row
        for cell in board.ratings.cells:
            yield {
                **about,
                "scope": "pair",
                "player": cell.row,
                "against": cell.column,
                "matches": cell.matches,
                "pair_value": cell.value,
                "pair_residual": cell.residual,
            }
