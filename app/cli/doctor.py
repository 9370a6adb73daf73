"""`flask doctor`: whether everything that Parlor needs is present, with a remedy where it is not."""

from collections.abc import Iterator
from functools import partial

import click
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from app.cli import checks, model_checks
from app.cli.base import Command, ensure_database, json_option, print_json, settings
from app.cli.checks import FAIL, OK, WARN, Finding
from app.core.errors import AppError
from app.core.extensions import writing
from app.model_calls import request_lifecycle
from app.model_calls.request_runner import make_here
from app.model_calls.test_call import opening, sampling_of
from app.models import LanguageModel
from app.registry import get_model_by_number
from app.registry.spending import spending_limit


@click.command(cls=Command)
@click.option(
    "--call", is_flag=True, help="Ask every API or local model that is used for a move, which may cost some tokens."
)
@json_option
@click.pass_context
def doctor(ctx: click.Context, call: bool, as_json: bool) -> None:
    """Check what Parlor needs, and say what to do.

    Exit code 0: nothing failed, though there may be warnings; 1: something failed.
    """
    findings = list(_findings(call))
    failed = any(finding.state == FAIL for finding in findings)
    if as_json:
        print_json({"ok": not failed, "checks": [checks.as_json(finding) for finding in findings]})
    else:
        for finding in findings:
            remedy = f" → {finding.remedy}" if finding.remedy else ""
            click.echo(f"{finding.state:<5} {finding.subject}: {finding.detail}{remedy}")
    if failed:
        ctx.exit(1)


def _findings(call: bool) -> Iterator[Finding]:
    current = settings()
    yield from checks.folders(current)
    yield from checks.disk(current)
    yield from checks.secret_key(current)
    yield from checks.training()
    database = checks.open_database(current)
    try:
        with database.connect():
            ensure_database()
    except (SQLAlchemyError, AppError):
        pass  # the checks below find and report the cause
    yield from checks.database(current, database)
    reached = list(checks.broker(current))
    yield from reached
    yield from checks.workers(current, all(finding.state == OK for finding in reached))
    yield from checks.models_process(current)
    yield from checks.upkeep(database)
    yield from model_checks.models(
        database, current.home, partial(_try_model_call, database) if call else lambda _row: None
    )
    database.dispose()


def _try_model_call(database: Engine, row: LanguageModel) -> Finding:
    """Have the model make the first move of a match that is not stored; the call is recorded like those of
    questions.
    """
    subject = f"model {row.name}"
    try:
        with writing(database) as session:
            if row.kind == "api" and (limit := spending_limit(session, settings())) is not None:
                return Finding(subject, WARN, f"not called: {limit}")
            own = get_model_by_number(session, row.id)
            asked = request_lifecycle.QUESTION, opening(own), sampling_of(own)
            number = request_lifecycle.create(session, own, *asked).id
    except AppError as error:  # it was removed or archived meanwhile
        return Finding(subject, WARN, f"not called: {error.message}")
    except SQLAlchemyError:
        return Finding(subject, FAIL, "not called, because the database is not ready", "mend the database first")
    result = make_here(database, settings(), number)
    if not result["ok"]:
        remedy = f"mend its server or its options, or flask model set {row.name} --rounds off --people off"
        return Finding(subject, FAIL, result["error"], remedy)
    took = f"{result['model']} answered in {result['latency']:.1f} s"
    return Finding(subject, OK, f"{took} with {len(result['text'])} characters")
