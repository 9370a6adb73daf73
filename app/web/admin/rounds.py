"""Self-play rounds: the list, one round as it is played, the actions on it, and its transcripts."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from flask import get_template_attribute, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext, lazy_gettext
from markupsafe import Markup
from sqlalchemy.orm import Session

from app.analysis.charts import charts_of
from app.analysis.headline import PromptScores, prompt_scores
from app.analysis.rounds import RoundAnalysis
from app.analysis.running_mean import mean_chart, running_means
from app.campaigns.listing import campaign_step_of
from app.core.errors import AppError, Invalid, NotFound, Phrase, Verbatim, either
from app.core.extensions import db, reading
from app.datasets.store import datasets_of_round
from app.games import find_game, metrics_of
from app.games.metrics import SHARE
from app.jobs import states
from app.jobs.page import job_references
from app.models import MatchRow, RoundRow
from app.registry import list_models
from app.rounds import lifecycle, transcripts
from app.rounds.failures import AbortedMatch, last_broken
from app.rounds.job import ROUND
from app.rounds.listing import CROSS_PLAY, RoundListItem, conditions, list_items, read_chosen, waits_behind
from app.rounds.page import PAGE
from app.rounds.prices import has_current_prices, prices_of_round
from app.rounds.progress import figures, mean_pace
from app.rounds.returned_models import changes
from app.web.admin.blueprint import blueprint
from app.web.admin.figures import spec_answer
from app.web.admin.job_pages import JobPages, facts_on_page, headed, job_actions, register_pages
from app.web.admin.lists import ListFilter, add_address
from app.web.admin.rounds_analysis import SAMPLE, analysis_of, page_part
from app.web.admin.rounds_scores import scores
from app.web.chart_language import page_language
from app.web.threads import in_worker_thread
from app.web.translations import game_titles

TABS = ("summary", "charts", "transcripts", "settings", "log")
_FIRST_CHARTS = 2  # of a round's charts, in its summary


# ---- One round ---------------------------------------------------------------


@blueprint.get("/rounds/<int:round_id>")
def round_page(round_id: int) -> ResponseReturnValue:
    """One round, in the part that `tab` names: its results, its charts, its matches, its settings, or its log."""
    tab = request.args.get("tab", TABS[0])
    if tab not in TABS:
        raise Invalid("tab", expected=either(TABS), got=tab)
    return _round_page(round_id, tab)


@blueprint.get("/rounds/<int:round_id>/latest")
def round_latest(round_id: int) -> str:
    """The part of a round's page that holds its latest transcripts and what went wrong."""
    with reading() as session:
        row = ROUND.get(session, round_id)
        return render_template("admin/round-latest.html", round=row, **_latest_match_fields(session, row))


@blueprint.get("/rounds/<int:round_id>/charts/<name>.json")
def round_chart(round_id: int, name: str) -> ResponseReturnValue:
    """A chart of a round as a Vega-Lite spec, in the colours of `theme`: light or dark."""
    with reading() as session:
        row = ROUND.get(session, round_id)
        found = {chart.name: chart for chart in _charts(session, row)["charts"]}
    if name not in found:
        raise NotFound("chart", expected=Verbatim(", ".join(found)) if found else Phrase("none yet"), got=name)
    return spec_answer(found[name])


def _round_page(round_id: int, tab: str, refused: AppError | None = None) -> tuple[str, int]:
    now = datetime.now(UTC)
    with reading() as session:
        row = ROUND.get(session, round_id)
        line = list_items(session, [row])[0]
        part = _PARTS[tab](session, row)
        page = render_template(
            "admin/round.html",
            tab=tab,
            round=row,
            state=line.state,
            all_aborted=line.all_aborted,
            title=game_titles().get(row.game, row.game),
            **headed(ROUND, line),
            models=(models := lifecycle.seated(session, row)),
            changed_models=changes(row.returned_models, {model.id: model.name for model in models}),
            current_prices=has_current_prices(row, models),
            figures=figures(row, line.state, mean_pace(row, now), prices_of_round(session, row)),
            refused=refused,
            behind=[*job_references(session, ROUND, waits_behind(session, [row])[round_id]).values()],
            campaign=campaign_step_of(session, round_id=round_id),
            **part,
            **job_actions(ROUND, row, line.state),
        )
        return page, 400 if part.get("filter_refused") else 200


def _render(round_id: int, refused: AppError | None) -> str:
    """The page of a round with its summary."""
    return _round_page(round_id, TABS[0], refused)[0]


def _filters(session: Session) -> list[ListFilter]:
    return [
        ListFilter("game", gettext("Game"), game_titles(), any=gettext("Any game")),
        ListFilter("status", gettext("Status"), {status: status for status in states.STATUSES}),
        ListFilter("model", gettext("Model"), {model.name: model.name for model in list_models(session)}),
    ]


def _outcomes(_session: Session, lines: Sequence[RoundListItem]) -> list[Markup]:
    """The result of each round so far, counted off the event loop and cached."""
    scored = scores(db.engine, [line.row for line in lines if not line.members])
    write_outcome = get_template_attribute("admin/round-parts.html", "outcome")
    return [
        write_outcome(line, scored.get(line.row.id), metrics_of(line.row.game).headline.unit == SHARE) for line in lines
    ]


add_address(CROSS_PLAY, lambda number: url_for("admin.round_matrix", round_id=number))
register_pages(
    ROUND,
    JobPages(lazy_gettext("Rounds"), "rounds", "round_id", _render),
    new=[("admin.new_round", lazy_gettext("New round"))],
    about=lazy_gettext("In a round, models play many matches against each other while you watch. There are none yet."),
    first=lazy_gettext("Start the first round"),
    compare="admin.compare_rounds",
    compared={},
    ticked="round",
    filters=_filters,
    where=lambda session, given: conditions(session, read_chosen(session, given)),
    values={"score": _outcomes},
)


def _analysis(row: RoundRow) -> RoundAnalysis:
    """The figures of a round: of a sample where very many matches are over, unless `all=1` asks for all of them."""
    return analysis_of([row], None if request.args.get("all") == "1" else SAMPLE)[row.id]


def _summary_tab_fields(_session: Session, row: RoundRow) -> dict[str, Any]:
    found = _analysis(row)
    by_prompt = in_worker_thread(db.engine, _prompt_scores, row.id) if row.prompts else None
    return {**page_part(found), "by_prompt": by_prompt, "charts": charts_of(found, page_language())[:_FIRST_CHARTS]}


def _prompt_scores(session: Session, round_id: int) -> PromptScores | None:
    return prompt_scores(session, ROUND.get(session, round_id))


def _charts(_session: Session, row: RoundRow) -> dict[str, Any]:
    found = _analysis(row)
    means = in_worker_thread(db.engine, running_means, row.id)
    went_on = mean_chart(f"running-mean-{row.id}", means, page_language())
    return {"analysis": found, "charts": [*charts_of(found, page_language()), *([went_on] if went_on else [])]}


def _settings_tab_fields(session: Session, row: RoundRow) -> dict[str, Any]:
    [item] = list_items(session, [row])
    facts = facts_on_page(session, PAGE.sections[0], item)
    return {"datasets": datasets_of_round(session, row.id), "item": item, "facts": facts}


def _latest_match_fields(session: Session, row: RoundRow) -> dict[str, Any]:
    broken: list[AbortedMatch] = last_broken(session, row.id) if row.aborted else []
    return {
        "latest": [shown_match(row, match) for match in transcripts.latest_over(session, row.id)],
        "shown_field": shown_field(row),
        "broken": broken,
    }


def shown_match(row: RoundRow, match: MatchRow) -> dict[str, Any]:
    """A match as a line of its round's transcripts."""
    scores = (match.utility_0, match.utility_1)
    return {
        "id": match.id, "index": match.index, "status": match.status, "reason": match.reason,
        "scores": scores, "together": None if None in scores else sum(each or 0 for each in scores),
        "moves": match.ply, "violations": match.violations, "agreed": match.agreed,
        "pareto_optimal": match.pareto_optimal, "swapped": bool(row.swap_seats and (match.index or 0) % 2),
        "shown": match.config.get(find_game(row.game).list_field or ""),
    }  # fmt: skip


def shown_field(row: RoundRow) -> str | None:
    """The title of the config field that lists show for each match; None if they show the joint score."""
    game = find_game(row.game)
    return None if game.list_field is None else game.fields[game.list_field]["title"]


# ---- Transcripts -------------------------------------------------------------


def _transcripts(session: Session, row: RoundRow) -> dict[str, Any]:
    """A page of a round's matches that the filter chooses, in the order of their indices."""
    given = {name: request.args[name] for name in transcripts.NAMES if request.args.get(name)}
    page: dict[str, Any] = {
        "given": given,
        "endings": transcripts.endings(session, row),
        "filter_refused": None,
        **_latest_match_fields(session, row),
    }
    try:
        wanted = transcripts.read_wanted(given)
        after = transcripts.read_after(request.args.get("after", ""))
    except AppError as error:
        return {**page, "filter_refused": error}
    found, later = transcripts.wanted_matches(session, row.id, wanted, row.swap_seats, after)
    return {
        **page,
        "matches": [shown_match(row, match) for match in found],
        "filtered": wanted != transcripts.ALL,
        "first": after is None,
        "later": later,
    }


_PARTS: Mapping[str, Callable[[Session, RoundRow], dict[str, Any]]] = {
    "summary": _summary_tab_fields, "charts": _charts, "transcripts": _transcripts,
    "settings": _settings_tab_fields, "log": _latest_match_fields,
}  # fmt: skip
