"""`flask society compare`, also `flask assessment run`: raters compare a model's answers with another model's."""

import click

from app.assessments import listing
from app.assessments.creation import CREATION
from app.assessments.figures import COLUMNS
from app.assessments.job import ASSESSMENT
from app.assessments.spec import AssessmentSpec
from app.cli.base import Command, check_one_format, ensure_database, json_option, print_csv
from app.cli.jobs import Described, JobCommands, create, prepared, queue_option, run_job_here
from app.cli.spec_options import read_files, spec_options
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading
from app.models import Assessment


@click.command(cls=Command)
@spec_options(AssessmentSpec)
@queue_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV: a row per aspect and rater.")
@json_option
def compare(spec: AssessmentSpec, queue: bool, as_csv: bool, as_json: bool) -> None:
    """Have MODEL and BASE answer the same held-out questions, and raters rate each answer.

    Questions that MODEL or BASE was trained on are left out, and a line says how many. Exit code 0: all is rated; 1:
    it stopped, and a line says why; 130: interrupted, and a line says how to resume.
    """
    check_one_format(as_json, as_csv)
    if queue and as_csv:
        raise Invalid("--csv", expected="it without --queue", got=Verbatim("both"))
    files = read_files(spec)
    ensure_database()
    request = prepared(CREATION, spec, files)
    [number] = create(CREATION, request, queued=queue)
    if (found := request.known).known:
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

    help = "Have raters rate two models' answers to held-out questions."
    none_yet = "No assessments yet: flask assessment run MODEL BASE --raters NAME --questions FILE"
    resume_help = "Resume an assessment that failed, was cancelled or interrupted."
    cancel_help = "Cancel an assessment. It keeps its answers and ratings and can be resumed."
    show_help = "Show the ratings: both models, and their paired difference with its 95 % interval."
    list_help = "Show the assessments, the latest first."
    show_options = (click.option("--csv", "as_csv", is_flag=True, help="Print CSV: a row per aspect and rater."),)

    def stopped(self, described: Described) -> str:
        """The number of answers so far."""
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


_ASSESSMENTS = _AssessmentCommands(ASSESSMENT)
assessment = _ASSESSMENTS.group()
assessment.add_command(compare, "run")
