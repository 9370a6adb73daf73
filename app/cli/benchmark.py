"""`flask benchmark`: models scored on reasoning tasks, here or by the workers, and side by side."""

from collections.abc import Sequence
from typing import Any

import click
from sqlalchemy.orm import Session

from app.benchmarks import listing, tasks
from app.benchmarks.job import BENCHMARK
from app.benchmarks.lifecycle import create, new_job
from app.benchmarks.listing import BenchmarkComparison, TokenUsage, compare, mean_of, results_of
from app.benchmarks.scores import MeasuredScore, is_share
from app.benchmarks.spec import BenchmarkSpec
from app.benchmarks.table import comparison_columns, comparison_rows
from app.cli.base import Command, check_one_format, ensure_database, print_csv, print_json, settings
from app.cli.jobs import Described, JobCommands, json_option, queue_option
from app.cli.spec_options import spec_options
from app.core.extensions import reading, writing
from app.models import BenchmarkJob, BenchmarkResult
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
    with writing() as session:
        number = create(session, spec, queued=queue, home=settings().home).id
    _BENCHMARKS.go_on(number, queue, as_json)


@click.command("tasks", cls=Command)
@click.argument("names", metavar="[TASK]…", nargs=-1)
@json_option
def list_tasks(names: Sequence[str], as_json: bool) -> None:
    """Show what ships, and of tasks and presets of lm-evaluation-harness whether their data is on this machine."""
    wanted = tasks.of_the_harness(tasks.read_tasks(",".join(names))) if names else []
    looked = tasks.look(wanted, answers=False)["tasks"] if wanted else []
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
        _print(found)


class _BenchmarkCommands(JobCommands[BenchmarkJob]):
    """See `flask benchmark`."""

    help = "Score models on reasoning tasks; list, show, cancel and resume benchmarks, and compare models."
    none_yet = "None yet: flask benchmark run tiny --tasks everyday-reasoning"
    resume_help = "Go on with a benchmark that failed, was cancelled or interrupted: the tasks that are left."
    cancel_help = "Stop a benchmark. The tasks that were scored stay, and it can be resumed."
    show_help = "Show one benchmark: the score of each task."

    def described(self, session: Session, rows: Sequence[BenchmarkJob]) -> list[Described]:
        """Benchmarks as JSON."""
        results, used = results_of(session, rows), listing.usage_of(session, rows)
        facts = super().described(session, rows)
        items = listing.benchmark_items(session, rows)
        return [
            {
                **each,
                "name": item.model.name,
                "device": item.row.device,
                "step": item.row.step,
                **used.get(item.row.id, TokenUsage(0, 0, None))._asdict(),
                "results": [_result_json(result) for result in results[item.row.id]],
                "geometric_mean": _score_json(mean_of(results[item.row.id])),
            }
            for each, item in zip(facts, items, strict=True)
        ]

    def shown(self, described: Described) -> Described:
        """All but the results, which the log has in lines."""
        return {name: value for name, value in described.items() if name not in ("results", "geometric_mean")}

    def log(self, row: BenchmarkJob) -> str:
        """The score of each task, and the mean of those that are scored."""
        with reading() as session:
            results = results_of(session, [row])[row.id]
        lines = [
            f"{each.task:<28} {each.metric:<12} {_task_words(each)}  n {each.n:<6} {each.seconds:.1f} s"
            for each in results
        ]
        mean = mean_of(results)
        return "\n".join([*lines, *([f"{'geometric mean':<41} {_words(mean)}"] if mean else [])])

    def run_here(self, number: int, as_json: bool) -> None:
        """Score here, and show the results."""
        super().run_here(number, as_json)
        if not as_json:
            with reading() as session:
                click.echo(self.log(BENCHMARK.get(session, number)))


_BENCHMARKS = _BenchmarkCommands(BENCHMARK)
benchmark = _BENCHMARKS.group()
for _command in (run, list_tasks, compare_models):
    benchmark.add_command(_command)


# ---- Words ------------------------------------------------------------------------


def _words(score: MeasuredScore) -> str:
    error = "" if score.stderr is None else f" ± {100 * score.stderr:.2f}"
    return f"{100 * score.value:.2f}{error}"


def _task_words(result: BenchmarkResult) -> str:
    """A share in percent, else the plain number."""
    if is_share(result.metric, result.value):
        return _words(listing.score_of(result))
    return f"{result.value:.4g}" + ("" if result.stderr is None else f" ± {result.stderr:.2g}")


def _result_json(result: BenchmarkResult) -> dict[str, Any]:
    names = ("task", "metric", "value", "stderr", "n", "seconds", "source", "version", "scores")
    return {name: getattr(result, name) for name in names}


def _score_json(score: MeasuredScore | None) -> dict[str, Any] | None:
    return None if score is None else score._asdict()


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
                "results": [_result_json(result) for result in each.results.values()],
                "geometric_mean": _score_json(each.mean),
            }
            for each in found.models
        ],
    }


def _print(found: BenchmarkComparison) -> None:
    width = max(len(name) for name in (*found.tasks, "geometric mean")) + 2
    columns = [max(len(each.model.name), 14) + 2 for each in found.models]
    heads = "".join(f"{each.model.name:>{size}}" for each, size in zip(found.models, columns, strict=True))
    click.echo(f"{'':<{width}}{heads}")
    for task in found.tasks:
        scores = (each.results.get(task) for each in found.models)
        cells = ("" if each is None else _task_words(each) for each in scores)
        click.echo(f"{task:<{width}}" + "".join(f"{cell:>{size}}" for cell, size in zip(cells, columns, strict=True)))
    means = ("" if each.mean is None else _words(each.mean) for each in found.models)
    click.echo(
        f"{'geometric mean':<{width}}" + "".join(f"{cell:>{size}}" for cell, size in zip(means, columns, strict=True))
    )
    if len(found.common) < len(found.tasks):
        click.echo(
            f"The mean is over the tasks that all of them have, scored by shares: {', '.join(found.common) or 'none'}."
        )
