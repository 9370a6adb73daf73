"""The report of a tournament: ratings of the players of a game, and the results of each against each other."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.analysis.comparisons import cross_plays
from app.analysis.crossplay import cross_play
from app.analysis.leaderboard import Leaderboard
from app.analysis.leaderboard_table import LEADERBOARD_COLUMNS, leaderboard_rows
from app.analysis.ratings import FEW, POINTS, Rating
from app.analysis.tournaments import TournamentChoice, leaderboard_of, tournament_matches
from app.core.csv_tables import to_csv
from app.core.errors import Conflict, Invalid, Phrase, Verbatim
from app.core.typed_numbers import is_plain_whole
from app.games import GAMES, find_game
from app.models import LanguageModel, RoundRow
from app.reports.common_sections import whole_report
from app.reports.interval_charts import interval_chart
from app.reports.origins import (
    NONE,
    Origins,
    ReportContext,
    limits_of,
    origins_of,
    prompts_and_configs,
    rounds_table,
    seeds_sentence,
)
from app.reports.partners import partners_section
from app.reports.report import KeyFigure, Report, ReportFigure, ReportSection, ReportTable, plain_table
from app.rounds.job import ROUND, SELFPLAY

_MOST_ROUNDS = 200  # listed one by one
_MOST_KEY = 3


def tournament_report(session: Session, reference: str, context: ReportContext) -> Report:
    """The report of a cross-play, by the number of its first round, or of a game: NAME, or NAME:λ.

    Raises Invalid for any other reference, NotFound, and Conflict if no match is over.
    """
    choice, key = _read_tournament(reference)
    boards = [leaderboard_of(each) for each in tournament_matches(session, choice)]
    if key is not None:
        boards = [each for each in boards if each.key == key]
    if not any(each.matches for each in boards):
        raise Conflict(
            "tournament",
            expected=Phrase("one with matches that are over"),
            got=Phrase("none so far"),
            remedy=Phrase("play some"),
            subject=Phrase("tournament %(name)s", name=Verbatim(reference)),
        )
    main = max(boards, key=lambda each: each.matches)
    shown = [main, *(each for each in boards if each is not main)]
    origins = _origins(session, choice, shown)
    called = f"cross-play {choice.matrix}" if choice.matrix is not None else reference
    names = dict.fromkeys(name for each in shown for name in each.names)
    return whole_report(
        session, context, origins,
        name=f"tournament-{reference.replace(':', '-')}",
        title=f"Tournament: {find_game(main.game).title}",
        about=f"Report of {called}: {len(names)} players, {sum(each.matches for each in shown)} matches.",
        finding=_tournament_finding(main),
        key_figures=[
            KeyFigure(each.player, _rating_text(main, each.value), _rating_interval_text(main, each))
            for each in main.ratings.ratings[:_MOST_KEY]
        ],
        results=[
            *(_board_section(each, place) for place, each in enumerate(shown)),
            *_cross_play_section(session, choice),
            _partners_section(session, choice, main, origins),
        ],
        methods=[*_tournament_methods(shown), seeds_sentence(origins)],
        tables=rounds_table(origins),
        texts=prompts_and_configs(session, origins),
        limits=_tournament_limits(shown, origins),
        commands=_commands(reference, choice),
    )  # fmt: skip


def _read_tournament(reference: str) -> tuple[TournamentChoice, str | None]:
    """The tournament that a reference names, and the key of a single leaderboard, if any. Raises Invalid."""
    if is_plain_whole(reference):
        return TournamentChoice(matrix=int(reference)), None
    game, mark, _ = reference.partition(":")
    if game not in GAMES:
        raise Invalid(
            "tournament",
            expected=Phrase(
                "a game (%(games)s), GAME:λ, or the number of the first round of a cross-play",
                games=Verbatim(", ".join(GAMES)),
            ),
            got=reference,
        )
    return TournamentChoice(game=game), reference if mark else None


def _origins(session: Session, choice: TournamentChoice, boards: Sequence[Leaderboard]) -> Origins:
    """The rounds of the tournament, and the models that are rated."""
    rounds = select(RoundRow.id).where(
        RoundRow.source == SELFPLAY,
        RoundRow.game.in_([each.game for each in boards]),
        RoundRow.finished > 0,
        RoundRow.removed_at.is_(None),
    )
    if choice.matrix is not None:
        rounds = rounds.where(RoundRow.matrix_id == choice.matrix)
    numbers = [*session.scalars(rounds.order_by(RoundRow.id.desc()).limit(_MOST_ROUNDS))]
    names = {name for each in boards for name in each.names}
    models = session.scalars(select(LanguageModel.id).where(LanguageModel.name.in_(names)))
    return origins_of(session, {ROUND.name: numbers}, [*models])


# ---- Figures and tables -----------------------------------------------------------------


def _board_section(board: Leaderboard, place: int) -> ReportSection:
    weight = "" if board.partner_weight is None else f", λ = {board.partner_weight:g}".replace("-", "−")
    name = f"ratings-{board.key}".replace(":", "-").replace("--", "-minus-").replace(".", "-").replace("_", "-")
    of, unit = ("Points", "a match") if board.ratings.by == POINTS else ("Rating", "1000 is average")
    rows = [(each.player, Figure(each.value, each.low, each.high, each.matches)) for each in board.ratings.ratings]
    title = f"{find_game(board.game).title}{weight}"
    chart = interval_chart(name, f"Ratings in {title}", of, unit, rows, "Player")
    caption = f"Ratings of the players of {title}, the best first; lines are 95 % intervals over contexts."
    return ReportSection(
        "result" if place == 0 else name,
        "Result" if place == 0 else title,
        figures=[ReportFigure(chart, caption, has_table=True)] if rows else [],
        tables=[_players_table(board, title, name), _pairs_table(board, title, name)],
    )


def _players_table(board: Leaderboard, title: str, name: str) -> ReportTable:
    rated = {each.player: (place, each) for place, each in enumerate(board.ratings.ratings, 1)}
    rows = []
    for player in board.names:
        place, rating = rated.get(player, (None, None))
        standing = board.standings.get(player)
        rows.append(
            (
                player,
                NONE if place is None else str(place),
                NONE if rating is None else f"{rating.best_place} to {rating.worst_place}",
                NONE if rating is None else _rating_text(board, rating.value),
                NONE if rating is None else _rating_interval_text(board, rating) or NONE,
                NONE if standing is None else f"{100 * standing.played:.1f}",
                NONE if standing is None or standing.quality is None else f"{standing.quality:.1f}",
                NONE if standing is None else f"{standing.score:.1f}",
                str(board.matches_of(player)),
            )
        )
    head = (
        "Player", "Place", "Places in 95 %", "Points a match" if board.ratings.by == POINTS else "Rating",
        "95 % interval", "Played, %", "Quality, 0 to 100", "Score, 0 to 100", "Matches",
    )  # fmt: skip
    caption = f"The players of {title}. The score is the share that was played to its end times the quality."
    return ReportTable(
        f"{name}-players", caption, head, rows, b"".join(to_csv(LEADERBOARD_COLUMNS, leaderboard_rows([board])))
    )


def _pairs_table(board: Leaderboard, title: str, name: str) -> ReportTable:
    by_points = board.ratings.by == POINTS
    rows = [
        (
            each.row,
            each.column,
            f"{each.value:.2f}" if by_points else f"{100 * each.value:.1f}",
            NONE if each.residual is None else f"{each.residual:+.2f}".replace("-", "−"),
            str(each.matches),
        )
        for each in board.ratings.cells
    ]
    value = "Points a match" if by_points else "Won, %, a tie as half"
    caption = f"What each player of {title} got against each other one, and by how much that is above the ratings."
    return plain_table(f"{name}-pairs", caption, ("Player", "Against", value, "Beyond the ratings", "Matches"), rows)


def _cross_play_section(session: Session, choice: TournamentChoice) -> list[ReportSection]:
    if choice.matrix is None:
        return []
    charts = cross_plays(cross_play(session, choice.matrix))
    figures = [ReportFigure(each, each.described.sentence) for each in charts if each.described.rows]
    return [ReportSection("cross-play", "Cross-play", figures=figures)]


def _partners_section(
    session: Session, choice: TournamentChoice, board: Leaderboard, origins: Origins
) -> ReportSection:
    """The rated models side by side, each against the first."""
    known = {row.name for row in origins.models}
    models = [each.player for each in board.ratings.ratings if each.player in known]
    rounds = None if choice.matrix is None else [row.id for row in origins.rounds]
    return partners_section(session, models, board.game, board.partner_weight, rounds)


# ---- Words --------------------------------------------------------------------------------


def _rating_text(board: Leaderboard, value: float) -> str:
    return (f"{value:.2f}" if board.ratings.by == POINTS else f"{value:.0f}").replace("-", "−")


def _rating_interval_text(board: Leaderboard, rating: Rating) -> str:
    if rating.low is None or rating.high is None:
        return ""
    return f"{_rating_text(board, rating.low)} to {_rating_text(board, rating.high)}"


def _tournament_finding(board: Leaderboard) -> str:
    ratings = board.ratings.ratings
    if not ratings:
        return "No two players are linked by matches, so there are no ratings."
    unit = "points per match" if board.ratings.by == POINTS else "rating points"
    best = ratings[0]
    first = [each.player for each in ratings if each.best_place == 1]
    interval = _rating_interval_text(board, best)
    said = f"{best.player} is first with {_rating_text(board, best.value)} {unit}{f' ({interval})' if interval else ''}"
    others = [name for name in first if name != best.player]
    return f"{said}; {', '.join(others)} may be first as well." if others else f"{said}."


def _tournament_methods(boards: Sequence[Leaderboard]) -> list[str]:
    found = [
        (
            "All matches between the players that are over count. Places and intervals come of 1,000 resamples of"
            " contexts, each with all of its matches. A match that a player aborted lowers its score and is in no"
            " rating."
        )
    ]
    kinds = {each.ratings.by for each in boards}
    if POINTS in kinds:
        found.append("Points a match are those of an additive model of players and partners.")
    if kinds - {POINTS}:
        found.append(
            "Ratings are those of a Bradley–Terry model with ties, on a scale where 400 points are ten times the chance"
            " and 1000 is the average player."
        )
    return found


def _tournament_limits(boards: Sequence[Leaderboard], origins: Origins) -> list[str]:
    points = limits_of(origins)
    few = sum(cell.matches < FEW for each in boards for cell in each.ratings.cells)
    if few:
        points.append(f"{few} pairs have fewer than {FEW} matches: their figures are only hints.")
    for each in boards:
        if each.ratings.no_interval:
            points.append(f"{each.key} has no intervals: {each.ratings.no_interval}.")
        if each.ratings.unlinked:
            points.append(f"Not rated, as matches do not link them to the others: {', '.join(each.ratings.unlinked)}.")
        if each.left_out:
            points.append(f"{each.left_out} players with fewer matches are left out.")
    if len(origins.rounds) == _MOST_ROUNDS:
        points.append(f"The latest {_MOST_ROUNDS} rounds are listed; there may be more.")
    points.append("A rating holds among these players: others who join change it.")
    return points


def _commands(reference: str, choice: TournamentChoice) -> list[str]:
    which = f"--matrix {choice.matrix}" if choice.matrix is not None else f"--game {choice.game}"
    return [f"flask model leaderboard {which} --csv", f"flask report --tournament {reference}"]
