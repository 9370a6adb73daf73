"""The report of a recipe run: the tables that it made, its steps, and the file itself."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.analysis.bootstrap import Figure
from app.analysis.wording import figure_in_words, number
from app.core.csv_tables import to_csv
from app.core.errors import Phrase
from app.games import GAMES, metrics_of, partner_weight_of
from app.games.metrics import SHARE, Metric
from app.jobs.spec import command_words
from app.models import RecipeRun, RecipeStep
from app.recipes.export import STEP_COLUMNS, sweep_rows, table_rows
from app.recipes.job import RECIPE
from app.recipes.lifecycle import written_of
from app.recipes.listing import RecipeStepLine, in_words, lines_of, shown_tables, tables_of
from app.recipes.spec import RecipeSpec
from app.recipes.sweep import SEED, read_sweep, swept_inputs
from app.recipes.sweep_results import SweepResults, results_of, table_in_words
from app.reports.common_sections import commands_of_recipe, key_figure, nothing_yet, whole_report
from app.reports.interval_charts import interval_chart
from app.reports.origins import (
    NONE,
    Origins,
    ReportContext,
    as_json,
    limits_of,
    origins_of_steps,
    prompts_and_configs,
    rounds_table,
    seeds_sentence,
)
from app.reports.partners import partners_section
from app.reports.recipe_gains import EVALUATE, recipe_gains
from app.reports.report import FoldedText, KeyFigure, Report, ReportFigure, ReportSection, ReportTable, plain_table

TRAINING = "training"  # the action of steps that make a model
_MOST_DRAWN = 4  # figures drawn from a table; the CSV has all of them
_MOST_KEY = 6


class _Table(NamedTuple):
    """A table of a run, with the key of the step that made it; if no step did, of all steps."""

    key: str
    figures: Mapping[str, Any]
    sweep: SweepResults | None = None  # the sweep whose table it is


def recipe_report(session: Session, number: int, context: ReportContext) -> Report:
    """The report of a run; the control is one of its arms. Raises NotFound, Invalid for another control, and Conflict
    before a step has given figures.
    """
    row = RECIPE.get(session, number)
    steps = RECIPE.steps_of(session, number)
    file, given = written_of(row)
    sweep = read_sweep(file, given)
    tables = [_Table(step.key, step.figures or {}) for step in tables_of(session, row)]
    tables += _sweep_table(session, row) if sweep.variables else [] if tables else _own_table(steps)
    if not tables:
        expected = Phrase("a run with a step that gave figures")
        raise nothing_yet(RECIPE, number, expected, Phrase("wait for its first evaluation"))
    origins = origins_of_steps(session, steps)
    finding, key_figures = _finding_of_table(tables[-1].figures)
    state = RECIPE.state_of(session, row)
    done = sum(step.ended_at is not None for step in steps)
    inputs = {name: value for name, value in given.items() if name not in swept_inputs(sweep)}
    return whole_report(
        session, context, origins,
        name=f"recipe-{number}",
        title=f"Recipe {row.recipe}: {row.name}",
        about=f"Report of recipe run {number}, {state}: {done} of {row.steps} steps over. {file.about or ''}".rstrip(),
        finding=finding,
        key_figures=key_figures,
        results=[
            *(_table_section(session, row, step, place) for place, step in enumerate(reversed(tables))),
            *recipe_gains(session, lines_of(session, row), sweep, origins, context.control),
            _partners_section(session, row, origins),
        ],
        methods=[
            (f"The recipe {row.recipe}, version {file.version}, was run with these inputs:"
            f" {_values_in_words(inputs) or 'none'}. Its steps are run one after another;"
            " each is a job, a dataset or a table."),
            *([f"Swept: {_values_in_words(file.sweep)}. Each combination of these is done by itself."]
            if sweep.variables else []),
            ("Intervals of a step are those of its job: Wilson's of shares, bootstrap of means. A mean over the turns"
            " of a loop, such as seeds, has an interval by Student's t over these turns."),
            seeds_sentence(origins),
        ],
        tables=[_steps_table(session, row), *rounds_table(origins)],
        versions=_file_versions(row),
        texts=[
            FoldedText(f"{row.recipe}.yaml", row.text), *prompts_and_configs(session, origins),
            FoldedText("Inputs as JSON", as_json(row.spec["inputs"])),
        ],
        limits=_recipe_limits(session, row, tables, done, origins),
        commands=commands_of_recipe(RECIPE, number, row.name, _words_again(row), context.control),
        before_commands=["The archive of the run holds the recipe with the files that it names."],
    )  # fmt: skip


def _values_in_words(values: Mapping[str, Any]) -> str:
    return "; ".join(f"{name} = {in_words(value)}" for name, value in values.items())


def _words_again(row: RecipeRun) -> str:
    """The command words to repeat the run from its archive's file; under another name, as each run has its own."""
    spec = RecipeSpec.of_json(row.spec)
    return command_words(spec.model_copy(update={"recipe": f"{row.name}/{row.recipe}.yaml", "name": ""}))


def _sweep_table(session: Session, row: RecipeRun) -> list[_Table]:
    """The figures of a sweep, as means over its seeds if it has some; empty before there are any."""
    found = results_of(row, lines_of(session, row))
    return [_Table("the sweep", found.table, found)] if found.table["rows"] else []


def _own_table(steps: Sequence[RecipeStep]) -> list[_Table]:
    """The figures of all steps as one table, for a run in which no step has made a table."""
    measured = [step for step in steps if step.figures and "rows" not in step.figures]
    if not measured:
        return []
    columns = list(dict.fromkeys(name for step in measured for name in step.figures or {}))
    rows = [{"step": step.key, "values": {}, "model": None, "figures": step.figures or {}} for step in measured]
    figures = {"over": None, "variables": [], "columns": columns, "rows": rows}
    return [_Table("figures of all steps", figures)]


# ---- Tables -------------------------------------------------------------------------


def _table_section(session: Session, row: RecipeRun, step: _Table, place: int) -> ReportSection:
    table = step.figures
    name = f"table-{place + 1}"
    drawn = [column for column in table["columns"] if any(_figure(each, column) for each in table["rows"])]
    charts = [
        ReportFigure(
            interval_chart(
                f"{name}-{column}".replace("_", "-"), _column_head(column), _column_head(column), _column_unit(column),
                [
                    (_row_label(each), found)
                    for each in table["rows"]
                    if (found := _figure(each, column)) is not None
                ],
                "Step",
            ),
            f"{_column_head(column)} of {step.key}, with 95 % intervals{_over(table)}.",
            has_table=True,
        )
        for column in drawn[:_MOST_DRAWN]
    ]  # fmt: skip
    title = "Result" if place == 0 else f"Table of {step.key}"
    return ReportSection(
        "result" if place == 0 else name, title, figures=charts, tables=[_report_table(session, row, step, name)]
    )


def _report_table(session: Session, row: RecipeRun, step: _Table, name: str) -> ReportTable:
    """A table in words, whose CSV has one line per figure."""
    caption = f"{step.key}: all figures{_over(step.figures)}."
    if step.sweep is not None:
        words = table_in_words(step.sweep)
        return ReportTable(name, caption, words.head, words.lines, b"".join(to_csv(*sweep_rows(step.sweep))))
    found = next((each for each in shown_tables(session, row) if each.name == step.key), None)
    if found is None:
        columns = step.figures["columns"]
        rows = [
            (each["step"], *(figure_in_words(_figure(each, column), _column_unit(column)) for column in columns))
            for each in step.figures["rows"]
        ]
        return plain_table(name, caption, ("Step", *map(_column_head, columns)), rows)
    return ReportTable(name, caption, found.head, found.lines, b"".join(to_csv(*table_rows(session, row, step.key))))


def _figure(row: Mapping[str, Any], column: str) -> Figure | None:
    """A figure of a row; None where it has none."""
    found = row["figures"].get(column)
    if found is None or found.get("value") is None:
        return None
    return Figure(found["value"], found.get("low"), found.get("high"), found.get("n") or 0)


def _row_label(row: Mapping[str, Any]) -> str:
    values = ", ".join(f"{name} {in_words(value)}" for name, value in row["values"].items())
    return " ".join(filter(None, [row["step"], values, f"({row['model']})" if row["model"] else ""]))


def _over(table: Mapping[str, Any]) -> str:
    return f", means over {table['over']}" if table.get("over") else ""


def _metric(column: str) -> Metric | None:
    """The metric of a column, if a game has one of that name."""
    return next((found for game in GAMES if (found := metrics_of(game).everything.get(column))), None)


def _column_head(column: str) -> str:
    metric = _metric(column)
    return metric.heading if metric else column.replace("_", " ").capitalize()


def _column_unit(column: str) -> str:
    """The unit of a column; for scores of benchmarks and ratings, it follows from their names."""
    metric = _metric(column)
    return metric.unit if metric else SHARE if column.endswith(("_rate", "_share")) else ""


def _partners_section(session: Session, row: RecipeRun, origins: Origins) -> ReportSection:
    """The models of the evaluations side by side, if these all have the same game and setting."""
    evaluated = {
        line.step.number for line in lines_of(session, row) if line.do == EVALUATE and line.step and line.step.number
    }
    rounds = [each for each in origins.rounds if each.id in evaluated]
    kinds = {(each.game, partner_weight_of(each.game, each.config)) for each in rounds}
    names = {each.id: each.name for each in origins.models}
    models = dict.fromkeys(
        names[number] for each in rounds for number in (each.model_0_id, each.model_1_id) if number in names
    )
    if len(kinds) != 1:
        return ReportSection("partners", "With other partners")
    [(game, weight)] = kinds
    return partners_section(session, [*models], game, weight, [each.id for each in rounds])


# ---- Words ---------------------------------------------------------------------------


def _finding_of_table(table: Mapping[str, Any]) -> tuple[str, Sequence[KeyFigure]]:
    """The headline of a table: its first figure, in its first and last rows."""
    column = next((each for each in table["columns"] if any(_figure(row, each) for row in table["rows"])), None)
    if column is None:
        return "The steps have given no figure.", ()
    found = [(_row_label(row), figure) for row in table["rows"] if (figure := _figure(row, column)) is not None]
    unit = _column_unit(column)
    words = [f"{number(figure.value, unit)} for {label}" for label, figure in (found[0], found[-1])]
    key = [key_figure(label, figure, unit) for label, figure in found[:_MOST_KEY]]
    return f"{_column_head(column)} is {' and '.join(dict.fromkeys(words))}.", key


def _steps_table(session: Session, row: RecipeRun) -> ReportTable:
    lines = lines_of(session, row)
    rows = [
        (
            line.key, line.do, NONE if line.job is None else str(line.job), line.status or "not begun",
            "; ".join(map(str, line.made)) or NONE,
        )
        for line in lines
    ]  # fmt: skip
    head = ("Step", "What is done", "Job", "Status", "Made")
    return ReportTable("steps", "The steps of the run.", head, rows, b"".join(to_csv(STEP_COLUMNS, lines)))


def _file_versions(row: RecipeRun) -> list[tuple[str, str, str]]:
    texts = {f"{row.recipe}.yaml": row.text, **row.files}
    return [
        (f"File {name}", f"{len(text)} characters", sha256(text.encode()).hexdigest()) for name, text in texts.items()
    ]


def _reseeded(lines: Sequence[RecipeStepLine]) -> bool:
    """Whether models were trained with several seeds."""
    return len({line.values[SEED] for line in lines if line.do == TRAINING and SEED in line.values}) > 1


def _recipe_limits(
    session: Session, row: RecipeRun, tables: Sequence[_Table], done: int, origins: Origins
) -> list[str]:
    points = limits_of(origins, trained_once=not _reseeded(lines_of(session, row)))
    if done < row.steps:
        points.insert(0, f"{row.steps - done} of {row.steps} steps are not over; what they give is in no figure.")
    if any(table.figures.get("over") for table in tables):
        points.append("Means over few turns of a loop have wide intervals, which take the turns to be independent.")
    points.append(
        "The recipe names no comparison beforehand: a difference between two rows was chosen after it was seen, unless"
        " a plan says otherwise."
    )
    return points
