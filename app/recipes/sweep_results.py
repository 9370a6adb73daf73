"""The results of a sweep so far: the state of each cell, the figures over seeds, and their curves."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.analysis.chart import Chart
from app.analysis.language import ENGLISH, Language
from app.analysis.sweep_chart import SweptPoint, swept_chart
from app.core.errors import Invalid, NotFound, Phrase, Verbatim, either
from app.games.metrics import SCORE_MEAN
from app.jobs import states
from app.models import RecipeRun
from app.recipes.lifecycle import written_of
from app.recipes.listing import RecipeStepLine, in_words, value_in_words
from app.recipes.outline import turn_of
from app.recipes.sweep import SEED, Sweep, Values, read_sweep
from app.recipes.tables import JSON, ComparedStep, table_of

NOT_BEGUN = "not begun"


class SweepCell(NamedTuple):
    """A cell: the number of finished steps among those that it needs, and the label of its state."""

    seed: Any  # None if no seeds are swept
    state: str
    done: int
    of: int


class SweepLine(NamedTuple):
    """The cells of one combination of values, one for each seed."""

    values: Values
    cells: Sequence[SweepCell]

    def to_json(self) -> JSON:
        """The line as JSON."""
        return {"values": dict(self.values), "cells": [each._asdict() for each in self.cells]}


class SweepResults(NamedTuple):
    """A sweep's results so far. `table`: a row per step, combination and iteration, with figures over seeds."""

    sweep: Sweep
    grid: Sequence[SweepLine]
    table: JSON

    @property
    def steps(self) -> list[str]:
        """The names of the steps that have figures."""
        return list(dict.fromkeys(row["step"] for row in self.table["rows"]))

    @property
    def across(self) -> list[str]:
        """The variables across which figures can be plotted: the swept fields, then those of the steps' own loops."""
        axes = [axis.variable for axis in self.sweep.axes]
        return [*axes, *(name for name in self.table["variables"] if name not in axes)]

    def only(self, figure: str) -> "SweepResults":
        """The same results with only one figure. Raises Invalid if there is no such figure."""
        return self._replace(
            table={**self.table, "columns": [_given_or_first("figure", figure, self.table["columns"])]}
        )

    def curve(self, figure: str = "", across: str = "", step: str = "", language: Language = ENGLISH) -> Chart | None:
        """The curve of a figure across a variable, each by default the first. None before there is any.

        Across a swept field, the last iterations of loops are used. Raises Invalid for an unknown name.
        """
        if not self.table["rows"] or not self.across:
            return None
        step = _given_or_first("step", step, self.steps)
        rows = [row for row in self.table["rows"] if row["step"] == step]
        named = [each for each in self.table["columns"] if any(each in row["figures"] for row in rows)]
        # PostgreSQL does not keep the order of a step's figures, so the score is put first.
        figure = _given_or_first("figure", figure, sorted(named, key=lambda each: each != SCORE_MEAN.name))
        across = _given_or_first(
            "across", across, [each for each in self.across if any(each in row["values"] for row in rows)]
        )
        lines: dict[str, list[SweptPoint]] = {}
        for row in _last_turns(rows, [*(axis.variable for axis in self.sweep.axes), across]):
            values = dict(row["values"])
            at = values.pop(across, None)
            found = row["figures"].get(figure)
            if at is None or found is None or found["value"] is None:
                continue
            swept = {name: value for name, value in values.items() if name in self.sweep.values}
            point = SweptPoint(at, found["value"], found.get("low"), found.get("high"), found.get("n"))
            lines.setdefault(turn_of(swept), []).append(point)
        if not lines:
            return None
        return swept_chart(
            figure.replace("_", " "), across, lines, over_seeds=bool(self.sweep.seeds), language=language
        )


def _given_or_first(field: str, given: str, known: Sequence[str]) -> str:
    if given and given not in known:
        raise Invalid(field, expected=either(known), got=given)
    return given or known[0]


def _last_turns(rows: Sequence[JSON], varied: Sequence[str]) -> list[JSON]:
    """The last row of each group of rows that agree in all varied variables."""
    found: dict[tuple[Any, ...], JSON] = {}
    for row in rows:
        found[tuple((name, row["values"].get(name)) for name in varied)] = row
    return [*found.values()]


def sweep_of(row: RecipeRun) -> Sweep:
    """The sweep of a run; one without axes and seeds where it has none."""
    return read_sweep(*written_of(row))


def results_of(row: RecipeRun, lines: Sequence[RecipeStepLine]) -> SweepResults:
    """The results of a run's sweep so far, from its steps. Raises NotFound for a run without a sweep."""
    sweep = sweep_of(row)
    if not sweep.variables:
        got = Verbatim(f"{row.name}, whose recipe has no sweep")
        raise NotFound("sweep", expected=Phrase("a run with a sweep"), got=got)
    compared = [
        ComparedStep(each.step.name, each.step.values, each.step.spec.get("model"), each.result)
        for each in lines
        if each.step is not None and each.result and "rows" not in each.result
    ]
    return SweepResults(sweep, _sweep_lines(sweep, lines), table_of(compared, SEED if sweep.seeds else None, ()))


def _sweep_lines(sweep: Sweep, lines: Sequence[RecipeStepLine]) -> list[SweepLine]:
    names = sweep.variables
    swept = [({name: each.values[name] for name in names if name in each.values}, each) for each in lines]
    found = []
    for values in sweep.combinations:
        cells = []
        for seed in sweep.seeds or (None,):
            cell = values if seed is None else {**values, SEED: seed}
            cells.append(_sweep_cell(seed, [(own, line) for own, line in swept if own.items() <= cell.items()]))
        found.append(SweepLine(values, cells))
    return found


def _sweep_cell(seed: Any, steps: Sequence[tuple[Mapping[str, Any], RecipeStepLine]]) -> SweepCell:
    """The state of a cell; it is running as soon as a step affected by some value of the sweep has begun."""
    done = sum(1 for _, line in steps if line.step is not None and line.step.ended_at is not None)
    begun = any(values and line.status is not None for values, line in steps)
    status = [line.status for _, line in steps]
    stopped = next((each for each in status if each in (states.FAILED, states.CANCELLED)), None)
    state = states.DONE if done == len(steps) else stopped or (states.RUNNING if begun else NOT_BEGUN)
    return SweepCell(seed, state, done, len(steps))


class SweepWords(NamedTuple):
    """A table of a sweep in words: its column headings and its lines."""

    head: Sequence[str]
    lines: Sequence[Sequence[str]]


def table_in_words(results: SweepResults) -> SweepWords:
    """The figures, with a line for each step, combination and loop iteration."""
    table = results.table
    names, columns = table["variables"], table["columns"]
    lines = [
        [
            row["step"],
            *(in_words(row["values"].get(name, "")) for name in names),
            *(value_in_words(row["figures"].get(column, {})) for column in columns),
            _seeds(row) if results.sweep.seeds else "",
        ]
        for row in table["rows"]
    ]
    return SweepWords(["step", *names, *(column.replace("_", " ") for column in columns), "seeds"], lines)


def _seeds(row: JSON) -> str:
    """The number of seeds behind a row's figures: of the figure with fewest. Empty for a step without seeds."""
    return "" if row.get("alone") else str(min((each.get("n") or 0 for each in row["figures"].values()), default=""))


def grid_in_words(results: SweepResults) -> SweepWords:
    """The cells, a line for each combination."""
    seeds = [f"seed {in_words(seed)}" for seed in results.sweep.seeds] or ["state"]
    axes = [axis.variable for axis in results.sweep.axes]
    lines = [
        [
            *(in_words(line.values[name]) for name in axes),
            *(f"{cell.state} {cell.done}/{cell.of}" for cell in line.cells),
        ]
        for line in results.grid
    ]
    return SweepWords([*axes, *seeds], lines)
