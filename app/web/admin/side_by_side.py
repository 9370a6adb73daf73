"""Models side by side: what each scores in self-play, in cross-play and with people, and what it says.

It is computed off the event loop, from a sample if there are many matches, and cached for a minute.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from flask import Response, render_template, request
from flask.typing import ResponseReturnValue
from flask_babel import gettext
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.analysis.chart import Chart
from app.analysis.side_by_side import SideBySide, SideBySideChoice, side_by_side
from app.analysis.side_by_side.charts import charts_of
from app.analysis.side_by_side.figures import AgainstBase, PlayerFigures
from app.analysis.side_by_side.language import VOCABULARY
from app.analysis.side_by_side.settings import MOST_BESIDE, OF_MODELS
from app.analysis.side_by_side.tables import TABLES, rows_of
from app.analysis.wording import p_words
from app.campaigns.side_by_side import choice_of_campaign
from app.core.csv_tables import to_csv
from app.core.errors import Invalid, NotFound, Phrase, Verbatim, either
from app.core.extensions import db
from app.core.validation import whole_number
from app.jobs.kind import LARGEST
from app.models import LanguageModel, Study
from app.recipes.side_by_side import choice_of_run
from app.web.admin.blueprint import blueprint
from app.web.admin.rounds_analysis import cached, labels_of, with_specs
from app.web.chart_language import page_language
from app.web.csv_exports import csv_flags
from app.web.downloads import download
from app.web.threads import in_worker_thread
from app.web.translations import game_titles

_MOST = 2_000  # matches of a setting read by a page
_KEPT = 60  # seconds
_NAMES = ("base", "campaign", "recipe", "study", "part")


class NamedFigure(NamedTuple):
    """A figure under the name of its column."""

    name: str
    figure: Figure


class FigureLine(NamedTuple):
    """A line of a table: its title, and a figure for each column."""

    title: str
    figures: Sequence[NamedFigure]


class ScoreLine(NamedTuple):
    """A model in a role: its figure and its ratio to the base in each setting, or None."""

    model: str
    iteration: int | None
    role: str | None
    cells: Sequence[tuple[NamedFigure, Figure | None] | None]


class ComparisonLine(NamedTuple):
    """A comparison of a model's figure with the base's."""

    player: PlayerFigures
    title: str
    name: str
    found: AgainstBase
    p: str


@blueprint.get("/models/side-by-side")
def side_by_side_page() -> ResponseReturnValue:
    """Compare the `models`, or those of a `campaign` or of the run of a `recipe`, with the `base`.

    `study` limits the people to those of one study. `part` selects the game and λ; the default is those with the most
    matches.
    """
    given = _given()
    names, studies = in_worker_thread(db.engine, _offered_models_and_studies)
    fields = {"given": given, "names": names, "studies": studies, "most": _MOST, "shown": None, "refused": None}
    if not any(given.get(each) for each in ("models", "campaign", "recipe")):
        return render_template("admin/side-by-side.html", **fields)
    try:
        found = _cached_side_by_side(given)
        shown = _part_to_show(found, given.get("part"))
    except (Invalid, NotFound) as error:
        return render_template("admin/side-by-side.html", **{**fields, "refused": error}), 400
    if shown is None:
        return render_template("admin/side-by-side.html", **{**fields, "chosen": True})
    return render_template(
        "admin/side-by-side.html",
        **{**fields, "shown": shown},
        titles=game_titles(),
        kinds=found,
        settings_of_models=OF_MODELS,
        headline=gettext(shown.defined.model_headline.heading),
        scores=_score_lines(shown),
        by_setting=[
            (setting, _players_in(shown, setting), _figure_lines(shown, setting)) for setting in shown.settings
        ],
        tests=_comparison_lines(shown),
        language_lines=_language_lines(shown),
        charts=charts_of(shown, page_language()),
        chart_specs=_specs,
    )


@blueprint.get("/models/side-by-side/<name>.csv")
def side_by_side_csv(name: str) -> Response:
    """A table of the page, as `flask model compare --csv` prints it. Raises NotFound and Invalid."""
    if name not in TABLES:
        raise NotFound("table", expected=either(TABLES), got=name)
    given = _given()
    found, part = _cached_side_by_side(given), given.get("part")
    if part is not None:
        found = [each for each in found if each.key == part]
    wanted = TABLES[name]
    columns = wanted.columns(list(dict.fromkeys(each.game for each in found)) or None)
    return download(
        to_csv(columns, rows_of(wanted, found), **csv_flags(request.args)), f"{wanted.name}.csv", "text/csv"
    )


def _given() -> dict[str, Any]:
    """The choice that the URL makes."""
    found: dict[str, Any] = {name: request.args[name] for name in _NAMES if request.args.get(name)}
    if models := [each for each in dict.fromkeys(request.args.getlist("models")) if each]:
        found["models"] = models
    return found


def _offered_models_and_studies(session: Session) -> tuple[list[str], list[str]]:
    """The names of the models and of the studies that can be chosen."""
    models = session.scalars(select(LanguageModel.name).order_by(LanguageModel.name))
    return list(models), list(session.scalars(select(Study.name).order_by(Study.name)))


def _cached_side_by_side(given: Mapping[str, Any]) -> list[SideBySide]:
    """The models side by side. Raises NotFound and Invalid for an impossible choice."""
    choice = in_worker_thread(db.engine, _read_model_choice, given)
    key = (str(db.engine.url), "side by side", repr(choice), int(time.monotonic() / _KEPT))
    found: list[SideBySide] = cached(key, partial(in_worker_thread, db.engine, side_by_side, choice))
    return found


def _read_model_choice(session: Session, given: Mapping[str, Any]) -> SideBySideChoice:
    further: dict[str, Any] = {"study": given.get("study"), "most": _MOST}
    for name, read in (("campaign", choice_of_campaign), ("recipe", choice_of_run)):
        if name in given:
            return read(session, whole_number(given[name], name, 1, LARGEST), **further)
    models = tuple(given.get("models", ()))
    if len(models) > MOST_BESIDE:
        got = Verbatim(len(models))
        raise Invalid("models", expected=Phrase("at most %(most)s on a page", most=MOST_BESIDE), got=got)
    if not models:
        raise Invalid("models", expected=Phrase("one or more, each once"), got=Phrase("none"))
    base = given.get("base") or models[0]
    return SideBySideChoice(models=tuple(dict.fromkeys((base, *models))), base=base, **further)


def _part_to_show(found: Sequence[SideBySide], key: str | None) -> SideBySide | None:
    """The game and weight to show. Raises NotFound for a missing one."""
    if not found:
        return None
    known = {each.key: each for each in found}
    if key is not None and key not in known:
        raise NotFound("part", expected=Verbatim(", ".join(known)), got=key)
    return known[key] if key else max(found, key=lambda each: sum(row.matches for row in each.players))


# ---- Tables --------------------------------------------------------------------------


def _score_lines(shown: SideBySide) -> list[ScoreLine]:
    name = shown.defined.model_headline.name
    lines = []
    for model in shown.choice.models:
        for role in shown.roles:
            cells: list[tuple[NamedFigure, Figure | None] | None] = []
            for setting in OF_MODELS:
                each = shown.find(model, setting, role)
                versus = None if each is None else each.against_base.get(name)
                figure = None if each is None else NamedFigure(name, each.columns[name])
                cells.append(None if figure is None else (figure, None if versus is None else versus.ratio))
            if any(cells):
                lines.append(ScoreLine(model, shown.choice.iterations.get(model), role, cells))
    return lines


def _players_in(shown: SideBySide, setting: str) -> list[PlayerFigures]:
    return [each for each in shown.players if each.setting == setting]


def _figure_lines(shown: SideBySide, setting: str) -> list[FigureLine]:
    metrics = shown.defined.side_by_side
    titles, players = labels_of(metrics), _players_in(shown, setting)
    return [
        FigureLine(titles[each.name], [NamedFigure(each.name, player.columns[each.name]) for player in players])
        for each in metrics
    ]


def _comparison_lines(shown: SideBySide) -> list[ComparisonLine]:
    titles, language = labels_of(shown.defined.side_by_side), page_language()
    return [
        ComparisonLine(player, titles[name], name, found, p_words(found.p, language))
        for player in shown.players
        for name, found in player.against_base.items()
        if found.difference.value is not None
    ]


def _language_lines(shown: SideBySide) -> list[FigureLine]:
    titles = {VOCABULARY: gettext("Different words in 1,000")}
    titles |= {each.name: gettext(each.heading) for each in shown.defined.language}
    return [
        FigureLine(title, [NamedFigure(name, each.columns[name]) for each in shown.language])
        for name, title in titles.items()
    ]


def _specs(chart: Chart) -> dict[str, Any]:
    return with_specs(chart)[1]
