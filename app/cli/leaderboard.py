"""`flask model leaderboard`: ratings of the models that have played each other, as a table, as JSON and as CSV."""

from collections.abc import Iterator

import click

from app.analysis.leaderboard import BOTH, Leaderboard, roles_of
from app.analysis.leaderboard_table import LEADERBOARD_COLUMNS, leaderboard_rows
from app.analysis.ratings import FEW, WINS
from app.analysis.tournaments import TournamentChoice, leaderboard_of, tournament_matches
from app.cli.base import WHOLE, Command, check_one_format, ensure_database, json_option, print_csv, print_json
from app.cli.tables import aligned
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading
from app.core.typed_numbers import is_plain_real
from app.games import GAMES, find_game
from app.jobs.spending import dollars

_HEADS = ("", "player", "places", "rating", "95 % interval", "played", "quality", "score", "price", "matches")


@click.command(cls=Command)
@click.option("--game", metavar="GAME", help="One game alone.")
@click.option("--lambda", "weight", metavar="L", help="One weight of the partner's points alone, such as 0 or -1.")
@click.option("--role", metavar="ROLE", help="One role alone; where both are the same, first or second.")
@click.option("--matrix", type=WHOLE, metavar="R", help="The matches of the cross-play whose first round is R.")
@click.option("--campaign", type=WHOLE, metavar="N", help="The matches of campaign N, or of that run of a recipe.")
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV: a row per player and per pair.")
def leaderboard(
    game: str | None,
    weight: str | None,
    role: str | None,
    matrix: int | None,
    campaign: int | None,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Rate the models that have played each other in rounds: one table for each game and each λ.

    Ratings have 95 % intervals by resampling contexts. docs/analysis.md says what they are. People are one player, and
    only those of studies whose file says so.
    """
    check_one_format(as_json, as_csv)
    _check_role(game, role)
    wanted = read_weight(weight)
    choice = TournamentChoice(None if game is None else find_game(game).name, matrix, campaign)
    ensure_database()
    with reading() as session:
        found = tournament_matches(session, choice)
    boards = [
        leaderboard_of(each, role or BOTH)
        for each in found
        if (wanted is None or each.partner_weight == wanted) and (role in (None, BOTH, *roles_of(each.game)))
    ]
    if as_json:
        print_json({"leaderboards": [each.to_json() for each in boards]})
        return
    if as_csv:
        print_csv(LEADERBOARD_COLUMNS, leaderboard_rows(boards))
        return
    if not boards:
        raise Invalid(
            "matches",
            expected="models that have played each other",
            got=Verbatim("none"),
            remedy="`flask round run negotiation --models A B C --cross-play --swap-seats --matches 120` plays some",
        )
    click.echo("\n\n".join("\n".join(_leaderboard_lines(each)) for each in boards))


def _check_role(game: str | None, role: str | None) -> None:
    """Raises Invalid for a role that no game has, and NotFound for an unknown game."""
    games = list(GAMES) if game is None else [find_game(game).name]
    known = list(dict.fromkeys([BOTH, *(each for name in games for each in roles_of(name))]))
    if role is not None and role not in known:
        raise Invalid("--role", expected=Verbatim(", ".join(known)), got=role)


def read_weight(raw: str | None) -> float | None:
    """The weight given with `--lambda`; None if it was not given. Raises Invalid."""
    if raw is None:
        return None
    if not is_plain_real(raw) or not -1 <= float(raw) <= 1:
        raise Invalid("--lambda", expected="a number from -1 to 1", got=raw)
    return float(raw)


def _leaderboard_lines(board: Leaderboard) -> Iterator[str]:
    weight = "" if board.partner_weight is None else f", λ = {board.partner_weight:g}"
    role = "" if board.role == BOTH else f", as {board.role}"
    rated = board.ratings
    yield f"{board.game}{weight}{role}: {board.matches} matches on {rated.contexts} contexts".replace("-", "−")
    places = {each.player: place for place, each in enumerate(rated.ratings, 1)}
    ratings = {each.player: each for each in rated.ratings}
    digits = 0 if rated.by == WINS else 2
    lines = [_HEADS]
    for name in board.names:
        rating, standing = ratings.get(name), board.standings.get(name)
        interval = "–"
        if rating is not None and rating.low is not None and rating.high is not None:
            interval = f"{rating.low:.{digits}f} to {rating.high:.{digits}f}"
        lines.append(
            (
                str(places.get(name, "–")),
                name,
                "–" if rating is None else _span(rating.best_place, rating.worst_place),
                "–" if rating is None else f"{rating.value:.{digits}f}",
                interval,
                "–" if standing is None else f"{100 * standing.played:.1f} %",
                "–" if standing is None or standing.quality is None else f"{standing.quality:.1f}",
                "–" if standing is None else f"{standing.score:.1f}",
                dollars(board.prices[name]) if name in board.prices else "–",
                str(board.matches_of(name)),
            )
        )
    for line in aligned(lines, right={0, 3, 5, 6, 7, 8, 9}):
        yield f"  {line}"
    yield "  Rating: " + ("1000 is the average, 400 more win ten times as often" if digits == 0 else "points per match")
    yield "  Price: US dollars a match for the player's calls"
    if rated.no_interval:
        yield f"  No intervals: {rated.no_interval}"
    if rated.unlinked:
        yield f"  Not linked to the others by matches: {', '.join(rated.unlinked)}"
    if board.left_out:
        yield f"  Left out: {board.left_out} players with fewer matches"
    yield from _open_orders(board)


def _span(best: int, worst: int) -> str:
    return str(best) if best == worst else f"{best}–{worst}"


def _open_orders(board: Leaderboard) -> Iterator[str]:
    for each in board.ratings.neighbours:
        if each.more_matches == 0:
            continue
        cost = board.cost_to_settle(each)
        price = "" if not cost else f", about {dollars(cost)},"
        more = "" if each.more_matches is None else f": about {each.more_matches} more matches{price} if the gap stays"
        yield f"  Not settled: {each.ahead} before {each.behind}{more}"
    few = sum(cell.matches < FEW for cell in board.ratings.cells)
    if few:
        yield f"  {few} of {len(board.ratings.cells)} pairs have fewer than {FEW} matches"
