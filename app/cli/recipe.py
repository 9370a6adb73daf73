"""`flask recipe`: experiments of many jobs, each described by a file of steps, run here or by the workers."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from app.analysis.themes import LIGHT
from app.cli.archives import write_archive
from app.cli.base import (
    WHOLE,
    Command,
    Interrupted,
    RepeatableOption,
    counted,
    ensure_database,
    is_pair,
    json_option,
    print_csv,
    print_json,
    read_pairs,
)
from app.cli.drawing import write_as_named
from app.cli.jobs import Described, JobCommands, queue_option
from app.cli.spec_options import spec_options
from app.cli.steps import run_steps
from app.cli.tables import aligned
from app.core.errors import Invalid, Verbatim
from app.core.extensions import reading, writing
from app.models import RecipeRun
from app.recipes import lifecycle, steps
from app.recipes.estimate import RecipeEstimate, estimate
from app.recipes.export import archive_of, sweep_rows, table_rows
from app.recipes.job import RECIPE
from app.recipes.listing import lines_of, shown_tables
from app.recipes.loaded_recipe import LoadedRecipe
from app.recipes.plan import PlannedStep
from app.recipes.reader import load_recipe
from app.recipes.spec import RecipeSpec
from app.recipes.sweep import SEEDS
from app.recipes.sweep_results import grid_in_words, results_of, table_in_words


@click.command(cls=Command)
@click.argument("path", metavar="FILE", type=Path)
@click.option(
    "--set", "given", cls=RepeatableOption, belongs=is_pair, metavar="K=V", help="Inputs that differ from the file’s."
)
@click.option(
    "--sweep", cls=RepeatableOption, belongs=is_pair, metavar="FIELD=VALUES", help="Fields that take several values."
)
@click.option("--seeds", metavar="SEEDS", help="The seeds of a sweep, such as 1..5.")
@json_option
def validate(path: Path, given: tuple[str, ...], sweep: tuple[str, ...], seeds: str | None, as_json: bool) -> None:
    """Check the file of a recipe and the files that it names, and list its steps.

    Exit code 0: it can be run, if its models and datasets are there; 2: one line says what is wrong, and where.
    """
    swept = {**read_pairs(sweep, "--sweep"), **({SEEDS: seeds} if seeds else {})}
    loaded = load_recipe(path, read_pairs(given, "--set"), swept)
    if as_json:
        print_json(_recipe_json(loaded))
        return
    planned = loaded.plan.steps
    first = {step.index: step for step in reversed(planned)}
    click.echo("\n".join(aligned([_step_line(first[index], planned) for index in sorted(first)])))
    cells = f", {counted(loaded.plan.sweep.cells, 'cell')} of a sweep" if loaded.plan.sweep.variables else ""
    click.echo(f"{loaded.plan.file.recipe}: {counted(len(planned), 'step')}{cells}.")


@click.command(cls=Command)
@spec_options(RecipeSpec)
@click.option("--estimate", "only_estimate", is_flag=True, help="Say what it will take, and run nothing.")
@queue_option
@json_option
def run(spec: RecipeSpec, only_estimate: bool, queue: bool, as_json: bool) -> None:
    """Run the steps of a recipe, one after another: each is a job, a dataset or a table.

    Exit code 0: all steps are done; 1: it stopped, and a line says why; 130: interrupted, and a line says how to
    resume.
    """
    if spec.recipe is None:
        raise Invalid("recipe", expected="the file of a recipe", got=Verbatim("none"))
    loaded = load_recipe(Path(spec.recipe), spec.inputs, spec.swept)
    ensure_database()
    with reading() as session:
        new = lifecycle.prepare(session, loaded, spec)
        swept = bool(new.plan.sweep.variables) and not as_json
        expected = estimate(session, new.plan, loaded.files) if only_estimate or swept else None
    if expected is not None and only_estimate:
        _print_estimate(expected, as_json)
        return
    if expected is not None:
        click.echo(f"{counted(new.plan.sweep.cells, 'cell')}: {_in_words(expected)}", err=True)
    with writing() as session:
        number = lifecycle.create(session, new, queued=queue).id
    _RECIPES.go_on(number, queue, as_json)


@click.command(cls=Command)
@click.argument("number", metavar="RECIPE", type=WHOLE)
@click.option("--table", metavar="STEP", help="Only the table of that step, as CSV.")
@click.option("--out", metavar="FILE", help="The archive to write; by default NAME.zip.")
def export(number: int, table: str | None, out: str | None) -> None:
    """Write what a run consists of into a zip archive, or one of its tables as CSV to standard output.

    The archive has the recipe with the files that it names, in a folder from which it can be run again, the inputs of
    the run, its steps with what they gave (steps.csv), and a CSV file for each of its tables.
    """
    ensure_database()
    with reading() as session:
        row = RECIPE.get(session, number)
        if table is not None:
            print_csv(*table_rows(session, row, table))
            return
        name, content = row.name, archive_of(session, row)
    path = out or f"{name}.zip"
    write_archive(path, content)
    click.echo(f"Recipe run {number} in {path}.")


class _RecipeCommands(JobCommands[RecipeRun]):
    """See `flask recipe`."""

    help = "Run experiments of many jobs, each described by a file of steps."
    none_yet = "No runs yet: flask recipe run data/recipes/lm-selfplay.yaml --set base=tiny-base"
    resume_help = "Resume a run that failed, was cancelled or interrupted, from its last step."
    cancel_help = "Cancel a run and its current job. Finished results are kept."
    show_help = "Show one run: its steps, their jobs, and what they gave."
    list_help = "Show the runs, the latest first."

    show_options = (
        click.option("--sweep", is_flag=True, help="The cells of its sweep, and their figures over seeds."),
        click.option("--csv", "as_csv", is_flag=True, help="Of a sweep: its figures as CSV."),
        click.option(
            "--figure", metavar="FIGURE", default="", help="Of a sweep: only this figure, as the CSV calls it."
        ),
        click.option("--across", metavar="NAME", default="", help="Of a chart: the swept field or loop that it shows."),
        click.option("--chart", metavar="FILE", type=Path, help="Of a sweep: its curve as SVG, PDF or PNG."),
    )

    def print_one(  # type: ignore[override]
        self, number: int, as_json: bool, sweep: bool, as_csv: bool, figure: str, across: str, chart: Path | None
    ) -> None:
        """Print a run, or the results of its sweep."""
        if not (sweep or as_csv or figure or across or chart is not None):
            super().print_one(number, as_json)
            return
        with reading() as session:
            row = RECIPE.get(session, number)
            results = results_of(row, lines_of(session, row))
        if figure:
            results = results.only(figure)
        if chart is not None:
            curve = results.curve(across=across)
            if curve is None:
                raise Invalid("--chart", expected="a sweep that has figures", got=Verbatim("none yet"))
            write_as_named(curve, chart, LIGHT)
        elif as_csv:
            print_csv(*sweep_rows(results))
        elif as_json:
            print_json({"cells": [each.to_json() for each in results.grid], **results.table})
        else:
            shown = [grid_in_words(results)]
            if results.table["rows"]:
                shown.append(table_in_words(results))
            click.echo("\n\n".join("\n".join(aligned([each.head, *each.lines])) for each in shown))

    def stopped(self, described: Described) -> str:
        """The number of its steps that are over."""
        return f", {described['done']} of {described['of']} steps over"

    def print_tables(self, number: int) -> None:
        """Print its steps, and the tables that they made."""
        super().print_tables(number)
        with reading() as session:
            for table in shown_tables(session, RECIPE.get(session, number)):
                click.echo("\n".join(["", table.name, *aligned([table.head, *table.lines])]))

    def run_here(self, number: int, as_json: bool) -> None:
        """Run or continue a run in this process."""
        if run_steps(steps.take_steps, number):
            raise Interrupted(f"Interrupted {self.kind.subject(number)}; {self.goes_on(number)}.")
        self.report(number, as_json)


_RECIPES = _RecipeCommands(RECIPE)
recipe = _RECIPES.group()
for _command in (validate, run, export):
    recipe.add_command(_command)


def _step_line(step: PlannedStep, planned: Sequence[PlannedStep]) -> list[str]:
    """A step as written in the recipe: its name, its action, and how often it runs."""
    turns = [each for each in planned if each.index == step.index]
    loops = ", ".join(step.step.clauses)
    when = f", when {step.step.when}" if step.step.when else ""
    return [step.step.name, step.step.do, f"{counted(len(turns), 'time')}{f': {loops}' if loops else ''}{when}"]


def _print_estimate(found: RecipeEstimate, as_json: bool) -> None:
    if as_json:
        print_json(
            {**asdict(found), "steps": [{**each._asdict(), "amount": asdict(each.amount)} for each in found.steps]}
        )
        return
    head = ["step", "times", "matches", "calls", "tokens in", "tokens out", "USD", "seconds"]
    lines = [
        [
            each.name,
            str(each.times),
            *map(str, (of.matches, of.calls, of.prompt_tokens, of.completion_tokens)),
            "unknown" if of.cost is None else f"{of.cost:.2f}",
            "unknown" if of.seconds is None else f"{of.seconds:.0f}",
        ]
        for each in found.steps
        for of in [each.amount]
    ]
    click.echo("\n".join(aligned([head, *lines], range(1, len(head)))))
    click.echo(_in_words(found))


def _in_words(found: RecipeEstimate) -> str:
    cost = "at a cost that nobody knows" if found.cost is None else f"for about {found.cost:.2f} USD"
    more = f", without {', '.join(found.unknown)}" if found.unknown else ""
    return f"{counted(found.jobs, 'job')}, {found.calls} calls {cost}, about {found.seconds:.0f} s{more}."


def _recipe_json(loaded: LoadedRecipe) -> dict[str, Any]:
    return {
        "recipe": loaded.plan.file.recipe,
        "inputs": dict(loaded.plan.inputs),
        "sweep": {axis.field: [*axis.values] for axis in loaded.plan.sweep.axes},
        "seeds": [*loaded.plan.sweep.seeds],
        "cells": loaded.plan.sweep.cells,
        "files": sorted(loaded.files),
        "steps": [
            {"key": step.key, "name": step.step.name, "do": step.step.do, "values": dict(step.values)}
            for step in loaded.plan.steps
        ],
    }
