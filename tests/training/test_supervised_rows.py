"""Rows of a second file that are learnt as they are, beside rows with rewards and comparisons."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.training.conftest import Row, events_in, rewarded, rows_of, write_rows
from training import checkpoints
from training.config import read_config
from training.methods import all_methods
from training.recipe import renderer
from training.rows import TrainingRows, load_rows
from training.span_data import REWARDED, SUPERVISED, SpanRows

ConfigFile = Callable[..., Path]


@pytest.fixture
def load(config_file: ConfigFile, data_of: dict[str, Path], base: Path) -> Callable[..., TrainingRows]:
    """The rows of a method, beside which those of `sft` are mixed in."""

    def loaded(method: str, sft: Path | None, **fields: Any) -> TrainingRows:
        described = all_methods()[method]
        named = None if sft is None else str(sft)
        config = read_config(described.config, config_file(data=str(data_of[method]), sft_data=named, **fields))
        model, tokenizer = checkpoints.load(base)
        return load_rows(described, config, model, tokenizer, renderer(config, model, tokenizer))

    return loaded


@pytest.fixture
def sft(tmp_path: Path) -> Path:
    """Six rows, of which the first two are of a match of the file with rewards; others name no match."""
    rows: list[Row] = rows_of(3)
    for row in rows[2:]:
        del row["group"]
    rows[0]["messages"][1] |= {"reward": -1.0, "weight": 2.0}
    return write_rows(tmp_path / "sft.jsonl", rows)


def kinds(rows: Any) -> list[set[int]]:
    assert isinstance(rows, SpanRows)
    return [set(item.kinds) for item in rows.items]


def test_rows_of_the_second_file_are_supervised_and_ask_the_reference_nothing(
    load: Callable[..., TrainingRows], sft: Path
) -> None:
    alone, mixed = load("offline-po", None), load("offline-po", sft)
    assert kinds(mixed.rows) == [*kinds(alone.rows), *[{SUPERVISED}] * 6]
    assert (mixed.read, mixed.counts["sft_rows"], mixed.counts["sft_rows_left_out"]) == (alone.read + 6, 6, 0)
    assert mixed.counts["computed_reference_rows"] == alone.counts["computed_reference_rows"]
    assert isinstance(mixed.rows, SpanRows)
    [item] = mixed.rows.items[-6:-5]
    assert set(item.reference) == {0.0}
    spans = item.sequences[0].spans
    assert [(span.reward, span.weight) for span in spans[:1]] == [(None, 2.0)]  # its reward counts for nothing


def test_what_is_kept_aside_is_the_same_with_and_without_supervised_rows(
    load: Callable[..., TrainingRows], sft: Path
) -> None:
    """Its matches are not learnt from the second file either, where that names them."""
    for seed in range(9):
        alone, mixed = (load("offline-po", each, eval_share=0.5, seed=seed) for each in (None, sft))
        assert alone.aside is not None
        assert mixed.aside is not None
        assert mixed.aside.groups == alone.aside.groups
        shared = {"0:0", "0:1"} & set(mixed.aside.groups)
        assert mixed.counts["sft_rows_left_out"] == len(shared)
        assert mixed.rows.groups[len(alone.rows) :] == tuple(
            each for each in ("0:0", "0:1", "line 3", "line 4", "line 5", "line 6") if each not in shared
        )
    assert {len(load("offline-po", sft, eval_share=0.5, seed=seed).rows) for seed in range(9)} == {28, 30}


def test_each_supervised_move_is_a_query_with_one_response_among_comparisons(
    load: Callable[..., TrainingRows], sft: Path
) -> None:
    alone, mixed = load("stable-alignment", None), load("stable-alignment", sft)
    moves = [each for row in rows_of(3) for each in row["messages"] if each["role"] == "assistant"]
    assert kinds(mixed.rows) == [{REWARDED}] * (len(alone.rows) + len(moves))
    assert isinstance(mixed.rows, SpanRows)
    assert {len(item.sequences) for item in mixed.rows.items[len(alone.rows) :]} == {1}
    assert (
        mixed.rows.targets - alone.rows.targets
        == load("offline-po", sft).rows.targets - load("offline-po", None).rows.targets
    )


def test_a_training_says_which_supervised_rows_it_mixed_in(
    config_file: ConfigFile, data_of: dict[str, Path], sft: Path, train: Callable[..., int], tmp_path: Path
) -> None:
    for method in ("offline-po", "stable-alignment"):
        events = tmp_path / f"{method}.jsonl"
        config = config_file(method, data=str(data_of[method]), sft_data=str(sft), max_steps=1)
        assert train(method, config, events) == 0
        begun, step, *_ = events_in(events)
        assert begun["sft_rows"] == 6
        assert step["loss"] > 0
        made = json.loads((tmp_path / method / "model" / "parlor.json").read_text())
        assert (len(made["sft_data_sha256"]), made["sft_rows"]) == (64, 6)
        assert made["config"]["sft_data"] == "sft.jsonl"


def test_a_second_file_of_which_nothing_is_left_is_refused(
    config_file: ConfigFile, data_of: dict[str, Path], refusal: Callable[..., str], tmp_path: Path
) -> None:
    data, gone = str(data_of["offline-po"]), tmp_path / "gone.jsonl"
    assert f"{gone}: expected a dataset file, got none" in refusal(
        config_file(data=data, sft_data=str(gone)), "offline-po"
    )
    own = write_rows(tmp_path / "own.jsonl", rewarded(rows_of(1)))
    aside = config_file(data=data, sft_data=str(own), eval_data=str(own))
    line = refusal(aside, "offline-po")
    assert f"{own}: expected a row of a match that is not kept aside, got 2 of such as are; lower eval_share" in line
    compared = config_file(data=data, sft_data=str(data_of["stable-alignment"]))
    assert 'comparisons.jsonl, line 1: expected {"messages": […]}' in refusal(compared, "offline-po")
    assert "sft_data: expected one of data, " in refusal(config_file(sft_data=str(own)), "sft")
