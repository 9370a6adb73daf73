"""`flask spend`: the costs of models, and one stop for all spending."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import click
from sqlalchemy.orm import Session

from app.cli.base import (
    Group,
    check_one_format,
    counted,
    ensure_database,
    json_option,
    print_csv,
    print_json,
    print_result,
    settings,
)
from app.cli.tables import aligned
from app.core.extensions import db, reading, transact, writing
from app.jobs.spending import dollars
from app.registry.spending import open_stop
from app.spend.call_sums import recount
from app.spend.figures import PERIODS, WEEK, Spend, SpendSums, read_spend, read_spend_lines, spend_columns
from app.spend.limits import SpendingLimit, limits, pace_of
from app.spend.people import PeoplesPay, in_words, read_pay, wave_caps
from app.spend.stop import COMMAND_LINE, JobRef, StopEffect, effect_of_stop, end_stop, stop_spending

_HEADS = ("calls", "tokens in", "tokens out", "tokens trained", "US dollars")
_AT_MOST = 20  # runs in the table


@click.group(cls=Group)
def spend() -> None:
    """Show what models have cost, or stop all spending."""


@spend.command()
@click.option("--period", type=click.Choice([*PERIODS]), default=WEEK, help="Since when.", show_default=True)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV: a line for each day, model and run or study.")
@json_option
def show(period: str, as_csv: bool, as_json: bool) -> None:
    """Show what was spent by model, day, run and study, and when limits are reached."""
    check_one_format(as_json, as_csv)
    ensure_database()
    with reading() as session:
        if as_csv:
            lines_of_csv = read_spend_lines(session, period)
            print_csv(spend_columns(lines_of_csv), lines_of_csv.lines)
            return
        found = read_spend(session, period)
        pace = pace_of(session, found, period)
        caps, stop = [*limits(session, settings(), pace), *wave_caps(session)], open_stop(session)
        pay = read_pay(session, found.since)
        if as_json:
            said = _spend_json(found, period, pace, caps, stopped=stop is not None)
            print_json({**said, "people": _pay_described(pay)})
            return
        lines = [*_in_words(found, period, pace, caps), *_pay_lines(pay)]
        if stop is not None:
            lines.append(f"Spending is stopped by {stop.by}; `flask spend resume` ends that.")
    click.echo("\n".join(lines))


@spend.command("recount")
@json_option
def recount_(as_json: bool) -> None:
    """Recompute the sums of model calls that pages show, while Parlor runs."""
    ensure_database()
    number = recount(db.engine)
    print_result(as_json, {"calls": number}, f"Summed {counted(number, 'call')}.")


@spend.command()
@click.option("--check", is_flag=True, help="Only say what would stop, and what would go on.")
@json_option
def stop(check: bool, as_json: bool) -> None:
    """Cancel all jobs that may spend, and begin no further call of a paid model; `flask spend resume` undoes it."""
    ensure_database()

    def act(session: Session) -> StopEffect:
        effect = effect_of_stop(session)
        if not check:
            stop_spending(session, COMMAND_LINE)
        return effect

    effect = transact(db.engine)(act)  # if somebody else stops first at the same moment, it says so
    said = {
        "stopped": not check,
        "stops": [[job.kind.name, job.number] for job in effect.stops],
        "goes_on": [[job.kind.name, job.number] for job in effect.goes_on],
        "matches_of_people": effect.people,
    }
    print_result(
        as_json,
        said,
        f"{'Would stop' if check else 'Stopped'}: {_jobs_in_words(effect.stops)}; no call of a paid model begins.",
        f"Continues: {counted(effect.people, 'match', 'matches')} that people play, studies, and trainings on this"
        f" machine ({_jobs_in_words(effect.goes_on)}).",
    )


@spend.command()
@json_option
def resume(as_json: bool) -> None:
    """End the stop: calls begin again, and workers resume the jobs that it cancelled."""
    ensure_database()
    with writing() as session:
        found = end_stop(session)
    found.enqueue(settings().broker_url)
    said = {
        "resumed": [[job.kind.name, job.number] for job, _ in found.jobs],
        "left": [{"kind": job.kind.name, "number": job.number, "error": job.refused} for job in found.left],
    }
    resumed = _jobs_in_words([job for job, _ in found.jobs])
    left = [f"Not resumed: {job.cell}: {job.refused}" for job in found.left]
    print_result(as_json, said, f"Resumed: {resumed}.", *left)


def _jobs_in_words(jobs: Sequence[JobRef]) -> str:
    return ", ".join(str(job.cell) for job in jobs) or "no job"


def _spend_json(
    found: Spend, period: str, pace: float, caps: Sequence[SpendingLimit], *, stopped: bool
) -> dict[str, Any]:
    return {
        "period": period,
        "since": found.since and found.since.isoformat(),
        "total": found.total._asdict(),
        "usd_a_day": pace,
        "by_model": [{"model": model and model.name, **sums._asdict()} for model, sums in found.by_model()],
        "by_day": [{"day": day.isoformat(), **sums._asdict()} for day, sums in found.by_day()],
        "by_run": [
            {**each._asdict(), "name": found.names.get(each), **sums._asdict()} for each, sums in found.by_run()
        ],
        "by_study": [
            {**each._asdict(), "name": found.names.get(each), **sums._asdict()} for each, sums in found.by_study()
        ],
        "limits": [
            {**each._asdict(), "title": str(each.title), "reached": str(each.reached), "effect": str(each.effect)}
            for each in caps
        ],
        "stopped": stopped,
    }


def _pay_described(pay: PeoplesPay) -> list[dict[str, Any]]:
    """Payments to people including fees, by study and day, in the currency of each study."""
    found: dict[tuple[int, str, str], Decimal] = defaultdict(Decimal)
    for line in pay.lines:
        found[line.study_id, line.day.isoformat(), line.currency] += line.with_fee
    return [
        {"study": pay.studies[study], "day": day, "currency": currency, "with_fee": f"{amount:.4f}"}
        for (study, day, currency), amount in sorted(found.items())
    ]


def _pay_lines(pay: PeoplesPay) -> Iterator[str]:
    for study, sums in pay.by_study().items():
        people = counted(pay.people_of(study), "person", "people")
        yield f"Study {pay.studies[study]} paid or owes {people}, with fees: {in_words(sums)}."


def _in_words(found: Spend, period: str, pace: float, caps: Sequence[SpendingLimit]) -> Iterator[str]:
    if not found.by_day_and_model:
        yield f"{PERIODS[period]}: no model was called."
    else:
        yield f"{PERIODS[period]}: {dollars(found.total.usd)} for {counted(found.total.calls, 'call')}."
        yield from _spend_table_lines(
            "model", [(model.name if model else "none", sums) for model, sums in found.by_model()]
        )
        yield from _spend_table_lines("day", [(day.isoformat(), sums) for day, sums in found.by_day()])
        yield from _spend_table_lines(
            "run", [(str(found.cell(each)), sums) for each, sums in found.by_run()[:_AT_MOST]]
        )
        yield from _spend_table_lines("study", [(str(found.cell(each)), sums) for each, sums in found.by_study()])
    yield f"Pace: {dollars(pace)} a day, the mean of the seven whole days before today."
    for each in caps:
        if each.currency is not None:
            spent, most = f"{each.spent:.2f}", f"{each.most:.2f} {each.currency}"
        elif each.in_tokens:
            spent, most = f"{each.spent:.0f}", f"{each.most:.0f} tokens"
        else:
            spent, most = dollars(each.spent), dollars(each.most)
        yield f"{each.title}: {spent} of {most}; reached: {each.reached}."


def _spend_table_lines(head: str, lines: Sequence[tuple[str, SpendSums]]) -> Iterator[str]:
    if lines:
        cells = [
            (
                name,
                *map(str, (sums.calls, sums.prompt_tokens, sums.completion_tokens + sums.estimated)),
                str(sums.trained_tokens),
                dollars(sums.usd) + (f" + {sums.unpriced} of unknown price" if sums.unpriced else ""),
            )
            for name, sums in lines
        ]
        yield ""
        yield from aligned([(head, *_HEADS), *cells], right={1, 2, 3, 4, 5})
        yield ""
