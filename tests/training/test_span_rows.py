"""What rows with rewards and comparisons may be, and what is said of those that cannot be trained on."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from tests.training.conftest import Row, comparisons_of, rewarded, rows_of, write_rows
from training.comparisons import read_comparisons
from training.data import read_conversations
from training.errors import TrainingRefused
from training.methods import all_methods
from training.methods.stable_alignment import StableAlignmentConfig
from training.rendering import Renderer
from training.rewards import RoleBaselines, rewarded_rows
from training.rows import load_rows

Refusal = Callable[..., str]
ConfigFile = Callable[..., Path]


def first_move(rows: list[Row]) -> dict[str, Any]:
    return next(each for each in rows[0]["messages"] if each["role"] == "assistant")


@pytest.mark.parametrize("reward", ["1", None, True, float("nan"), float("inf"), 10**400, 1e20, -1000001])
def test_a_reward_that_is_no_number_or_too_large_is_refused(
    reward: object, config_file: ConfigFile, refusal: Refusal, tmp_path: Path
) -> None:
    rows = rewarded(rows_of(2))
    first_move(rows)["reward"] = reward
    line = refusal(config_file(data=str(write_rows(tmp_path / "rows.jsonl", rows))), "offline-po")
    assert "line 1, message 2: reward: expected a number from -1000000 to 1000000, got " in line
    assert line.endswith('a supervised row has "type": "sft"')


@pytest.mark.parametrize("method", ["sft-kl", "offline-po", "stable-alignment"])
def test_an_empty_dataset_is_refused(method: str, config_file: ConfigFile, refusal: Refusal, tmp_path: Path) -> None:
    line = refusal(config_file(data=str(write_rows(tmp_path / "rows.jsonl", []))), method)
    assert line.endswith("rows.jsonl: expected rows, got none")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"type": "sfт"}, 'line 1: type: expected "sft", "sample" or none, got '),
        ({"policy": "0" * 64}, "line 1: policy: expected "),
    ],
)
def test_a_row_of_an_unknown_type_or_another_policy_is_refused(
    change: Row, complaint: str, config_file: ConfigFile, refusal: Refusal, tmp_path: Path
) -> None:
    rows = rewarded(rows_of(2))
    rows[0] |= change
    assert complaint in refusal(config_file(data=str(write_rows(tmp_path / "rows.jsonl", rows))), "offline-po")


def test_advantages_of_roles_need_the_role_of_each_move(
    config_file: ConfigFile, refusal: Refusal, tmp_path: Path
) -> None:
    rows = rewarded(rows_of(2))
    del first_move(rows)["player_role"]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    line = refusal(config_file(data=str(path), advantage="role"), "offline-po")
    assert "line 1, message 2: player_role: expected the player's role, got None; set advantage: reward" in line


def test_a_reference_with_another_vocabulary_is_refused(
    base: Path, data_of: dict[str, Path], config_file: ConfigFile, refusal: Refusal, train: Any, tmp_path: Path
) -> None:
    shape = {"base": None, "width": 16, "layers": 1, "heads": 2, "length": 128, "max_words": 10, "max_steps": 1}
    assert train("tiny", config_file("other", **shape), tmp_path / "other.jsonl") == 0
    other = tmp_path / "other" / "model"
    assert len(AutoTokenizer.from_pretrained(other)) < len(AutoTokenizer.from_pretrained(base))
    line = refusal(config_file(data=str(data_of["sft-kl"]), reference=str(other)), "sft-kl")
    assert "reference: expected the vocabulary of the base (" in line


def test_a_reference_that_takes_fewer_tokens_is_refused(
    data_of: dict[str, Path], config_file: ConfigFile, refusal: Refusal, train: Any, tmp_path: Path
) -> None:
    shape = {"base": None, "width": 16, "layers": 1, "heads": 2, "length": 40, "min_count": 1, "max_steps": 1}
    assert train("tiny", config_file("short", **shape), tmp_path / "short.jsonl") == 0
    short = tmp_path / "short" / "model"
    line = refusal(config_file(data=str(data_of["offline-po"]), reference=str(short)), "offline-po")
    assert f"one that takes 40 in {short}; lower max_length" in line


def test_a_cache_that_cannot_be_written_is_refused(
    data_of: dict[str, Path], config_file: ConfigFile, refusal: Refusal, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    cache = tmp_path / "file" / "cache"
    line = refusal(config_file(data=str(data_of["sft-kl"]), reference_cache=str(cache)), "sft-kl")
    assert f"reference_cache: expected a folder that can be written, got {cache}" in line


def test_jobs_ask_for_rewards_of_all_moves_but_those_that_are_learnt_as_they_are() -> None:
    schema = all_methods()["offline-po"].rows
    row = rewarded(rows_of(1))[0]
    assert (schema.kind, schema.missing(row)) == ("conversations", None)
    del first_move([row])["reward"]
    assert schema.missing(row) == "reward"
    assert schema.missing({**row, "type": "sft"}) is None
    assert schema.missing({"query": "rules", "target": "a hint", "reward": 0.4}) is None
    assert all_methods()["stable-alignment"].rows.kind == "comparisons"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"query": "x", "responses": ["a"]}, 'line 1: expected {"query": text, "responses": [texts], "scores": '),
        ({"query": "x", "responses": ["a", 2], "scores": [1, 2]}, "line 1: expected {"),
        ({"messages": []}, "line 1: expected {"),
        ({"query": "x", "responses": ["a", "b"], "scores": [1]}, "scores: expected one for each of 2 responses, got 1"),
        ({"query": "x", "responses": ["a", "b"], "scores": [1, "6/7"]}, "scores: expected numbers from 0 to 7, got "),
        ({"query": "x", "responses": ["a", "b"], "scores": [1, 8]}, "scores: expected numbers from 0 to 7, got 8"),
        ({"query": "x", "responses": ["a", "b"], "scores": [-1, 3]}, "scores: expected numbers from 0 to 7, got -1"),
        ({"query": "x", "responses": ["a", "b"], "scores": [4, 4]}, "expected a query with a response that is rated"),
    ],
)
def test_comparisons_that_compare_nothing_are_refused(
    row: Row, complaint: str, config_file: ConfigFile, refusal: Refusal, tmp_path: Path
) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [row])
    assert complaint in refusal(config_file(data=str(path)), "stable-alignment")


def test_the_best_response_is_compared_with_some_that_are_rated_lower(tmp_path: Path) -> None:
    rows = [{"query": "q", "responses": list("abcdef"), "scores": [3, 7, 1, 7, 6.5, 2]}, *comparisons_of(1)]
    [row, _] = read_comparisons(write_rows(tmp_path / "rows.jsonl", rows), 7)
    seen = {tuple(row.chosen(2, random.Random(seed))) for seed in range(40)}
    assert {chosen[0] for chosen in seen} == {("b", 7.0)}
    assert {pair for chosen in seen for pair in chosen[1:]} == {("a", 3.0), ("c", 1.0), ("e", 6.5), ("f", 2.0)}
    assert all(len(set(chosen)) == 3 for chosen in seen)
    assert len(row.chosen(9, random.Random(0))) == 5


def test_what_was_said_before_a_query_is_read_and_not_learnt(tmp_path: Path) -> None:
    history = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi", "weight": 1}]
    rows = [{"query": "why?", "responses": ["so", "no"], "scores": [1, 0], "history": history}, *comparisons_of(1)]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    [row, plain] = read_comparisons(path, 7)
    said = row.conversation("so", 1).messages
    assert [(each["content"], each.get("weight")) for each in said] == [
        ("hello", 0),
        ("hi", 0),
        ("why?", None),
        ("so", None),
    ]
    assert len(plain.conversation("x", 1).messages) == 2
    for wrong in ("hello", [{"role": "user"}], [{**history[0], "tool_calls": [{}]}], history[1:]):
        write_rows(path, [{**rows[0], "history": wrong}])
        with pytest.raises(TrainingRefused, match="line 1: history: expected "):
            read_comparisons(path, 7)


def test_responses_to_a_query_are_compared_under_one_prompt_when_it_is_shortened(
    base: Path, tokenizer: Any, tmp_path: Path
) -> None:
    history = [{"role": ("user", "assistant")[at % 2], "content": f"[message] i want {at} books"} for at in range(8)]
    responses = ["[message] no", " ".join(["[message] no, thanks"] * 4)]
    rows = [
        {"query": "books 1 hats 1 balls 1. you begin", "responses": responses, "scores": [7, 1], "history": history},
        *comparisons_of(1),
    ]
    config = StableAlignmentConfig(data=write_rows(tmp_path / "rows.jsonl", rows), base=base, output=tmp_path / "model")
    method = all_methods()["stable-alignment"]
    whole = load_rows(method, config, None, tokenizer, Renderer(tokenizer, 128)).rows
    longest = max(whole.lengths)
    for dropped in range(1, 4):  # from room for the shorter response alone to room for neither
        found = load_rows(method, config, None, tokenizer, Renderer(tokenizer, longest - 10 * dropped)).rows
        assert found.too_long == {"shortened": 1}
        assert max(found.lengths) <= longest - 10 * dropped
        prompts = {tuple(each.ids[: each.spans[0].begin]) for each in found[0][1].sequences}
        assert len(prompts) == 1
        assert found[1][1].sequences == whole[1][1].sequences
    assert not whole.too_long


def test_published_rows_of_one_move_are_read_as_conversations(tmp_path: Path) -> None:
    published = [
        {"query": "rules. go", "target": "a hint", "reward": 0.4, "weight": 2.5, "role": "attacker"},
        {"query": "write a poem", "target": "roses", "type": "sft", "weight": 1.0, "reward": 9},
    ]
    rows = rewarded_rows(read_conversations(write_rows(tmp_path / "rows.jsonl", published)))
    move = {"role": "assistant", "content": "a hint", "reward": 0.4, "weight": 2.5, "player_role": "attacker"}
    assert rows[0].messages == ({"role": "user", "content": "rules. go"}, move)
    assert rows[1].messages[1] == {"role": "assistant", "content": "roses", "weight": 1.0}


def test_advantages_of_roles_are_rewards_less_the_running_mean_of_game_and_role(tmp_path: Path) -> None:
    rows = rewarded(rows_of(3))
    for at, row in enumerate(rows):
        row["type"] = "sft" if at == 5 else None
        row["game"] = "one" if at < 4 else "other"
        for each in row["messages"]:
            if each["role"] == "assistant":
                each["reward"] = float(at + 1)
    found = rewarded_rows(read_conversations(write_rows(tmp_path / "rows.jsonl", rows)), RoleBaselines(0.9))
    advantages = [{each.get("reward") for each in row.messages if each["role"] == "assistant"} for row in found]
    first, second = 0.1 * 1, 0.1 * 2  # the means of the two roles after a row of each
    assert advantages[:2] == [{1.0}, {2.0}]
    assert [advantages[2], advantages[3]] == [{3 - first}, {4 - second}]
    assert advantages[4:] == [{5.0}, {None}]  # another game has means of its own; a supervised row has no reward
