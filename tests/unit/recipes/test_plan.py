"""What the steps of a recipe come to: the order of loops, what references name, and seeds."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from app.campaigns.presets import PRESETS
from app.core.config import ROOT
from app.core.errors import Invalid
from app.recipes.made import Made
from app.recipes.plan import PlannedStep, seed_of
from app.recipes.reader import load_recipe, parse_recipe

EXAMPLES = sorted((ROOT / "data" / "recipes").glob("**/*.yaml"))
HEAD = "recipe: tried\nversion: 1\ninputs: {base: tiny, iterations: 2, seed: 7, seeds: [1, 2]}\nsteps:\n"


def steps_of(text: str, **given: str) -> Sequence[PlannedStep]:
    return parse_recipe(HEAD + text, "tried.yaml", given).plan.steps


def step(name: str, *lines: str) -> str:
    return "\n".join([f"  - name: {name}", "    do: round", *(f"    {line}" for line in lines)]) + "\n"


def playing(*models: str) -> str:
    return f"with: {{game: taboo, matches: 2, models: [{', '.join(models)}]}}"


def trained(name: str, *lines: str, base: str = '"${base}"') -> str:
    head = [f"  - name: {name}", "    do: training", *(f"    {line}" for line in lines)]
    return "\n".join([*head, f'    with: {{method: sft, dataset: "5", base: {base}}}']) + "\n"


def models(planned: PlannedStep) -> list[Any]:
    return [each.keys if isinstance(each, Made) else each for each in planned.fields["models"]]


def test_steps_with_the_same_loop_are_one_body_and_others_come_after_it() -> None:
    text = (
        step("one", "for: turn in 1..2", playing('"${base}"'))
        + step("two", "for: [turn in 1..2, seed in seeds]", playing('"${base}"'))
        + step("three", "for: turn in 1..2", playing('"${base}"'))
        + step("last_of_all", playing('"${base}"'))
        + step("four", "for: turn in 1..2", playing('"${base}"'))
    )
    assert [each.key for each in steps_of(text.replace("last_of_all", "five"))] == [
        "one turn=1", "two turn=1, seed=1", "two turn=1, seed=2", "three turn=1",
        "one turn=2", "two turn=2, seed=1", "two turn=2, seed=2", "three turn=2",
        "five", "four turn=1", "four turn=2",
    ]  # fmt: skip


def test_a_reference_names_the_same_turn_the_one_before_the_last_or_all() -> None:
    text = (
        trained("train", "for: turn in 1..3", base='"${previous.train.model or base}"')
        + step("play", "for: turn in 1..3", playing('"${train}"', '"${previous.train or base}"'))
        + step("final", playing('"${last.train}"'))
        + "  - name: rows\n    do: keep\n    with: {rounds: ['${all.play.round}', 12], filter: all}\n"
    )
    found = {each.key: each for each in steps_of(text)}
    assert [found[f"train turn={turn}"].fields["base"] for turn in (1, 2)] == [
        "tiny", Made(("train turn=1",), "model", "a model", many=False)
    ]  # fmt: skip
    assert models(found["play turn=1"]) == [("train turn=1",), "tiny"]
    assert models(found["play turn=3"]) == [("train turn=3",), ("train turn=2",)]
    assert models(found["final"]) == [("train turn=3",)]
    rounds = found["rows"].fields["rounds"]
    assert (rounds[0].keys, rounds[1]) == (("play turn=1", "play turn=2", "play turn=3"), "12")


def test_all_within_a_loop_are_those_so_far() -> None:
    text = step("play", "for: turn in 1..3", playing('"${base}"')) + (
        "  - name: rows\n    do: keep\n    for: turn in 1..3\n    with: {rounds: ['${all.play.round}'], filter: all}\n"
    )
    found = {each.key: each for each in steps_of(text)}
    assert [found[f"rows turn={turn}"].fields["rounds"][0].keys for turn in (1, 3)] == [
        ("play turn=1",), ("play turn=1", "play turn=2", "play turn=3")
    ]  # fmt: skip


def test_of_several_loops_one_is_named() -> None:
    loops = "for: [seed in seeds, turn in 1..2]"
    text = trained("train", loops, base='"${previous.turn.train.model or base}"') + step(
        "play", "for: seed in seeds", playing('"${last.turn.train}"')
    )
    found = {each.key: each for each in steps_of(text)}
    assert found["train seed=2, turn=2"].fields["base"].keys == ("train seed=2, turn=1",)
    assert found["train seed=2, turn=1"].fields["base"] == "tiny"
    assert models(found["play seed=2"]) == [("train seed=2, turn=2",)]


@pytest.mark.parametrize(
    ("when", "turns"),
    [
        ("turn > 1", [2, 3]),
        ("turn in [1, 3]", [1, 3]),
        ("turn != 2 and base == tiny", [1, 3]),
        ("base == 'other'", []),
        ("seed >= 7 and turn <= 1", [1]),
    ],
)
def test_a_condition_leaves_turns_out(when: str, turns: list[int]) -> None:
    text = step("play", "for: turn in 1..3", f"when: {when}", playing('"${base}"')) + step("end", playing("tiny"))
    assert [each.values["turn"] for each in steps_of(text) if each.step.name == "play"] == turns


def test_the_last_that_there_is_counts_where_a_condition_leaves_some_out() -> None:
    text = trained("train", "for: turn in 1..3", "when: turn < 3") + step("play", playing('"${last.train}"'))
    assert models(steps_of(text)[-1]) == [("train turn=2",)]


def test_seeds_follow_from_the_run_and_the_key_unless_they_are_given() -> None:
    text = (
        step("play", "for: turn in 1..2", playing('"${base}"'))
        + step("given", playing('"${base}"').replace("matches: 2", "matches: 2, seed: 3"))
        + trained("train", "for: seed in seeds")
        + "  - name: measure\n    do: evaluate\n    for: turn in 1..2\n"
        + "    with: {game: taboo, model: tiny, matches: 2}\n"
    )
    found = {each.key: each.fields for each in steps_of(text)}
    assert found["play turn=1"]["seed"] == seed_of(7, "play turn=1") != found["play turn=2"]["seed"]
    assert found["given"]["seed"] == 3
    assert found["train seed=2"]["config"]["seed"] == seed_of(2, "train seed=2")
    assert found["measure turn=1"]["seed"] == found["measure turn=2"]["seed"] == seed_of(7, "measure")
    other = {each.key: each.fields for each in steps_of(text, seed="8")}
    assert other["play turn=1"]["seed"] == seed_of(8, "play turn=1")


def test_models_are_called_by_the_run_the_step_and_the_turn() -> None:
    text = trained("train", "for:", "  - turn in 1..2", "  - rate in [0.5, 'a b']")
    names = [each.fields["name"] for each in steps_of(text)]
    assert names == ["tried-train-1-0.5", "tried-train-1-a_b", "tried-train-2-0.5", "tried-train-2-a_b"]


def test_lists_of_the_same_length_go_together() -> None:
    text = step(
        "play",
        'for: [turn in 1..2, "rate in [0.5, 1]"]',
        playing("tiny").replace("matches: 2", 'matches: "${seeds[rate]}", seed: "${seeds[turn]}"'),
    )
    found = [(each.fields["seed"], each.fields["matches"]) for each in steps_of(text, seeds="4,6")]
    assert found == [(4, 4), (4, 6), (6, 4), (6, 6)]


def test_what_is_within_a_text_is_filled_in_and_what_is_all_of_it_keeps_its_type() -> None:
    text = step(
        "play", "for: turn in 1..1", playing("tiny").replace("matches: 2", 'matches: 2, name: "$${x} ${turn}, ${run}"')
    )
    assert steps_of(text)[0].fields["name"] == "${x} 1, tried"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_that_ships_is_right(path: Any) -> None:
    loaded = load_recipe(path)
    assert loaded.plan.file.recipe == path.stem
    assert loaded.plan.file.about


def test_examples_have_the_settings_of_the_papers() -> None:
    assert len(EXAMPLES) == 9
    selfplay = load_recipe(ROOT / "data" / "recipes" / "lm-selfplay.yaml").plan
    published = PRESETS["lm-selfplay"].fields
    rounds = [each for each in selfplay.steps if each.step.name == "play"]
    assert (len(rounds), rounds[0].fields["matches"]) == (published["iterations"], published["matches"])
    assert rounds[0].fields["sampling"] == published["sampling"]
    training = next(each for each in selfplay.steps if each.step.name == "train").fields
    assert published["training"].items() <= training["config"].items()
    spag = {each.key: each.fields for each in load_recipe(ROOT / "data" / "recipes" / "spag.yaml").plan.steps}
    published = PRESETS["spag"].fields
    assert spag["imitate"]["method"] == published["start_method"]
    assert published["start_training"].items() <= spag["imitate"]["config"].items()
    assert published["training"].items() <= spag["train epoch=3"]["config"].items()
    assert spag["play epoch=3"]["sampling"] == published["sampling"]
    assert sum(key.startswith("score epoch") for key in spag) == published["iterations"]


def test_what_a_dataset_draws_follows_from_the_seed_of_the_run_and_else_it_has_none() -> None:
    def seeds(fields: str, **given: str) -> list[Any]:
        keep = f"  - name: rows\n    do: keep\n    with: {{rounds: ['1'], {fields}}}\n"
        return [each.fields.get("seed") for each in steps_of(keep, **given)]

    for fields in ("control: random_rows", "permutations: 2", "wordings: 2"):
        assert seeds(fields) == [seed_of(7, "rows")] != seeds(fields, seed="8")
        assert seeds(f"{fields}, seed: 3") == [3]
    assert seeds("control: none, permutations: 0") == [None]


def test_a_round_can_read_the_talk_of_a_round_that_an_earlier_step_has_played() -> None:
    measured = "  - name: measure\n    do: evaluate\n    with: {game: taboo, model: tiny}\n"

    def with_talk_of(what: str) -> str:
        talk = f'matches: 2, talk_of: "${{{what}}}"'
        return measured + step("exchanged", playing("tiny").replace("matches: 2", talk))

    assert steps_of(with_talk_of("measure.round"))[1].fields["talk_of"].what == "a round"
    with pytest.raises(Invalid, match=r"talk_of: expected a round, got measure\.figures, which is figures"):
        steps_of(with_talk_of("measure.figures"))


def test_the_commands_of_controls_in_the_docs_and_the_steps_beside_them_are_right() -> None:
    text = (ROOT / "docs" / "campaigns.md").read_text(encoding="utf-8")
    commands = re.findall(r"flask recipe run \$R --set (.+) --seeds (\S+) --sweep (\S+)=(\S+)$", text, re.MULTILINE)
    assert len(commands) == 5
    for given, seeds, field, values in commands:
        inputs = dict(each.split("=") for each in given.replace("base=mine", "base=tiny").split())
        swept = {field: values, "seeds": seeds}
        plan = load_recipe(ROOT / "data" / "recipes" / "controls.yaml", inputs, swept).plan
        assert len({each.values["seed"] for each in plan.steps if each.step.name == "exchanged"}) == 3
    (written,) = re.findall(r"```yaml\n(.+?)```", text, re.DOTALL)
    loop = "for: iteration in 1..iterations"
    play = step("play", loop, playing('"${previous.train.model or base}"'))
    train = trained("train", loop, base='"${previous.train.model or base}"')
    planned = steps_of(play + written + train.replace('"5"', '"${keep}"'), iterations="2")
    kept = [each.fields for each in planned if each.step.name == "keep"]
    assert [made.keys for made in kept[1]["rounds"]] == [("play iteration=2",), ("play_base iteration=2",)]
    assert kept[1]["models"][0].keys == ("train iteration=1",)
