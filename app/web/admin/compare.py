"""Jobs of one kind side by side: their curves in one chart, and their lines from the list. The URL holds the whole
state.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flask import abort, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.analysis.chart import Chart
from app.analysis.overlaid import EXPONENTIAL, MOST, MOVING, Smoothing, overlaid
from app.core.errors import AppError, Invalid, Phrase, either
from app.core.extensions import db, reading
from app.core.validation import whole_number
from app.job_kinds import JOB_KINDS
from app.jobs.curves import Curve, curves_of
from app.jobs.kind import JobKind
from app.jobs.listing import list_of
from app.jobs.page import is_on_pages, page_of
from app.jobs.tags import has_tag, known_tags
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import compared_numbers, named_job, pages_of
from app.web.admin.rounds_analysis import with_specs
from app.web.chart_language import page_language
from app.web.threads import in_worker_thread

_OFFERED = 50  # jobs that can be added to a comparison without typing a number
_LARGEST_WINDOW = 10_000
_WHOLE: Mapping[str, tuple[str, str]] = {
    "rounds": ("admin.compare_rounds", "round"),
    "trainings": ("admin.compare_jobs", "job"),
}


@blueprint.get("/compare/<jobs>")
def compare(jobs: str) -> ResponseReturnValue:
    """Compare up to six jobs of a kind (`run`, and the latest with a `tag`) by the `figure` of their curves.

    `smooth`: exponential with `weight`, or moving with `window`; `log`: 1 for a log axis.
    """
    kind = next((each for each in JOB_KINDS if each.plural == jobs), None) or abort(404)
    fields = {"kind": kind, "title": pages_of(kind).title, "most": MOST, "given": request.args}
    try:
        smoothing, tag = _smoothing(), request.args.get("tag")
        with reading() as session:
            tagged = _latest_with_tag(session, kind, tag) if tag else []
            numbers = compared_numbers("run", MOST, least=0 if tagged else 1)
            numbers += [number for number in tagged if number not in numbers][: MOST - len(numbers)]
            rows = [kind.get(session, number) for number in numbers]
            return render_template("admin/compare.html", **fields, **_comparison_fields(session, kind, rows, smoothing))
    except AppError as error:
        return render_template("admin/compare.html", **fields, refused=error), error.status


def _comparison_fields(
    session: Session, kind: JobKind[Any], rows: Sequence[Any], smoothing: Smoothing
) -> dict[str, Any]:
    found = {row.id: in_worker_thread(db.engine, _curves, kind, row.id) for row in rows}
    titles = {each.name: each.title for curves in found.values() for each in curves}
    chosen = request.args.get("figure") or next(iter(titles), "")
    if titles and chosen not in titles:
        raise Invalid("figure", expected=either(titles), got=chosen)
    listing = list_of(kind)
    items = page_of(kind).items_of(session, rows)
    names = {item.row.id: named_job(kind, item) for item in items}
    chart = _chart({names[number]: _curve_by_name(curves, chosen) for number, curves in found.items()}, smoothing)
    columns = [each for each in listing.columns[1:] if is_on_pages(each) or each.name == "notes"]
    lines = [(column, column.cells(session, items)) for column in columns]
    further = [row for row in listing.read(session, listing.order(""), _OFFERED).rows if row.id not in found]
    whole = _WHOLE.get(kind.plural)
    return {
        "refused": None,
        "rows": rows,
        "smoothing": smoothing,
        "figures": titles,
        "chosen": chosen,
        "chart": None if chart is None else with_specs(chart),
        "without": [row.id for row in rows if _curve_by_name(found[row.id], chosen) is None],
        "lines": [(column, cells) for column, cells in lines if not column.if_any or any(cells)],
        "tags": known_tags(session, kind.name),
        "items": items,
        "names": names,
        "offered": {item.row.id: named_job(kind, item) for item in page_of(kind).items_of(session, further)},
        "whole": url_for(whole[0], **_query(whole[1], found)) if whole and len(found) > 1 else None,
    }


def _latest_with_tag(session: Session, kind: JobKind[Any], tag: str) -> list[int]:
    key = kind.table.id
    chosen = select(key).where(has_tag(key, kind.name, tag)).order_by(key.desc()).limit(MOST)
    return [*session.scalars(chosen)]


def _query(name: str, numbers: Iterable[int]) -> dict[str, Any]:
    return {name: [*numbers]}


def _curves(session: Session, kind: JobKind[Any], number: int) -> Sequence[Curve]:
    return curves_of(kind, session, kind.get(session, number))


def _curve_by_name(curves: Sequence[Curve], name: str) -> Curve | None:
    return next((each for each in curves if each.name == name), None)


def _chart(curves: Mapping[str, Curve | None], smoothing: Smoothing) -> Chart | None:
    """The available curves in one chart; None if no job has that curve."""
    found = {name: curve for name, curve in curves.items() if curve is not None}
    if not found:
        return None
    first = next(iter(found.values()))
    return overlaid(
        first.title.render(gettext),
        first.x.render(gettext),
        {name: curve.points for name, curve in found.items()},
        smoothing,
        log=request.args.get("log") == "1",
        language=page_language(),
    )


def _smoothing() -> Smoothing:
    """The smoothing of the curves that the URL asks for. Raises Invalid."""
    way = request.args.get("smooth", "")
    if way not in ("", EXPONENTIAL, MOVING):
        raise Invalid("smooth", expected=either((EXPONENTIAL, MOVING)), got=way)
    usual = Smoothing()
    text = request.args.get("weight") or str(usual.weight)
    try:
        weight = float(text)
    except ValueError:
        weight = -1.0
    if not 0 <= weight <= 0.99:
        raise Invalid("weight", expected=Phrase("a number from 0 to 0.99"), got=text)
    window = whole_number(request.args.get("window") or str(usual.window), "window", 1, _LARGEST_WINDOW)
    return Smoothing(way, weight, window)
