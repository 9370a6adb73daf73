"""`flask society compare`, also `flask assessment run`: a model beside another one, as raters see their answers."""

from collections.abc import Sequence

import click
from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.assessments import lifecycle, listing
from app.assessments.figures import COLUMNS, AssessmentFigures
from app.assessments.job import ASSESSMENT
from app.assessments.spec import AssessmentSpec
from app.assessments.training_overlap import held_out
from app.cli.base import Command, check_one_format, ensure_database, print_csv, settings
from app.cli.jobs import Described, JobCommands, json_option, queue_option, run_job_here
from app.cli.spec_options import read_files, spec_options
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading, writing
from app.models import Assessment


@click.command(cls=Command)
@spec_options(AssessmentSpec)
@queue_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV: a row an aspect and rater.")
@json_option
def compare(spec: AssessmentSpec, queue: bool, as_csv: bool, as_json: bool) -> None:
    """Have MODEL and BASE answer the same held-out questions, and raters say how good each answer is.

    Questions that MODEL or BASE was trained on are left out, and a line says how many. Exit code 0: all is rated; 1:
    it stopped, and a line says why; 130: interrupted, and a line says how to resume.
    """
    check_one_format(as_json, as_csv)
    if queue and as_csv:
        raise Invalid("--csv", expected="it without --queue", got=Verbatim("both"))
    asked = read_files(spec)["questions"]
    ensure_database()
    with reading() as session:
        lifecycle.check(session, spec, asked)
        found = held_out(session, settings().home, (spec.model, spec.base), asked.questions)
    with writing() as session:
        number = lifecycle.create(session, spec, asked, found, queued=queue).id
    if found.known:
        click.echo(
            f"{len(found.known)} of {len(found.known) + len(found.unknown)} questions are left out, because"
            f" {spec.model} or {spec.base} was trained on them.",
            err=True,
        )
    if not as_csv:
        _ASSESSMENTS.go_on(number, queue, as_json)
        return
    run_job_here(ASSESSMENT, number)
    _ASSESSMENTS.refuse_unfinished(number)
    _ASSESSMENTS.print_figures(number)


class _AssessmentCommands(JobCommands[Assessment]):
    """See `flask assessment`."""

    help = "Have raters say how good the answers of two models to held-out questions are."
    none_yet = "No assessments yet: flask assessment run MODEL BASE --raters NAME --questions FILE"
    resume_help = "Go on with an assessment that failed, was cancelled or interrupted."
    cancel_help = "Stop an assessment. What was answered and rated stays, and it can be resumed."
    show_help = "Show the ratings: both models, and their paired difference with its 95 % interval."
    list_help = "Show the assessments, the latest first."
    show_options = (click.option("--csv", "as_csv", is_flag=True, help="Print CSV: a row an aspect and rater."),)

    def described(self, session: Session, rows: Sequence[Assessment]) -> list[Described]:
        """Assessments as JSON; one alone with its figures."""
        facts = listing.described(session, rows)
        if len(rows) != 1:
            return facts
        figures = listing.figures_of(session, rows[0])
        return [{**facts[0], "figures": [{column.name: column.read(each) for column in COLUMNS} for each in figures]}]

    def shown(self, described: Described) -> Described:
        """All but the figures, which the log has in lines."""
        return {name: value for name, value in described.items() if name != "figures"}

    def log(self, row: Assessment) -> str:
        """The figures as a table."""
        with reading() as session:
            return table(listing.figures_of(session, row))

    def stopped(self, described: Described) -> str:
        """After how many answers."""
        return f", {described['done']} of {described['of']} answers rated"

    def print_one(self, number: int, as_json: bool, as_csv: bool = False) -> None:
        """Print an assessment, or its figures as CSV."""
        check_one_format(as_json, as_csv)
        if as_csv:
            self.print_figures(number)
        else:
            super().print_one(number, as_json)

    def print_figures(self, number: int) -> None:
        """Print the figures as CSV."""
        with reading() as session:
            found = listing.figures_of(session, ASSESSMENT.get(session, number))
        print_csv(COLUMNS, found)

    def report(self, number: int, as_json: bool) -> None:
        """Print the result, with its figures."""
        super().report(number, as_json)
        if not as_json:
            with reading() as session:
                row = ASSESSMENT.get(session, number)
            click.echo(self.log(row))


_ASSESSMENTS = _AssessmentCommands(ASSESSMENT)
assessment = _ASSESSMENTS.group()
assessment.add_command(compare, "run")


def table(found: Sequence[AssessmentFigures]) -> str:
    """The figures for a terminal."""
    lines = [("aspect", "rater", "model", "base", "difference", "questions", "better", "worse")]
    for each in found:
        counts = (str(each.difference.n), str(each.better), str(each.worse))
        lines.append(
            (
                each.aspect,
                each.rater or "all",
                _mean_text(each.model),
                _mean_text(each.base),
                _in_words(each.difference),
                *counts,
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _mean_text(figure: Figure) -> str:
    return "–" if figure.value is None else f"{figure.value:.2f}"


def _in_words(figure: Figure) -> str:
    if figure.value is None:
        return "–"
    if figure.low is None:
        return f"{figure.value:+.2f} (no interval: {figure.no_interval})"
    return f"{figure.value:+.2f} ({figure.low:+.2f} to {figure.high:+.2f})"
