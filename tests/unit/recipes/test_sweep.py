"""What a sweep comes to: cells, the steps that each has, their seeds, and what is refused at its key."""

from collections.abc import Mapping
from typing import Any

import pytest

from app.core.errors import AppError
from app.recipes.loaded_recipe import LoadedRecipe
from app.recipes.reader import parse_recipe

LOOP = """\
recipe: swept
version: 1
inputs: {base: tiny, objective: 0.0, rounds: 2}
sweep:
  seeds: 1..2
  inputs.objective: [-1, 0.5]
  rows.filter: [all, nonzero]
steps:
  - name: teach
    do: round
    with: {game: negotiation, models: [scripted], matches: 4, seed: 5}
  - name: play
    do: round
    for: turn in 1..rounds
    with: {game: negotiation, models: ["${base}"], matches: 4, config: {objective: "${objective}"}}
  - name: rows
    do: keep
    for: turn in 1..rounds
    with: {rounds: ["${teach.round}", "${all.play.round}"]}
  - name: measure
    do: evaluate
    with: {game: negotiation, model: "${base}", matches: 4}
  - name: table
    do: compare
    with: {of: ["${measure}"]}
"""


def load(text: str = LOOP, given: Mapping[str, Any] | None = None, **swept: Any) -> LoadedRecipe:
    named = {name.replace("__", "."): value for name, value in swept.items()}
    return parse_recipe(text, "swept.yaml", given, swept=named)


def refused(text: str = LOOP, given: Mapping[str, Any] | None = None, **swept: Any) -> str:
    with pytest.raises(AppError) as error:
        load(text, given, **swept)
    return error.value.message


def test_each_step_is_done_once_for_each_value_that_reaches_it() -> None:
    found = load().plan
    assert found.sweep.cells == 8
    keys = {name: [each.key for each in found.steps if each.step.name == name] for name in ("teach", "play", "rows")}
    assert keys["teach"] == ["teach"]  # its seed is given, and nothing else of it is swept
    assert keys["play"] == [
        f"play objective={value}, seed={seed}, turn={turn}"
        for value in (-1.0, 0.5)
        for seed in (1, 2)
        for turn in (1, 2)
    ]
    assert len(keys["rows"]) == 16
    assert [each.key for each in found.steps if each.step.name == "measure"] == ["measure seed=1", "measure seed=2"]
    assert [each.key for each in found.steps if each.step.name == "table"] == ["table seed=1", "table seed=2"]


def test_a_cell_takes_what_its_own_steps_make() -> None:
    found = load().plan.by_key
    rows = found["rows objective=0.5, filter=nonzero, seed=2, turn=2"]
    assert [each for made in rows.takes for each in made.keys] == [
        "teach", "play objective=0.5, seed=2, turn=1", "play objective=0.5, seed=2, turn=2"
    ]  # fmt: skip
    assert rows.fields["filter"] == "nonzero"
    assert found["play objective=0.5, seed=2, turn=1"].fields["config"] == {"objective": 0.5}


def test_cells_of_one_seed_differ_in_nothing_but_what_is_swept() -> None:
    found = load().plan.by_key
    one, other = (found[f"play objective={value}, seed=1, turn=1"].fields for value in (-1.0, 0.5))
    assert {**one, "config": None, "name": None} == {**other, "config": None, "name": None}
    assert one["seed"] != found["play objective=-1.0, seed=2, turn=1"].fields["seed"]
    assert one["seed"] != found["play objective=-1.0, seed=1, turn=2"].fields["seed"]


def test_a_sweep_of_the_number_of_turns_has_as_many_in_each_cell() -> None:
    keys = [each.key for each in load(inputs__rounds="1..3", inputs__objective=[0], seeds="4").plan.steps]
    assert sorted(key for key in keys if key.startswith("play")) == [
        f"play objective=0.0, rounds={rounds}, seed=4, turn={turn}"
        for rounds in (1, 2, 3)
        for turn in range(1, rounds + 1)
    ]


def test_what_learns_in_turns_is_one_body_in_each_cell() -> None:
    text = LOOP.split("steps:")[0].replace("rows.filter: [all, nonzero]", "train.config.learning_rate: [1e-4, 0.001]")
    text += """\
steps:
  - name: play
    do: round
    for: turn in 1..rounds
    with: {game: negotiation, models: ["${previous.train.model or base}"], matches: 4}
  - name: rows
    do: keep
    for: turn in 1..rounds
    with: {rounds: ["${play.round}"], filter: all}
  - name: train
    do: training
    for: turn in 1..rounds
    with: {method: sft, dataset: "${rows.dataset}", base: "${previous.train.model or base}"}
"""
    found = load(text.replace("  inputs.objective: [-1, 0.5]\n", "")).plan
    cell = [each for each in found.steps if each.values["learning_rate"] == 1e-4 and each.values["seed"] == 2]
    assert [each.step.name for each in cell] == ["play", "rows", "train"] * 2
    assert [each.place for each in cell] == [*range(cell[0].place, cell[0].place + 6)]
    assert [*cell[3].takes[0].keys] == [cell[2].key]
    assert cell[2].fields["config"]["learning_rate"] == 1e-4
    assert cell[2].fields["name"] == "swept-train-0.0001-2-1"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("-1..1 by 0.5", [-1.0, -0.5, 0.0, 0.5, 1.0]),
        ("0..0.3 by 0.1", [0.0, 0.1, 0.2, 0.3]),
        ("-1, 1e-1, 0.25", [-1.0, 0.1, 0.25]),
        ([-1, "5e-1"], [-1.0, 0.5]),
        (0.75, [0.75]),
    ],
)
def test_values_are_a_list_a_range_or_text_with_commas(text: Any, values: list[float]) -> None:
    assert [*load(inputs__objective=text).plan.sweep.axes[0].values] == values


def test_seeds_may_be_written_as_on_a_command_line() -> None:
    assert load(seeds="3-5").plan.sweep.seeds == load(seeds="3..5").plan.sweep.seeds == (3, 4, 5)
    assert load(seeds="7, 9").plan.sweep.seeds == (7, 9)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "rows.filter:",
            "rows.filtered:",
            "7: sweep.rows.filtered (objective=-1.0, filtered=all, seed=1, turn=1): expected one of the fields",
        ),
        (
            "[all, nonzero]",
            "[all, best]",
            "7: sweep.rows.filter (objective=-1.0, filter=best, seed=1, turn=1): expected above_avg or",
        ),
        (
            "[all, nonzero]",
            "[all, all]",
            "7: sweep.rows.filter: expected each value once, got all twice",
        ),
        (
            "[all, nonzero]",
            "[]",
            "7: sweep.rows.filter: expected 1 to 1000 values, got none",
        ),
        (
            "rows.filter:",
            "rosw.filter:",
            "7: sweep.rosw.filter: expected seeds, an input such as inputs.NAME or a field",
        ),
        (
            "inputs.objective:",
            "inputs.lam:",
            "6: sweep.inputs.lam: expected one of the inputs base, objective, rounds, got 'lam'",
        ),
        (
            "[-1, 0.5]",
            "[low]",
            "6: sweep.inputs.objective: expected a number, as objective is 0, got 'low'",
        ),
        (
            "[-1, 0.5]",
            "1..-1",
            "6: sweep.inputs.objective: expected a range that rises to 1 to 1000 values, got 1..-1",
        ),
        (
            "[-1, 0.5]",
            "[-1, 2]",
            "15: steps[2].with.config.objective (objective=2.0, seed=1, turn=1): expected self, coop, comp or a",
        ),
        (
            "seeds: 1..2",
            "seeds: [1, 1.5]",
            "5: sweep.seeds: expected whole numbers from 0 as seeds, such as 1..5, got 1.5",
        ),
        (
            "seeds: 1..2",
            "seeds: 1..500",
            "4: sweep: expected at most 1000 cells, got 2 × 2 × 500 = 2000",
        ),
        (
            "turn in 1..rounds",
            "seed in [1, 2]",
            "5: sweep.seeds: expected none, as play has a loop over seed of its own",
        ),
        (
            "seeds: 1..2",
            "inputs.seed: 1..2",
            "5: sweep.inputs.seed: expected one of the inputs",
        ),
    ],
)
def test_what_cannot_be_swept_is_said_at_its_key(before: str, after: str, said: str) -> None:
    assert refused(LOOP.replace(before, after)).startswith(f"swept.yaml:{said}")


def test_what_came_beside_the_file_is_called_as_it_was_given() -> None:
    said = refused(rows__filter="best")
    assert said.startswith("--sweep rows.filter (objective=-1.0, filter=best, seed=1, turn=1): expected above_avg")
    assert refused(seeds="one").startswith("--seeds: expected whole numbers from 0 as seeds")
    said = "--set objective: expected one of both, got both a value and a sweep; give its values by --sweep"
    assert refused(given={"objective": 1}).startswith(said)
