"""The cost of models, the spending limits with the time they will be reached, and one stop for everything that
spends.
"""

from datetime import UTC, datetime
from typing import Any

from flask import Response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.core.config import Settings
from app.core.csv_tables import to_csv
from app.core.errors import AppError, Conflict, Invalid, Phrase, either
from app.core.extensions import db
from app.core.lists import Reference
from app.registry.spending import open_stop
from app.spend.call_sums import STUDY, Purpose
from app.spend.chart import spend_chart
from app.spend.figures import (
    PERIODS,
    WEEK,
    Spend,
    SpendLines,
    SpendSums,
    begin_of,
    read_spend,
    read_spend_lines,
    spend_columns,
)
from app.spend.limits import SpendingLimit, limits, pace_of
from app.spend.people import PeoplesPay, in_words, pay_columns, read_pay, wave_caps
from app.spend.stop import effect_of_stop, end_stop, stop_spending
from app.spend.storage import KINDS, read_storage
from app.web.admin.blueprint import blueprint
from app.web.admin.job_pages import requester
from app.web.admin.rounds_analysis import with_specs
from app.web.chart_language import page_language
from app.web.downloads import download
from app.web.form_writes import write
from app.web.seats import settings
from app.web.threads import in_worker_thread

_AT_MOST = 20  # runs in the table; the file has all of them


@blueprint.get("/spend")
def spend() -> ResponseReturnValue:
    """The figures of a period, or all lines that they sum up as a file."""
    return _spend_page()


@blueprint.post("/spend")
def act_on_spend() -> ResponseReturnValue:
    """Stop all spending, or resume it."""
    action, by = request.form.get("action"), requester().name
    try:
        if action == "stop":
            write(lambda session: stop_spending(session, by).id)
        elif action == "resume":
            resumed = write(end_stop)
            resumed.enqueue(settings().broker_url)
            if resumed.left:
                job = resumed.left[0]
                raise Conflict(
                    "spend",
                    expected=Phrase("jobs that can go on, as all others do"),
                    got=Phrase("%(count)s that cannot, such as %(job)s", count=len(resumed.left), job=job.cell.words),
                    remedy=Phrase("its page says why and has a button to resume it"),
                )
        else:
            raise Invalid("action", expected=Phrase("stop or resume"), got=action)
    except (Invalid, Conflict) as error:
        return _spend_page(error)
    return redirect(url_for("admin.spend"), 303)


def _spend_page(refused: AppError | None = None) -> ResponseReturnValue:
    period = request.args.get("period", WEEK)
    if period not in PERIODS:
        refused, period = refused or Invalid("period", expected=either(PERIODS), got=period), WEEK
    if request.args.get("format") == "pay" and refused is None:
        pay = in_worker_thread(db.engine, lambda session: read_pay(session, begin_of(period, datetime.now(UTC))))
        return download(to_csv(pay_columns(pay), pay.lines), f"pay-{period}.csv", "text/csv")
    if request.args.get("format") == "csv" and refused is None:
        return _spend_csv(in_worker_thread(db.engine, read_spend_lines, period), period)
    shown = in_worker_thread(db.engine, _read_page_content, period, settings())
    chart = with_specs(spend_chart(shown.pop("spend"), page_language()))
    page = render_template(
        "admin/spend.html", **shown, chart=chart, period=period, periods=PERIODS, kinds=KINDS, refused=refused
    )
    return page, 200 if refused is None else refused.status


def _read_page_content(session: Session, period: str, known: Settings) -> dict[str, Any]:
    """The content of the page; a period may have many calls, and the disk many files."""
    found = read_spend(session, period, most=_AT_MOST)
    pace, pay = pace_of(session, found, period), read_pay(session, found.since)
    caps = [*limits(session, known, pace), *wave_caps(session)]
    return {
        "spend": found,
        **_model_spend_fields(found),
        **_payments_to_people_fields(found, pay),
        "pace": pace,
        "limits": [(each, _of_limit(each)) for each in caps],
        **_spending_stop_fields(session),
        "storage": read_storage(session, known),
    }


def _model_spend_fields(found: Spend) -> dict[str, Any]:
    runs = found.by_run()[:_AT_MOST]
    return {
        "total": found.total,
        "by_model": found.by_model(),
        "by_day": found.by_day(),
        "by_run": [(found.cell(purpose), sums) for purpose, sums in runs],
        "further_runs": found.runs - len(runs),
    }


def _payments_to_people_fields(found: Spend, pay: PeoplesPay) -> dict[str, Any]:
    """Payments to people beside the cost of models, by study and day; includes studies that called no model."""
    of_models = {purpose.number: sums for purpose, sums in found.by_study()}
    of_people, days = pay.by_study(), pay.by_day()
    studies = dict.fromkeys([*of_models, *of_people])
    return {
        "by_study": [
            (
                Reference(STUDY, number, found.names.get(Purpose(STUDY, number)) or pay.studies.get(number or 0, "")),
                of_models.get(number, SpendSums()),
                in_words(of_people.get(number or 0, {})),
                pay.people_of(number or 0),
            )
            for number in studies
        ],
        "pay_total": in_words(pay.total),
        "pay_by_day": {day: in_words(sums) for day, sums in days.items()},
    }


def _spending_stop_fields(session: Session) -> dict[str, Any]:
    effect = effect_of_stop(session)
    stops, goes_on = ([job.cell for job in jobs] for jobs in (effect.stops, effect.goes_on))
    return {"stop": open_stop(session), "stops": stops, "goes_on": goes_on, "people": effect.people}


def _of_limit(limit: SpendingLimit) -> Reference | Phrase:
    return limit.title if limit.kind is None else Reference(limit.kind, limit.number, limit.title)


def _spend_csv(found: SpendLines, period: str) -> Response:
    return download(to_csv(spend_columns(found), found.lines), f"spend-{period}.csv", "text/csv")
