"""Rounds side by side, and the matrix of a cross-play."""

from collections.abc import Sequence
from typing import Any

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.analysis.comparisons import compare, compare_differences, compare_models, cross_plays
from app.analysis.crossplay import CrossPlay
from app.analysis.rounds import RoundAnalysis
from app.core.errors import AppError, Conflict, Invalid, Phrase, Verbatim
from app.core.extensions import reading
from app.games import metrics_of
from app.games.metrics import Metric, Use
from app.jobs import states
from app.jobs.listing import called, job_reference
from app.models import RoundRow
from app.rounds import matrix
from app.rounds.job import ROUND
from app.rounds.listing import cross_play_item, list_items
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import read_compared
from app.web.admin.rounds_analysis import (
    TitledFigure,
    analysis_of,
    is_pooled,
    labels_of,
    matrix_of,
    with_specs,
)
from app.web.admin.rounds_result import result_of
from app.web.chart_language import page_language
from app.web.form_writes import write
from app.web.seats import settings
from app.web.translations import game_titles

MOST = 20  # rounds side by side


@blueprint.get("/rounds/compare")
def compare_rounds() -> ResponseReturnValue:
    """Rounds of one game side by side; if none are given, instructions for choosing them."""
    try:
        with reading() as session:
            rows = _wanted(session)
            found = analysis_of(rows)
            return _rounds_comparison_page(session, rows, [found[row.id] for row in rows])
    except AppError as error:
        page = render_template("admin/rounds-compare.html", rounds=[], charts=[], table=[], refused=error)
        return page, error.status


def _wanted(session: Session) -> list[RoundRow]:
    rows = read_compared(session, ROUND, "round", MOST)
    games = sorted({row.game for row in rows})
    if len(games) > 1:
        raise Invalid("round", expected=Phrase("rounds of one game"), got=Verbatim(" and ".join(games)))
    return rows


def _rounds_comparison_page(session: Session, rows: Sequence[RoundRow], analyses: Sequence[RoundAnalysis]) -> str:
    game = rows[0].game
    defined = metrics_of(game)
    known = [each for each in defined.ranked if any(each.name in found.metrics.columns for found in analyses)]
    labels = labels_of(known)
    language = page_language()
    both = compare_models(analyses, language), compare_differences(analyses, language)
    by_model = [chart for chart in both if chart is not None]
    columns = [each.name for each in defined.shown(Use.COMPARISON) if each in known and not (by_model and each.pooled)]
    return render_template(
        "admin/rounds-compare.html",
        rounds=[
            {"line": line, "cell": job_reference(ROUND, line), "analysis": each, "result": result_of(each)}
            for line, each in zip(list_items(session, rows), analyses, strict=True)
        ],
        game=game,
        title=game_titles()[game],
        heads=labels_of(defined.shown_of_models(Use.DIFFERENCE)),
        table=[
            (TitledFigure(each.name, labels[each.name], Figure(None)), [_unpooled(found, each) for found in analyses])
            for each in known
        ],
        charts=[with_specs(chart) for chart in (*by_model, *(compare(analyses, name, language) for name in columns))],
        refused=None,
    )


def _unpooled(analysis: RoundAnalysis, metric: Metric) -> Figure | None:
    """A figure of a round; None if it pools two models."""
    if metric.pooled and is_pooled(analysis):
        return None
    return analysis.metrics.columns.get(metric.name, Figure(None))


# ---- Cross-play --------------------------------------------------------------


@blueprint.get("/rounds/matrix/<int:round_id>")
def round_matrix(round_id: int) -> str:
    """The scores of each model against each other one, in the cross-play that began with that round."""
    return _matrix_page(round_id)


@blueprint.post("/rounds/matrix/<int:round_id>")
def act_on_matrix(round_id: int) -> ResponseReturnValue:
    """Apply the pressed button's action to all rounds of a cross-play: cancel or resume them."""
    action = request.form.get("action")
    numbers: list[int] = []
    try:
        if action == "cancel":
            write(lambda session: matrix.cancel(session, round_id))
        elif action == "resume":
            numbers = write(lambda session: [row.id for row in matrix.resume(session, round_id, queued=True)])
        else:
            raise Invalid("action", expected=Phrase("cancel or resume"), got=action)
    except (Invalid, Conflict) as error:
        return _matrix_page(round_id, error), error.status
    for number in numbers:
        ROUND.enqueue(settings().broker_url, number)
    return redirect(url_for("admin.round_matrix", round_id=round_id), 303)


def _matrix_page(round_id: int, refused: AppError | None = None) -> str:
    with reading() as session:
        rows = matrix.rounds_of(session, round_id)
        found = matrix_of(round_id, rows)
        members = list_items(session, rows)
        pairs = {line.models: line.row.id for line in members}
        return render_template(
            "admin/round-matrix.html",
            matrix=found,
            title=game_titles()[found.game],
            first=rows[0],
            charts=[with_specs(chart) for chart in cross_plays(found, page_language())],
            tables=[(role, _matrix_rows(found, role, pairs)) for role in found.roles],
            rounds=[(line, job_reference(ROUND, line)) for line in members],
            line=(line := cross_play_item(members)),
            name=called(ROUND, line),
            can_cancel=any(row.status in states.OPEN for row in rows),
            can_resume=any(line.state in states.STOPPED for line in members),
            refused=refused,
        )


def _matrix_rows(matrix: CrossPlay, role: str | None, pairs: dict[tuple[str, ...], int]) -> list[tuple[str, list[Any]]]:
    """The rows of a matrix: a model, and its cells by opponent, each with its shade from 1 to 7 and its round."""
    known = {(cell.row, cell.column): cell for cell in matrix.cells if cell.role == role}
    values = [cell.score.value for cell in known.values() if cell.score.value is not None]
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    rows = []
    for name in matrix.players:
        cells = []
        for other in matrix.players:
            cell = known.get((name, other))
            number = pairs.get((name, other)) if role != matrix.roles[-1] or role is None else pairs.get((other, name))
            number = number or (pairs.get((other, name)) if role is None else None)
            score = None if cell is None else cell.score
            cells.append({"cell": cell, "round": number, "shade": _shade(score, low, high)})
        rows.append((name, cells))
    return rows


def _shade(score: Figure | None, low: float, high: float) -> int | None:
    if score is None or score.value is None:
        return None
    return 4 if high <= low else 1 + round(6 * (score.value - low) / (high - low))
