"""`flask benchmark`: score models on reasoning tasks, here or by the workers, and compare them."""

from collections.abc import Sequence
from typing import Any

import click

from app.benchmarks import tasks
from app.benchmarks.creation import CREATION
from app.benchmarks.job import BENCHMARK
from app.benchmarks.lifecycle import new_job
from app.benchmarks.listing import BenchmarkComparison, compare
from app.benchmarks.page import RESULTS, score_cell
from app.benchmarks.spec import BenchmarkSpec
from app.benchmarks.table import comparison_columns, comparison_rows
from app.cli.base import Command, check_one_format, ensure_database, json_option, print_csv, print_json, settings
from app.cli.jobs import JobCommands, create, prepared, queue_option
from app.cli.spec_options import spec_options
from app.cli.tables import aligned
from app.core.extensions import reading
from app.core.lists import Scored, printed
from app.models import BenchmarkJob
from app.registry import get_model


@click.command(cls=Command)
@spec_options(BenchmarkSpec)
@queue_option
@json_option
def run(spec: BenchmarkSpec, queue: bool, as_json: bool) -> None:
    """Score a model on tasks.

    Exit code 0: all tasks are scored; 1: it stopped, and a line says why; 130: interrupted, and a line says how to
    resume.
    """
    ensure_database()
    with reading() as session:
        wanted = new_job(session, spec, queued=queue, home=settings().home).tasks
        kind = get_model(session, spec.model).kind
    if not queue or tasks.is_installed():  # else the workers may have what is missing here
        tasks.check_here(wanted, kind)
    [number] = create(CREATION, prepared(CREATION, spec), queued=queue)
    _BENCHMARKS.go_on(number, queue, as_json)


@click.command("tasks", cls=Command)
@click.argument("names", metavar="[TASK]…", nargs=-1)
@json_option
def list_tasks(names: Sequence[str], as_json: bool) -> None:
    """Show what ships, and of tasks and presets of lm-evaluation-harness whether their data is on this machine."""
    wanted = tasks.of_the_harness(tasks.read_tasks(",".join(names))) if names else []
    looked = tasks.describe_tasks(wanted, answers=False)["tasks"] if wanted else []
    if as_json:
        shipped = [
            {"name": each.name, "answers": each.answers, "file": str(each.file)} for each in tasks.SHIPPED.values()
        ]
        print_json(
            {"shipped": shipped, "presets": {name: [*each] for name, each in tasks.PRESETS.items()}, "tasks": looked}
        )
        return
    for each in looked:
        click.echo(f"{each['name']:<28} {each['refused'] or 'its data is here'}")
    if names:
        return
    for task in tasks.SHIPPED.values():
        by = "answers, of a model behind an API" if task.answers else "log-likelihoods, of a local model"
        click.echo(f"{task.name:<28} ships with Parlor; compares {by}")
    for name, members in tasks.PRESETS.items():
        click.echo(f"{name:<28} {', '.join(members)} of lm-evaluation-harness")


@click.command("compare", cls=Command)
@click.argument("models", metavar="MODEL…", nargs=-1, required=True)
@click.option("--csv", "as_csv", is_flag=True, help="Print every result as CSV.")
@json_option
def compare_models(models: Sequence[str], as_csv: bool, as_json: bool) -> None:
    """Show models side by side: their tasks, and the geometric mean over those that all of them have."""
    check_one_format(as_json, as_csv)
    ensure_database()
    with reading() as session:
        found = compare(session, [get_model(session, name) for name in models])
    if as_csv:
        print_csv(comparison_columns(), comparison_rows(found))
    elif as_json:
        print_json(_as_json(found))
    elif found is None:
        click.echo("None of them has been scored yet.")
    else:
        click.echo("\n".join(aligned(_score_table_rows(found), range(1, len(found.models) + 1))))
        if len(found.common) < len(found.tasks):
            common = ", ".join(found.common) or "none"
            click.echo(f"The mean is over the tasks that all of them have, scored by shares: {common}.")


class _BenchmarkCommands(JobCommands[BenchmarkJob]):
    """See `flask benchmark`."""

    help = "Score models on reasoning tasks; list, show, cancel and resume benchmarks, and compare models."
    none_yet = "None yet: flask benchmark run tiny --tasks everyday-reasoning"
    resume_help = "Resume a benchmark that failed, was cancelled or interrupted: the tasks that are left."
    cancel_help = "Cancel a benchmark. Tasks that were scored are kept, and it can be resumed."
    show_help = "Show one benchmark: the score of each task."


_BENCHMARKS = _BenchmarkCommands(BENCHMARK)
benchmark = _BENCHMARKS.group()
for _command in (run, list_tasks, compare_models):
    benchmark.add_command(_command)


def _as_json(found: BenchmarkComparison | None) -> dict[str, Any]:
    if found is None:
        return {"limit": None, "shots": None, "common": [], "models": []}
    return {
        "limit": found.limit,
        "shots": found.shots,
        "common": [*found.common],
        "models": [
            {
                "name": each.model.name,
                "results": RESULTS.as_json(list(each.results.values())),
                "geometric_mean": each.mean and each.mean._asdict(),
            }
            for each in found.models
        ],
    }


def _score_table_rows(found: BenchmarkComparison) -> list[Sequence[str]]:
    """The score of each task, and the means, by model."""
    results = [[task, *(printed(each.results.get(task) and score_cell(each.results[task])) for each in found.models)]
               for task in found.tasks]  # fmt: skip
    means = (printed(each.mean and Scored(*each.mean, is_share=True)) for each in found.models)
    return [["", *(each.model.name for each in found.models)], *results, ["geometric mean", *means]]
