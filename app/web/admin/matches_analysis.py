"""The figures of the matches that a filter chooses, whoever played them: a page like that of a round, and its CSV."""

from collections.abc import Mapping, Sequence

from flask import Response, render_template, request
from flask.typing import ResponseReturnValue

from app.analysis.chart import Chart, Spec
from app.analysis.charts import charts_of
from app.analysis.matches import MatchAnalysis
from app.analysis.tables import analysis_columns, analysis_rows
from app.core.csv_tables import to_csv
from app.core.errors import Invalid, NotFound, Verbatim
from app.matches.filter import NAMES, MatchFilter, read_choice
from app.web.admin.blueprint import blueprint
from app.web.admin.rounds_analysis import analyses_of, page_part, with_specs
from app.web.chart_language import page_language
from app.web.csv_exports import csv_flags
from app.web.downloads import download
from app.web.translations import game_titles


@blueprint.get("/matches/analysis")
def matches_analysis() -> ResponseReturnValue:
    """The figures of the selected matches, for one game and λ at a time, by default the one with the most matches.

    `all=1` counts all of them; otherwise a sample is counted.
    """
    given = {name: request.args[name] for name in NAMES if request.args.get(name)}
    whole = request.args.get("all") == "1"
    try:
        analyses, sampled = analyses_of(read_choice(given), whole=whole)
        part = _analysis_page(analyses, request.args.get("part"))
    except (Invalid, NotFound) as error:
        page = render_template("admin/matches-analysis.html", given=given, analyses=[], analysis=None, refused=error)
        return page, 400
    return render_template(
        "admin/matches-analysis.html",
        given=given,
        link={**given, "all": "1"} if whole else given,
        sampled=sampled,
        analyses=sorted(analyses, key=lambda each: -each.matches),
        refused=None,
        round=None,
        titles=game_titles(),
        **part,
    )


@blueprint.get("/matches/analysis.csv")
def matches_analysis_csv() -> Response:
    """The figures of the page as `flask analyze --csv` prints them: of a sample, unless `all=1`.

    Raises NotFound and Invalid for an impossible filter.
    """
    choice: MatchFilter = read_choice(request.args)
    analyses = analyses_of(choice, whole=request.args.get("all") == "1").analyses
    columns = analysis_columns([each.game for each in analyses])
    return download(to_csv(columns, analysis_rows(analyses), **csv_flags(request.args)), "analysis.csv", "text/csv")


def _analysis_page(analyses: Sequence[MatchAnalysis], key: str | None) -> Mapping[str, object]:
    if not analyses:
        return {"analysis": None}
    known = {each.key: each for each in analyses}
    if key is not None and key not in known:
        raise NotFound("part", expected=Verbatim(", ".join(known)), got=key)
    found = known[key] if key else max(analyses, key=lambda each: each.matches)
    return {**page_part(found), "charts": charts_of(found, page_language()), "chart_specs": _specs}


def _specs(chart: Chart) -> Mapping[str, Spec]:
    return with_specs(chart)[1]
