"""`flask society`: agents on a grid that answer, criticise and revise, here or by the workers."""

import click

from app.cli.assessment import compare
from app.cli.base import Command, ensure_database, json_option, print_json
from app.cli.jobs import Described, JobCommands, create, prepared, queue_option
from app.cli.society_data import COMMANDS
from app.cli.spec_options import read_files, spec_options
from app.core.extensions import reading
from app.models import Society
from app.society import estimate, lifecycle
from app.society.creation import CREATION
from app.society.job import SOCIETY
from app.society.spec import SocietySpec


@click.command(cls=Command)
@spec_options(SocietySpec)
@click.option("--estimate", "only_estimate", is_flag=True, help="Say what it will take, and run nothing.")
@queue_option
@json_option
def run(spec: SocietySpec, only_estimate: bool, queue: bool, as_json: bool) -> None:
    """Run a society: every agent drafts, is criticised and revises, once an iteration.

    Exit code 0: all iterations are over; 1: it stopped, and a line says why; 130: interrupted, and a line says how to
    resume.
    """
    material = read_files(spec)
    ensure_database()
    if only_estimate:
        with reading() as session:
            _print_estimate(lifecycle.estimated(session, spec, **material), as_json)
        return
    [number] = create(CREATION, prepared(CREATION, spec, material), queued=queue)
    _SOCIETIES.go_on(number, queue, as_json)


class _SocietyCommands(JobCommands[Society]):
    """See `flask society`."""

    help = "Run agents on a grid that answer, criticise and revise; build training data from it."
    none_yet = "No societies yet: flask society run --agents MODEL --observers MODEL"
    resume_help = "Resume a society that failed, was cancelled or interrupted."
    cancel_help = "Cancel a society. It keeps its results and can be resumed."
    show_help = "Show one society: its settings, and the mean ratings of each iteration."
    list_help = "Show the societies, the latest first."

    def stopped(self, described: Described) -> str:
        """The number of its interactions so far."""
        return f", {described['done']} of {described['of']} interactions over"


_SOCIETIES = _SocietyCommands(SOCIETY)
society = _SOCIETIES.group()
for command in (run, *COMMANDS):
    society.add_command(command)
society.add_command(compare, "compare")


# ---- Words ------------------------------------------------------------------------


def _print_estimate(found: estimate.SocietyEstimate, as_json: bool) -> None:
    if as_json:
        print_json({name: getattr(found, name) for name in found.__slots__})
        return
    cost = "unknown, as a model has no prices" if found.cost is None else f"{found.cost:.2f} USD"
    click.echo(f"interactions  {found.interactions}")
    click.echo(f"calls         {found.calls}")
    click.echo(f"tokens        {found.prompt_tokens} of prompts, {found.completion_tokens} of answers")
    click.echo(f"cost          {cost}")
    click.echo(f"time          {found.seconds:.0f} s")
    for name, count in found.basis.items():
        past = f"its last {count} calls" if count else "typical figures, as it was never called in a society"
        click.echo(f"{name}: from {past}")
