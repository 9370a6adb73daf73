"""What is wrong with a recipe is said in one line, with the line of the file and the key."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import AppError
from app.recipes.reader import load_recipe, parse_recipe

GOOD = """\
recipe: loop
version: 1
inputs:
  base: tiny
  seed: 7
  rates: [0.1, 0.2]
steps:
  - name: play
    do: round
    for: iteration in 1..3
    with:
      game: taboo
      models: ["${previous.train.model or base}"]
      matches: 4
  - name: rows
    do: keep
    for: iteration in 1..3
    with:
      rounds: ["${play.round}"]
      filter: all
  - name: train
    do: training
    for: iteration in 1..3
    with:
      method: sft
      dataset: ${rows.dataset}
      base: ${previous.train.model or base}
  - name: measure
    do: evaluate
    for: iteration in 1..3
    with:
      game: taboo
      model: ${train}
      matches: 4
  - name: score
    do: benchmark
    for: iteration in 1..3
    when: iteration > 1
    with:
      model: ${train.model}
      tasks: everyday-reasoning
  - name: table
    do: compare
    with:
      of: ["${all.measure.figures}"]
"""

_ROUNDS = "    with:\n      rounds"
# What replaces what, and what the refusal says.
FAULTS: Mapping[str, tuple[str, str, str]] = {
    "an unknown field of the file": (
        "inputs:",
        "input:",
        "loop.yaml:3: input: expected inputs, got input",
    ),
    "an unknown field of a step": (
        "    do: keep",
        "    does: keep",
        "loop.yaml:16: steps[2].does: expected do, got does",
    ),
    "another version": (
        "version: 1",
        "version: 2",
        "loop.yaml:2: version: expected 1, the version of the format",
    ),
    "a wrong type": (
        "    do: keep",
        "    do: [keep]",
        "loop.yaml:16: steps[2].do: expected text",
    ),
    "a duplicate key": (
        "    do: keep",
        "    do: keep\n    do: keep",
        "loop.yaml:17: steps[2].do: expected each key once",
    ),
    "an unknown kind": (
        "do: benchmark",
        "do: bench",
        "loop.yaml:36: steps[5].do: expected round or keep or import or best-responses or training or evaluate",
    ),
    "a name twice": (
        "name: rows",
        "name: play",
        "loop.yaml:15: steps[2].name: expected a name that no other step has",
    ),
    "a step called as an input": (
        "name: rows",
        "name: base",
        "loop.yaml:15: steps[2].name: expected a name that no input",
    ),
    "a step called as a word": (
        "name: rows",
        "name: previous",
        "loop.yaml:15: steps[2].name: expected another name",
    ),
    "an unknown field of a kind": (
        "filter: all",
        "filtered: all",
        "loop.yaml:20: steps[2].with.filtered (iteration=1): expe",
    ),
    "a value that the kind refuses": (
        "filter: all",
        "filter: best",
        "loop.yaml:20: steps[2].with.filter (iteration=1): expected above_avg or above_avg_nonzero or nonzero or all",
    ),
    "a number that the kind refuses": (
        "      matches: 4\n  - name: rows",
        "      matches: none\n  - name: rows",
        "loop.yaml:14: steps[1].with.matches (iteration=1): expected a whole number from 1",
    ),
    "a missing field": (
        "      method: sft\n",
        "",
        "steps[3].with.method (iteration=1): expected a value, got none",
    ),
    "a method that is no name": (
        "method: sft",
        "method: [sft]",
        "steps[3].with.method (iteration=1): expected text, got ['sft']",
    ),
    "a field of a method": (
        "      method: sft\n",
        "      method: sft\n      config: {epoch: 2}\n",
        "loop.yaml:26: steps[3].with.config.epoch (iteration=1): expected a field of sft",
    ),
    "a setting of a game": (
        "      matches: 4\n  - name: rows",
        "      config: {turns: 2}\n  - name: rows",
        "loop.yaml:14: steps[1].with.config (iteration=1): config of taboo: expected only max_turns",
    ),
    "a later step": (
        "${rows.dataset}",
        "${measure.figures}",
        "expected a step before this one, got measure.figures, which comes",
    ),
    "a cycle": (
        'models: ["${previous.train.model or base}"]',
        'models: ["${train.model}"]',
        "loop.yaml:13: steps[1].with.models[1] (iteration=1): expected a step before this one, got train.model, wh",
    ),
    "the step itself": (
        "dataset: ${rows.dataset}",
        "dataset: ${train}",
        "got train, which is the step itself",
    ),
    "an unknown step": (
        "${rows.dataset}",
        "${row.dataset}",
        "loop.yaml:26: steps[3].with.dataset (iteration=1): expected one of the steps play, rows, train, measure, ",
    ),
    "an unknown name": (
        "or base}\n  - name: m",
        "or bass}\n  - name: m",
        "expected an input, a variable of the step’s loops",
    ),
    "an unknown output": (
        "${rows.dataset}",
        "${rows.data}",
        "expected what rows gives: dataset, got 'data'",
    ),
    "a training on a round": (
        "${rows.dataset}",
        "${play.round}",
        "loop.yaml:26: steps[3].with.dataset (iteration=1): expected a dataset of conversations or a dataset of co",
    ),
    "a method that needs rewards": (
        "method: sft",
        "method: offline-po",
        "expected a dataset of conversations with rewards, got rows.dataset, which is a d",
    ),
    "something made where nothing is taken": (
        "filter: all",
        "filter: ${play.round}",
        "expected an input or a variable of a loop here, got play.round, which is a r",
    ),
    "nothing before the first turn": (
        "${previous.train.model or base}\n  - name: m",
        "${previous.train.model}\n  - name: m",
        "got previous.train.model, as nothing is before iteration=1; give another with or",
    ),
    "a step that was left out": (
        "      of: [",
        '      over: iteration\n      of: ["${all.play.round}", ',
        "expected figures, got play.round, which is a round",
    ),
    "one of a loop that is over": (
        "${all.measure.figures}",
        "${measure.figures}",
        "expected last.measure or all.measure, as it is done for each iteration",
    ),
    "previous after the loop": (
        "${all.measure.figures}",
        "${previous.measure}",
        "expected last or all, as this step is in no loop",
    ),
    "all of a step without a loop": (
        "dataset: ${rows.dataset}",
        "dataset: ${all.table}",
        "as it has no loop",
    ),
    "a loop without values": (
        f"for: iteration in 1..3\n{_ROUNDS}",
        f"for: iteration in 3..1\n{_ROUNDS}",
        "loop.yaml:17: steps[2].for: expected 1 to 1000 values of iteration, got none",
    ),
    "a loop over text": (
        f"for: iteration in 1..3\n{_ROUNDS}",
        f"for: iteration in base\n{_ROUNDS}",
        "loop.yaml:17: steps[2].for: expected an input that is a list",
    ),
    "no loop at all": (
        f"for: iteration in 1..3\n{_ROUNDS}",
        f"for: iteration\n{_ROUNDS}",
        "loop.yaml:17: steps[2].for: expected NAME in 1..3, or NAME in [1, 2, 3], got 'iteration'",
    ),
    "a variable called as an input": (
        f"for: iteration in 1..3\n{_ROUNDS}",
        f"for: base in 1..3\n{_ROUNDS}",
        "loop.yaml:17: steps[2].for: expected a variable that is called as no input is",
    ),
    "a value twice": (
        f"for: iteration in 1..3\n{_ROUNDS}",
        f"for: iteration in [1, 1]\n{_ROUNDS}",
        "loop.yaml:17: steps[2].for: expected each value of iteration once, got 1",
    ),
    "a condition on something unknown": (
        "when: iteration > 1",
        "when: turn > 1",
        "loop.yaml:38: steps[5].when: expected an input or a variable",
    ),
    "a condition that is none": (
        "when: iteration > 1",
        "when: __import__('os')",
        "loop.yaml:38: steps[5].when: expected comparisons such as",
    ),
    "a condition with a call": (
        "when: iteration > 1",
        "when: iteration > len(x)",
        "loop.yaml:38: steps[5].when: expected a number after >, got 'len(x)'",
    ),
    "order among texts": (
        "when: iteration > 1",
        "when: base > 1",
        "loop.yaml:38: steps[5].when: expected a number before >, got base, which is 'tiny'",
    ),
    "a reference without an end": (
        "${rows.dataset}",
        "${rows.dataset",
        "expected a } for each ${",
    ),
    "a call in a reference": (
        "${rows.dataset}",
        "${open('x')}",
        "expected a reference such as base, play.round or previous.train",
    ),
    "a place of what is no list": (
        "base: ${previous.train.model or base}",
        "base: ${base[iteration]}",
        "expected an input that is a list (rates), got 'base'",
    ),
    "a place by what is no variable": (
        "base: ${previous.train.model or base}",
        "base: ${rates[turn]}",
        "expected a variable of the step’s loops in brackets (iteration), got 'turn'",
    ),
    "a list that is shorter than its loop": (
        "base: ${previous.train.model or base}",
        "base: ${rates[iteration]}",
        "expected as many values of rates as iteration has, 3, got 2",
    ),
    "a reference in brackets without quotes": (
        'rounds: ["${play.round}"]',
        "rounds: [${play.round}]",
        "within [ ] and { }, references and loops have to be in quotes",
    ),
    "means over what is no loop": (
        "      of: [",
        "      over: seed\n      of: [",
        "steps[6].with.over: expected a variable of the loo",
    ),
    "one name for all models": (
        "      method: sft\n",
        "      method: sft\n      name: mine\n",
        "expected a name for each model that it makes, such as one",
    ),
    "a seed that is none": (
        "  seed: 7",
        "  seed: now",
        "loop.yaml:5: inputs.seed: expected a whole number from 0",
    ),
    "a file that is not there": (
        "      matches: 4\n  - name: rows",
        "      material: words.txt\n  - name: rows",
        "loop.yaml:14: steps[1].with.material: expected a file that can be read, got words.txt is not",
    ),
    "a file elsewhere": (
        "      matches: 4\n  - name: rows",
        "      material: ../words.txt\n  - name: rows",
        "expected a file beside the recipe",
    ),
    "a vendor’s budget here": (
        "      method: sft\n",
        "      method: sft\n      budget: {usd: 3}\n",
        "steps[3].with.budget (iteration=1): expected none for",
    ),
    "an alias": (
        "  base: tiny",
        "  base: &a tiny",
        "loop.yaml:4: expected YAML, got an anchor",
    ),
}


def refused(text: str) -> str:
    with pytest.raises(AppError) as error:
        parse_recipe(text, "loop.yaml", None, _no_file)
    return error.value.message


def _no_file(name: str) -> Any:
    raise AppError(f"{name} is not there")


def test_the_recipe_that_the_others_are_made_of_is_right() -> None:
    steps = parse_recipe(GOOD, "loop.yaml").plan.steps
    assert [step.key for step in steps][:5] == [
        "play iteration=1", "rows iteration=1", "train iteration=1", "measure iteration=1", "play iteration=2"
    ]  # fmt: skip
    assert [step.key for step in steps if step.step.name == "score"] == ["score iteration=2", "score iteration=3"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_said_in_one_line(fault: str) -> None:
    before, after, expected = FAULTS[fault]
    assert GOOD.count(before) >= 1, before
    line = refused(GOOD.replace(before, after, 1))
    assert expected in line
    assert "\n" not in line
    assert re.match(r"loop\.yaml:\d+: ", line)


def test_values_of_the_command_line_are_of_the_type_of_the_default() -> None:
    found = parse_recipe(GOOD, "loop.yaml", {"base": "7", "seed": "8", "rates": "1, 2.5"}).plan.inputs
    assert found == {"base": "7", "seed": 8, "rates": [1.0, 2.5]}
    for given, expected in (
        ({"sed": "8"}, "--set sed: expected one of the inputs base, seed, rates"),
        ({"seed": "eight"}, "--set seed: expected a whole number, as seed is 7, got 'eight'"),
        ({"rates": "much"}, "--set rates: expected a number"),
    ):
        with pytest.raises(AppError) as error:
            parse_recipe(GOOD, "loop.yaml", given)
        assert error.value.message.startswith(expected)


def test_a_file_that_is_wrong_is_said_at_the_key_that_names_it(tmp_path: Path) -> None:
    text = GOOD.replace("      matches: 4\n  - name: rows", "      material: words.txt\n  - name: rows", 1)
    (tmp_path / "loop.yaml").write_text(text)
    (tmp_path / "words.txt").write_text("apple\n\napple pie 3\n")
    with pytest.raises(AppError) as error:
        load_recipe(tmp_path / "loop.yaml")
    assert error.value.message.startswith("loop.yaml:14: steps[1].with.material (iteration=1): words.txt")
    (tmp_path / "words.txt").write_text("apple\nriver\n")
    assert load_recipe(tmp_path / "loop.yaml").files == {"words.txt": "apple\nriver\n"}


def test_more_steps_than_a_run_may_have_are_refused() -> None:
    text = GOOD.replace("for: iteration in 1..3", "for: iteration in 1..900")
    assert "expected at most 2000 steps, turns of loops counted, got more" in refused(text)
